//go:build unix

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestNoPlaceForScratch: a TMPDIR in which nothing can be made is refused before a command starts. All tools say which directory it is,
// that TMPDIR names it, and what to type.
func TestNoPlaceForScratch(t *testing.T) {
	dir, archive := t.TempDir(), packed(t, "kernel-only", filepath.Join(t.TempDir(), "run.tar.gz"))
	none, ran := filepath.Join(dir, "none"), filepath.Join(dir, "ran")
	base := []string{"--no-kernel", "--archive", filepath.Join(dir, "y.tgz")}
	for _, c := range []struct {
		code  int
		words []string
	}{
		{125, append([]string{"runner-exec"}, append(base, "--", "touch", ran)...)},
		{125, append([]string{"runner-exec"}, append(base, "--spool-dir", filepath.Join(dir, "spool"), "--", "touch", ran)...)},
		{125, []string{"runner-exec", "--no-kernel", "--stream", filepath.Join(dir, "y"), "--", "touch", ran}},
		{5, []string{"runner-soak", "--iterations", "1", "--", "touch", ran}},
		{5, []string{"runner-soak", "--target", archive}},
		{5, []string{"runner-show", archive}},
		{5, []string{"runner-lint", archive}},
		{5, []string{"runner-diff", archive, archive}},
		{5, []string{"runner-net", "har", archive}},
		{5, []string{"runner-pack", "-o", filepath.Join(dir, "y.tgz"), "../testdata/runs/kernel-only/3-joined.ndjson"}},
	} {
		p := command(t, c.words[0], c.words[1:]...)
		p.Env = append(p.Env, "TMPDIR="+none)
		o := call(t, p)
		if o.code != c.code || o.stdout != "" || !strings.Contains(o.stderr, "cannot use a scratch file in "+none+", which TMPDIR names: no such file or directory\n") ||
			!strings.Contains(o.stderr, "hint: name a directory that is there and can be written to: TMPDIR=DIR\n") {
			t.Errorf("%q, expected exit %d: %s", c.words, c.code, o)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || testkit.Exists(ran) {
		t.Errorf("%v was made, %v", left, err)
	}
}
