//go:build unix

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// packed is the archive of a recorded run, with any name.
func packed(t *testing.T, run, path string) string {
	t.Helper()
	o := call(t, command(t, "runner-pack", "-o", path, filepath.Join("../testdata/runs", run, "3-joined.ndjson")))
	if o.code != 0 {
		t.Fatal(o)
	}
	return path
}

// TestSoakNames: the name of an archive is shown, and does nothing, wherever it is shown.
func TestSoakNames(t *testing.T) {
	dir := t.TempDir()
	const name = "\x1b[31m\u202e\n@all <b>`x`\xff.tar.gz"
	good, bad := packed(t, "empty-run", filepath.Join(dir, name)), filepath.Join(dir, "bad"+name)
	testkit.Must(t, os.WriteFile(bad, testkit.Read(t, good)[:100], 0o600))
	o := call(t, command(t, "runner-soak", "--report", filepath.Join(dir, "r.json"), "--target", good))
	if o.code != 1 || !strings.Contains(o.stdout, `\x1b[31m`) {
		t.Error(o)
	}
	refused := call(t, command(t, "runner-soak", "--target", bad))
	if refused.code != 3 || !strings.Contains(refused.stderr, `\x1b[31m`) {
		t.Error(refused)
	}
	for _, raw := range []string{"\x1b", "\u202e", "\n@all", "\xff"} {
		if all := o.stdout + o.stderr + refused.stderr + string(testkit.Read(t, filepath.Join(dir, "r.json"))); strings.Contains(all, raw) {
			t.Errorf("%q is there as it is: %s", raw, all)
		}
	}
}
