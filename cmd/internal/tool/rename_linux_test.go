package tool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestRenameNew: a name that somebody has is not taken, with and without flags of renameat2.
func TestRenameNew(t *testing.T) {
	for _, flags := range []bool{true, false} {
		if !flags {
			renameat2 = func(int, string, int, string, uint) error { return unix.EINVAL }
			defer func() { renameat2 = unix.Renameat2 }()
		}
		for _, from := range []string{"file", "folder", "link"} {
			for _, there := range []string{"", "file", "empty", "folder", "link"} {
				dir := t.TempDir()
				at := func(name string) string { return filepath.Join(dir, name) }
				make := func(what, name string) {
					switch what {
					case "file":
						testkit.Must(t, os.WriteFile(at(name), []byte(name), 0o600))
					case "empty":
						testkit.Must(t, os.Mkdir(at(name), 0o700))
					case "folder":
						testkit.Must(t, os.Mkdir(at(name), 0o700))
						testkit.Must(t, os.WriteFile(at(name)+"/in", []byte(name), 0o600))
					case "link":
						testkit.Must(t, os.Symlink("nowhere-"+name, at(name)))
					}
				}
				make(from, "from")
				make(there, "to")
				was, _ := os.Lstat(at("from"))
				has, _ := os.Lstat(at("to"))
				err := RenameNew(at("from"), at("to"))
				to, _ := os.Lstat(at("to"))
				if there == "" {
					if err != nil || !os.SameFile(was, to) || testkit.Exists(at("from")) {
						t.Errorf("flags %t, %s: %v", flags, from, err)
					}
				} else if !errors.Is(err, os.ErrExist) || !os.SameFile(has, to) || !testkit.Exists(at("from")) {
					t.Errorf("flags %t, %s to %s: %v", flags, from, there, err)
				}
			}
		}
		if err := RenameNew(filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "to")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}
