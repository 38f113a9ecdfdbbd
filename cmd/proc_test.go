package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestSeedSuites: the suites of the process API's own documents pass as they are, with the helper at the paths that they
// name; in the world without a policy nothing is looked at, so it needs no helper.
func TestSeedSuites(t *testing.T) {
	suites := testkit.Corpora(t, "x07", "seed", "benchmarks")
	open, sandboxed := filepath.Join(suites, "run-os", "proc-echo-smoke.json"), filepath.Join(suites, "run-os-sandboxed", "proc-policy-smoke.json")
	root := t.TempDir()
	if o := call(t, command(t, "runner-suite", "--root", root, sandboxed)); o.code != 0 || !strings.Contains(o.stdout, `"passed":2,"failed":0`) {
		t.Error(o)
	}
	if o := call(t, command(t, "runner-suite", "--root", root, open)); o.code != 1 || !strings.Contains(o.stdout, `"code_u32":9001`) {
		t.Error(o)
	}
	script(t, "sh", "../scripts/build-os-helpers.sh", root)
	o := call(t, command(t, "runner-suite", "--root", root, open, sandboxed))
	if o.code != 0 || !strings.Contains(o.stdout, `"passed":3,"failed":0`) {
		t.Error(o)
	}
	for line := range strings.Lines(o.stdout) {
		if strings.Contains(line, schemas.SchemaSuiteCase) {
			validate(t, schemas.SchemaSuiteCase, []byte(line))
		}
	}
}

// TestHelpersAreTheSame: the helper is the same file each time that it is built.
func TestHelpersAreTheSame(t *testing.T) {
	var sums []string
	for range 2 {
		root := t.TempDir()
		script(t, "sh", "../scripts/build-os-helpers.sh", root)
		out, err := exec.Command("sh", "-c", "cd "+root+"/deps/x07 && sha256sum -c --quiet *.sha256 && cat *.sha256").Output()
		testkit.Must(t, err)
		info, err := os.Stat(filepath.Join(root, "deps/evolang/evolang-proc-echo"))
		testkit.Must(t, err)
		sums = append(sums, string(out)+info.Mode().String()+info.ModTime().UTC().String())
	}
	if sums[0] != sums[1] {
		t.Errorf("%q", sums)
	}
}
