package cmd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/kernels/limits"
)

// TestLimitsAttempts: the workload makes exactly the attempts of that file.
func TestLimitsAttempts(t *testing.T) {
	if runtime.GOOS != "linux" {
		testkit.Skip(t, "attempts to get around file rules", "needs Linux")
	}
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/bypass"))
	table, err := limits.Read()
	testkit.Must(t, err)
	var want strings.Builder
	for _, a := range table.Attempts {
		fmt.Fprintln(&want, a.Name, a.Op)
	}
	if o := call(t, command(t, "bypass", "_names", "/")); o.stdout != want.String() {
		testkit.FirstDifference(t, "limits.json", []byte(want.String()), []byte(o.stdout))
	}
}
