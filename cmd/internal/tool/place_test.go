package tool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestNewDirs: only what was made is removed, and only what is empty.
func TestNewDirs(t *testing.T) {
	dir := t.TempDir()
	there, deep := filepath.Join(dir, "there"), filepath.Join(dir, "there", "a", "b")
	testkit.Must(t, os.Mkdir(there, 0o777))
	made, err := NewDirs(deep)
	testkit.Must(t, err)
	if want := (Made{filepath.Join(there, "a"), deep}); !slices.Equal(made, want) {
		t.Errorf("made %q, expected %q", made, want)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(there, "a", "mine"), nil, 0o666))
	made.Remove()
	if testkit.Exists(deep) || !testkit.Exists(filepath.Join(there, "a", "mine")) {
		t.Error("expected that b is gone and a stays")
	}
	testkit.Must(t, os.Remove(filepath.Join(there, "a", "mine")))
	made, err = NewDirs(there)
	testkit.Must(t, err)
	made.Remove()
	if !testkit.Exists(there) {
		t.Error("a directory that was there before is gone")
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	if _, err := NewDirs(filepath.Join(dir, "file", "a")); err == nil {
		t.Error("a directory in a file")
	}
}
