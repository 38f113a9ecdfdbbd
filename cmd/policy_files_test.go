package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBadPolicyFiles: every tool that reads a policy file ends with the same code for the
// same bad file, and says the same: 3 for one that is not valid, 5 for one that cannot be
// read. Nothing is started.
func TestBadPolicyFiles(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "started")
	bad := map[string]int{filepath.Join(dir, "none.yaml"): 5, dir: 5}
	for _, folder := range []string{"form", "beyond", "text"} {
		files, err := filepath.Glob("internal/policy/testdata/" + folder + "/*")
		testkit.Must(t, err)
		for _, f := range files {
			if filepath.Ext(f) != ".txt" {
				bad[f] = 3
			}
		}
	}
	if len(bad) < 20 {
		t.Fatalf("only %d bad files", len(bad))
	}
	for file, code := range bad {
		said := map[string]string{}
		for name, args := range map[string][]string{
			"runner-policy":         {"--policy", file, "--log", filepath.Join(dir, "log"), "--", "touch", mark},
			"runner-policy --check": {"--check", file},
			"runner-exec":           {"--no-kernel", "--archive", filepath.Join(dir, "a"), "--policy", file, "--", "touch", mark},
		} {
			tool, _, _ := strings.Cut(name, " ")
			o := call(t, command(t, tool, args...))
			if o.code != code || o.stdout != "" {
				t.Errorf("%s, %s: want exit %d\n%s", name, file, code, o)
			}
			said[strings.ReplaceAll(o.stderr, tool+": ", "TOOL: ")] = name
		}
		if len(said) != 1 {
			t.Errorf("%s: %d ways to say it: %q", file, len(said), said)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command or a server was started")
	}
}
