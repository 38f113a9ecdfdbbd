package journal

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// withoutFlags makes the file system one that knows no flags of renameat2.
func withoutFlags(t *testing.T) {
	renameat2 = func(int, string, int, string, uint) error { return unix.EINVAL }
	t.Cleanup(func() { renameat2 = unix.Renameat2 })
}

// TestMadeInBetween: what somebody else puts at a name between the look and the rename or the removal stays there.
func TestMadeInBetween(t *testing.T) {
	for name, x := range map[string]struct {
		before, step, script string
		change               Transition
		path, want           string // what is at path in the end
		says                 string
		flagless             bool // holds on file systems without flags too
	}{
		"made":                     {"", "rename", "printf mine >f", Transition{"f", nil, file("new")}, "f", "mine", "f: somebody else changed it: it is there already", true},
		"made, a symlink":          {"", "rename", "printf mine >m; ln -s m f", Transition{"f", nil, link("x")}, "m", "mine", "f: somebody else changed it: it is there already", true},
		"made, a directory":        {"", "rename", "mkdir f; printf mine >f/m", Transition{"f", nil, file("new")}, "f/m", "mine", "f: somebody else changed it: it is there already", true},
		"replaced":                 {"printf old >f", "rename", "printf mine >m; mv m f", Transition{"f", file("old"), file("new")}, "f", "mine", "f: somebody else changed it: it was replaced", false},
		"replaced, a directory":    {"printf old >f", "rename", "rm f; mkdir f; printf mine >f/m", Transition{"f", file("old"), file("new")}, "f/m", "mine", "f: somebody else changed it: it was replaced", false},
		"written to":               {"printf old >f", "rename", "printf mine >f", Transition{"f", file("old"), file("new")}, "f", "mine", "f: somebody else changed it: it was replaced", false},
		"gone":                     {"printf old >f; printf mine >m", "rename", "rm f", Transition{"f", file("old"), file("new")}, "m", "mine", "f: somebody else changed it: it is not there", false},
		"replaced by a symlink":    {"printf old >f; printf mine >m", "rename", "ln -sf m f", Transition{"f", file("old"), file("new")}, "f", "mine", "f: somebody else changed it: it was replaced", false},
		"to be gone, replaced":     {"printf old >f", "remove", "printf mine >m; mv m f", Transition{"f", file("old"), nil}, "f", "mine", "f: somebody else changed it: it was replaced", false},
		"to be gone, written to":   {"printf old >f", "remove", "printf mine >f", Transition{"f", file("old"), nil}, "f", "mine", "f: somebody else changed it: it was replaced", false},
		"to be gone, gone":         {"printf old >f; printf mine >m", "remove", "rm f", Transition{"f", file("old"), nil}, "m", "mine", "f: somebody else changed it: it is not there", false},
		"to be gone, now a folder": {"printf old >f", "remove", "rm f; mkdir f; printf mine >f/m", Transition{"f", file("old"), nil}, "f/m", "mine", "f: somebody else changed it: it was replaced", false},
	} {
		for _, flags := range []bool{true, false} {
			if !flags && !x.flagless {
				continue
			}
			t.Run(strings.Join([]string{name, map[bool]string{true: "with flags", false: "without flags"}[flags]}, ", "), func(t *testing.T) {
				if !flags {
					withoutFlags(t)
				}
				at := room(t)
				testkit.Must(t, os.Mkdir(at+"/target", 0o755))
				shell(t, at+"/target", x.before)
				j := open(t, at+"/journal")
				when(t, x.step, func() { shell(t, at+"/target", x.script) })
				_, err := j.Commit(background, &Transaction{ID: "tx", Dir: at + "/target", Transitions: []Transition{x.change}, Content: texts("new", "old")}, nil)
				var u *UndoneError
				if !errors.As(err, &u) || !strings.Contains(err.Error(), x.says) {
					t.Errorf("%v, expected %q", err, x.says)
				}
				if b, err := os.ReadFile(at + "/target/" + x.path); err != nil || string(b) != x.want {
					t.Errorf("%s: %q, %v", x.path, b, err)
				}
				for _, name := range testkit.Names(t, at+"/target") {
					if strings.HasPrefix(name, ".") {
						t.Errorf("%s stays", name)
					}
				}
			})
		}
	}
}

// TestWithoutFlags: a commit and its revert do the same where the file system knows no flags of renameat2.
func TestWithoutFlags(t *testing.T) {
	withoutFlags(t)
	at, before, tx := begun(t)
	j := open(t, at+"/journal")
	_, err := j.Commit(background, tx, nil)
	testkit.Must(t, err)
	after := picture(t, at+"/target")
	if strings.Join(after, "\n") == strings.Join(before, "\n") {
		t.Error("nothing was changed")
	}
	_, err = j.Revert(background, tx.ID, nil)
	testkit.Must(t, err)
	equal(t, "reverted", picture(t, at+"/target"), before)
}
