//go:build linux

package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
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
	testkit.Must(t, goBuild(bin, nil, "./testdata/kernels/check", "./testdata/workload/bypass"))
	if arch := map[string]string{"amd64": "386", "arm64": "arm"}[runtime.GOARCH]; arch != "" { // the same workload again, through the 32-bit entry
		testkit.Must(t, goBuild(filepath.Join(bin, "32"), []string{"GOARCH=" + arch}, "./testdata/workload/kinds"))
		testkit.Must(t, os.Rename(filepath.Join(bin, "32/kinds"), filepath.Join(bin, "kinds32")))
	}
	o := call(t, command(t, filepath.Join(bin, "check")))
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
