//go:build unix

package still

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestOurs: a directory that somebody else could have filled is not taken.
func TestOurs(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, Ours(dir+"/new"))
	testkit.Must(t, Ours(dir+"/new"))
	testkit.Must(t, os.Mkdir(dir+"/open", 0o700))
	testkit.Must(t, os.Chmod(dir+"/open", 0o777))
	testkit.Must(t, os.Symlink(dir+"/new", dir+"/link"))
	testkit.Must(t, os.WriteFile(dir+"/file", nil, 0o644))
	for _, name := range []string{"open", "link", "file"} {
		if Ours(dir+"/"+name) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	testkit.Must(t, Install(dir+"/new"))
	at := filepath.Join(dir, "new", nodeShim)
	want, err := os.ReadFile(at)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(at, []byte("other"), 0o644))
	testkit.Must(t, Install(dir+"/new"))
	if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the shim is %.20q: %v", got, err)
	}
}
