package cmd_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/kernels/limits"
)

// TestLimits: the table in LIMITS.md of what file rules cannot stop is that of the file which the
// checks compare with.
func TestLimits(t *testing.T) {
	const begin, end = "<!-- made of testdata/kernels/limits/limits.json -->\n", "<!-- end -->"
	table, err := limits.Read()
	testkit.Must(t, err)
	text := testkit.Read(t, "../schemas/LIMITS.md")
	head, rest, found := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		t.Fatalf("LIMITS.md has no %s", begin)
	}
	testkit.Golden(t, "../schemas/LIMITS.md", fmt.Appendf(nil, "%s%s%s%s%s", head, begin, table.Markdown(), end, tail))
}

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
