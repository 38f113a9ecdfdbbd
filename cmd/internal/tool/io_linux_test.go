package tool

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The file's mode follows the umask, as if it had been opened under its name.
func TestAtomicFileMode(t *testing.T) {
	for _, mask := range []int{0o022, 0o027, 0o077, 0} {
		old := unix.Umask(mask)
		for name, open := range openers() {
			path := filepath.Join(t.TempDir(), "out")
			a, err := open(path)
			if err == nil {
				err = a.Commit()
			}
			st, err2 := os.Stat(path)
			if err != nil || err2 != nil || st.Mode() != os.FileMode(0o666&^mask) {
				t.Errorf("%s, umask %03o: %v, %v, mode %v", name, mask, err, err2, st)
			}
		}
		unix.Umask(old)
	}
}

// A temporary file of another run with the same name is not changed.
func TestAtomicFileTempTaken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	taken := fmt.Sprintf(".runner-%d-0", os.Getpid())
	testkit.Must(t, os.WriteFile(filepath.Join(dir, taken), []byte("theirs"), 0o600))
	testkit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
	a, err := CreateAtomic(path)
	testkit.Must(t, err)
	defer a.Abort()
	_, err = a.WriteString("new")
	testkit.Must(t, err)
	testkit.Must(t, a.Commit())
	b, _ := os.ReadFile(path)
	theirs, _ := os.ReadFile(filepath.Join(dir, taken))
	if string(b) != "new" || string(theirs) != "theirs" || names(t, dir) != taken+" out" {
		t.Errorf("file %q, other's %q, directory %s", b, theirs, names(t, dir))
	}
}

// A stage whose standard input is a terminal reports this instead of waiting.
func TestTerminals(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testkit.Skip(t, "terminals", err)
	}
	defer tty.Close()
	if !IsTerminal(tty) || IsTerminal(io.Discard) {
		t.Error("IsTerminal cannot tell a terminal")
	}
	for _, args := range [][]string{nil, {"-"}} {
		_, _, err := OpenInput(&Env{Stdin: tty, Args: args, Name: "runner-test"})
		if code, e := codeOf(err); err == nil || code != ExitUsage || len(e.Hints) == 0 {
			t.Errorf("operands %q: %v", args, err)
		}
	}
	a := App{Name: "runner-test", Usage: usage, Run: func(_ context.Context, env *Env) error { return nil }}
	if code := a.Call(context.Background(), tty, io.Discard, io.Discard, nil); code != 0 {
		t.Errorf("exit %d", code)
	}
}
