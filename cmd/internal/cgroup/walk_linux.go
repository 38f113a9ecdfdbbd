package cgroup

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// walker goes through a tree of cgroups step by step, so that neither the length of a path nor
// the number of descriptors limits its depth: the command can make cgroups as deep as it likes.
type walker struct {
	at     *os.File // where it is
	levels []level  // from the top to there
}

// level is one cgroup on the way down.
type level struct {
	name string   // in the level above
	left []string // cgroups in it that were not visited yet
}

// step opens a cgroup next to an open one: a name in it, or "..". It follows neither links
// nor mounts.
func step(from *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat2(int(from.Fd()), name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// walk calls enter with the cgroup and with each cgroup below it, on the way down, and leave with
// each one below it, on the way up, as a name in the cgroup above. Both may be nil. One that is removed in the
// meantime is left out.
func walk(dir string, enter func(*os.File) error, leave func(parent *os.File, name string) error) error {
	top, err := Open(dir)
	if err != nil {
		return err
	}
	w := walker{at: top}
	defer func() { w.at.Close() }()
	if err := w.enter("", enter); err != nil {
		return err
	}
	for len(w.levels) > 0 {
		here := &w.levels[len(w.levels)-1]
		if len(here.left) == 0 {
			err = w.up(leave)
		} else {
			name := here.left[0]
			here.left = here.left[1:]
			err = w.down(name, enter)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter visits the cgroup in which it has just come.
func (w *walker) enter(name string, visit func(*os.File) error) error {
	entries, err := w.at.ReadDir(-1)
	if err == nil && visit != nil {
		err = visit(w.at)
	}
	if len(w.levels) > 0 && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)) {
		entries, err = nil, nil // it was removed
	}
	l := level{name: name}
	for _, e := range entries {
		if e.IsDir() {
			l.left = append(l.left, e.Name())
		}
	}
	w.levels = append(w.levels, l)
	return err
}

func (w *walker) down(name string, visit func(*os.File) error) error {
	next, err := step(w.at, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.at.Close()
	w.at = next
	return w.enter(name, visit)
}

func (w *walker) up(leave func(parent *os.File, name string) error) error {
	name := w.levels[len(w.levels)-1].name
	w.levels = w.levels[:len(w.levels)-1]
	if len(w.levels) == 0 {
		return nil
	}
	above, err := step(w.at, "..")
	if err != nil {
		return err
	}
	w.at.Close()
	w.at = above
	if leave == nil {
		return nil
	}
	return leave(above, name)
}

// readAt reads a file of an open cgroup.
func readAt(dir *os.File, name string) ([]byte, error) {
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(f)
}
