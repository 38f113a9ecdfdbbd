// Package scratch makes directories that end with the process: who makes one holds its lock, which the kernel drops when the
// process ends, also by SIGKILL. The next start of the same tool removes what nobody holds.
package scratch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Dir is a directory whose lock this process holds.
type Dir struct {
	Path string
	held *os.File // nil where there are no locks: the next start leaves such a directory alone then
}

// File is the open directory, nil where there are no locks.
func (d *Dir) File() *os.File { return d.held }

// errTaken is a directory that was made and was removed before its maker had the lock.
var errTaken = errors.New("the directory was removed while it was made")

// ErrNoLock means that a file system has no locks.
var ErrNoLock = errors.New("no lock can be taken there")

// tries is how often somebody who starts at the same time can be in the way.
const tries = 20

// afterMake is called before the lock of a new directory is taken, for tests.
var afterMake = func(string) {}

// New makes an empty directory of mode 0700 in the one for temporary files, and removes those that dead processes made there
// with the same name.
func New(name string) (*Dir, error) {
	top, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, tool.ScratchError(err)
	}
	d, err := In(top, name)
	if err != nil {
		return nil, tool.ScratchError(err)
	}
	return d, nil
}

// In is New for another place.
func In(parent, name string) (*Dir, error) {
	mark := name + ".tmp."
	Sweep(parent, regexp.MustCompile(`^`+regexp.QuoteMeta(mark)+`[0-9]+$`))
	for range tries {
		path, err := os.MkdirTemp(parent, mark)
		if err != nil {
			return nil, err
		}
		d, err := take(path)
		switch {
		case errors.Is(err, ErrNoLock): // a name that nobody sweeps: the lock says nothing
			os.Remove(path)
			path, err = os.MkdirTemp(parent, name+"-")
			return &Dir{Path: path}, err
		case !errors.Is(err, errTaken):
			return d, err
		}
	}
	return nil, errTaken
}

// At makes a directory with a given name and mode. What a dead process left under that name is removed before; the error is
// fs.ErrExist if the one who made it lives, and ErrNoLock where that cannot be told. The caller sees to it that
// nobody else makes such names there.
func At(path string, mode fs.FileMode) (*Dir, error) {
	err := os.Mkdir(path, mode)
	for range tries {
		if err == nil {
			d, err := take(path)
			if !errors.Is(err, errTaken) {
				if errors.Is(err, ErrNoLock) {
					os.Remove(path)
				}
				return d, err
			}
		} else if !errors.Is(err, fs.ErrExist) || !removeDead(path) {
			return nil, err
		}
		err = os.Mkdir(path, mode)
	}
	return nil, err
}

// take takes the lock of a directory that this process has just made.
func take(path string) (*Dir, error) {
	afterMake(path)
	f, err := openDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	if err := lock(f, true); err != nil { // who sweeps holds it for a moment
		f.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoLock, err)
	}
	if !names(path, f) {
		f.Close()
		return nil, errTaken
	}
	return &Dir{Path: path, held: f}, nil
}

// names reports whether a path is still that of an open directory.
func names(path string, f *os.File) bool {
	mine, err := f.Stat()
	now, gone := os.Lstat(path)
	return err == nil && gone == nil && os.SameFile(mine, now)
}

// Lock takes the lock of a directory that is there, and waits for it. ok is false where there are no locks.
func Lock(path string) (release func(), ok bool) {
	f, err := openDir(path)
	if err != nil {
		return func() {}, false
	}
	if lock(f, true) != nil {
		f.Close()
		return func() {}, false
	}
	return func() { f.Close() }, true
}

// Sweep removes the directories in a place whose names match and that only this user can have made, if their makers are dead:
// a live one holds the lock. What cannot be removed stays. Only names that New, In or At make may match.
func Sweep(parent string, match *regexp.Regexp) {
	top, err := os.Open(parent)
	if err != nil {
		return
	}
	defer top.Close()
	var dead []string
	for err == nil {
		var list []string
		list, err = top.Readdirnames(1000)
		for _, name := range list {
			if match.MatchString(name) {
				dead = append(dead, name)
			}
		}
	}
	if err == io.EOF {
		for _, name := range dead {
			removeDead(filepath.Join(parent, name))
		}
	}
}

// removeDead removes a directory that nobody holds, and reports whether it did.
func removeDead(path string) bool {
	f, err := openDir(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if !own(path, f) || lock(f, false) != nil || !names(path, f) {
		return false
	}
	return wipe(path, f) == nil
}

// wipe removes a directory and all in it. It goes through the open directory: what somebody else put under the name is not touched.
func wipe(path string, f *os.File) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(mine, now) {
		return errTaken
	}
	fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && name != "." {
			root.Chmod(name, 0o700) // a program can have made one that its owner may not write
		}
		return nil
	})
	list, err := fs.ReadDir(root.FS(), ".")
	for _, e := range list {
		err = errors.Join(err, root.RemoveAll(e.Name()))
	}
	if err != nil {
		return err
	}
	return os.Remove(path) // it is empty, so that nothing is lost if it is another one by now
}

// Remove removes the directory and all in it.
func (d *Dir) Remove() error {
	if d == nil {
		return nil
	}
	if d.held == nil {
		return os.RemoveAll(d.Path)
	}
	err := wipe(d.Path, d.held)
	d.held.Close()
	return err
}
