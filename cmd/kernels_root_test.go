//go:build linux

package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestKernelChecks runs on this kernel what make test-kernels runs on others.
func TestKernelChecks(t *testing.T) {
	requireBPF(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "the checks of other kernels", "needs root")
	}
	if err := goBuild(bin, nil, "./testdata/kernels/check"); err != nil {
		t.Fatal(err)
	}
	o := call(t, command(t, filepath.Join(bin, "check"), "-short"))
	seen := 0
	for l := range strings.Lines(o.stdout) {
		var r struct{ Check, Result, Detail string }
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err, l)
		}
		seen++
		switch r.Result {
		case "ok", "told":
		case "unavailable":
			testkit.Note(t, r.Check, r.Detail)
		default:
			t.Errorf("%s: %s: %s", r.Check, r.Result, r.Detail)
		}
	}
	if seen < 10 || o.code != 0 {
		t.Errorf("%d checks ran: %v", seen, o)
	}
}
