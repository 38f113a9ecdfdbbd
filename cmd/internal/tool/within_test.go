package tool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func TestWithin(t *testing.T) {
	dir := t.TempDir()
	top := filepath.Join(dir, "top")
	testkit.Must(t, os.MkdirAll(filepath.Join(top, "a"), 0o777))
	testkit.Must(t, os.Symlink("top/a", filepath.Join(dir, "link")))
	for path, want := range map[string]bool{"top": true, "top/a": true, "top/new/deep": true, "link": true, "link/new": true, "topmost": false, "": false, "other/top": false, "top/../x": false} {
		if within, err := Within(filepath.Join(dir, path), top); err != nil || within != want {
			t.Errorf("%s: %v, %v", path, within, err)
		}
	}
	if _, err := Within(dir, filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there")
	}
}
