package tool

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"
)

// OpenInput opens the single FILE operand, or standard input when there is none
// or it is "-". It refuses a terminal. The
// returned name is for messages.
func OpenInput(env *Env) (io.ReadCloser, string, error) {
	if len(env.Args) > 1 {
		return nil, "", Usagef("unexpected operand %q: at most one FILE is read", env.Args[1])
	}
	if len(env.Args) == 1 && env.Args[0] != "-" {
		f, err := os.Open(env.Args[0])
		if err != nil {
			return nil, "", CannotRead(env.Args[0], err)
		}
		if st, err := f.Stat(); err == nil && st.IsDir() {
			f.Close()
			return nil, "", Fail(ExitInput, fmt.Errorf("%s is a directory, expected a file", shown(env.Args[0])), "name the file as the stage before it wrote it; what was unpacked from it is not the same")
		}
		return f, env.Args[0], nil
	}
	if f, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, "", Fail(ExitUsage, fmt.Errorf("standard input is a terminal"), "name a file, or pipe the output of the previous stage into it; see "+env.Name+" --help")
	}
	return io.NopCloser(env.Stdin), "stdin", nil
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// AtomicFile is a file that gets its name only on Commit. If the file system allows it,
// the file has no name at all before that, so even SIGKILL leaves nothing.
type AtomicFile struct {
	*os.File
	name   string // as it was given
	path   string
	temp   string // "" while nameless
	device bool   // written in place
	done   bool
}

// CreateAtomic opens a nameless or temporary file in path's directory, or the character device
// that is there. A symlink is followed, so that "-o /dev/stdout" into a file replaces that file and not the link.
func CreateAtomic(path string) (*AtomicFile, error) {
	name := filepath.Clean(path)
	at, err := os.Stat(path)
	device := err == nil && isDevice(at)
	if err == nil && at.IsDir() {
		return nil, ErrDirectory
	}
	if err == nil && !device && !at.Mode().IsRegular() {
		return nil, fmt.Errorf("%s exists and is neither a regular file nor a character device", shown(path))
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("following the symlink: %w", err)
		}
	}
	if device {
		return openDevice(path)
	}
	return createIn(name, path)
}

func createIn(name, path string) (*AtomicFile, error) {
	dir := filepath.Dir(path)
	if f, err := openNameless(dir); err == nil {
		return &AtomicFile{File: f, name: name, path: path}, nil
	}
	f, err := os.CreateTemp(dir, ".runner-*")
	if err != nil {
		return nil, cause(err) // it has the name of the temporary file
	}
	return &AtomicFile{File: f, name: name, path: path, temp: f.Name()}, nil
}

// Write writes to the file. Its error names no file: the one that there is has another name, or none.
func (a *AtomicFile) Write(b []byte) (int, error) {
	n, err := a.File.Write(b)
	if err != nil {
		err = cause(err)
	}
	return n, err
}

// Again opens another file for the same path, as it was when a was opened: a symlink that was
// put there since is replaced, not followed.
func (a *AtomicFile) Again() (*AtomicFile, error) {
	if a.device {
		return openDevice(a.path)
	}
	return createIn(a.name, a.path)
}

// Path is the path that the file gets: the given one, or the target of a symlink there.
func (a *AtomicFile) Path() string { return a.path }

// Commit makes the content durable and gives the file its name, replacing an
// older file of that name in one step.
func (a *AtomicFile) Commit() error { return cause(a.commit()) }

func (a *AtomicFile) commit() error {
	if a.device {
		a.done = true
		return a.Close()
	}
	if err := a.Chmod(fileMode()); err != nil {
		return err
	}
	if err := GiveToInvoker(a.File); err != nil {
		return err
	}
	if err := a.Sync(); err != nil {
		return err
	}
	if a.temp == "" {
		if err := linkNameless(a.File, a.path); err == nil {
			a.done = true
			return a.Close()
		} else if !os.IsExist(err) {
			return err
		}
		if err := a.linkTemp(); err != nil {
			return err
		}
	}
	if err := a.replace(); err != nil {
		return err
	}
	a.done = true
	return a.Close()
}

// linkTemp gives a nameless file a temporary name, because linking cannot replace an
// older file, but renaming can. A name that exists already belongs to another process.
func (a *AtomicFile) linkTemp() (err error) {
	for i := range 100 {
		temp := filepath.Join(filepath.Dir(a.path), fmt.Sprintf(".runner-%d-%d", os.Getpid(), i))
		if err = linkNameless(a.File, temp); err == nil {
			a.temp = temp
			return nil
		}
		if !os.IsExist(err) {
			return err
		}
	}
	return err
}

// Abort discards the file unless it was committed.
func (a *AtomicFile) Abort() {
	if a.done {
		return
	}
	a.done = true
	a.Close()
	if a.temp != "" {
		os.Remove(a.temp)
	}
}

func fileMode() fs.FileMode { return 0o666 &^ umask() }

// Spool opens a nameless scratch file in the directory for temporary files. No other process
// may open it, see guardScratch.
func Spool() (*os.File, error) {
	f, err := Nameless()
	if err == nil {
		guardScratch(f)
	}
	return f, err
}

// Nameless opens a nameless file in the directory for temporary files, for a process that
// opens it by its descriptor.
func Nameless() (*os.File, error) {
	if f, err := openNameless(os.TempDir()); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp("", "runner-*")
	if err != nil {
		return nil, ScratchError(err)
	}
	removeOpen(f)
	return f, nil
}

// ReadFile reads a small file: of more than most bytes it is not what the tool expects.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, CannotRead(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, CannotRead(name, err)
	}
	if int64(len(b)) > most {
		return nil, Failf(ExitInput, "%s has more than %d bytes", shown(name), most)
	}
	return b, nil
}
