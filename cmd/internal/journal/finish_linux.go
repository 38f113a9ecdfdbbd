package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

func digestText(s string) string { return schemas.DigestOf(s) }

// change sets modes, owners, attributes and times of what keeps its content.
func (a *apply) change() error {
	return a.each(true, func(i int) bool { return a.items[i].InPlace }, func(i int) error {
		if s, err := a.where(i); err != nil || s == nil {
			return errors.Join(err, a.gone(s))
		}
		fd, st, err := a.t.open(a.path(i))
		if err != nil || fd < 0 {
			return errors.Join(err, errChanges)
		}
		defer unix.Close(fd)
		if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR {
			return &errForeign{"it is a directory"}
		}
		if err := a.attribute(i, fd); err != nil {
			return err
		}
		delete(a.t.opened, a.path(i))
		return nil
	})
}

func (a *apply) gone(s *seen) error {
	if s == nil {
		return &errForeign{"it is not there"}
	}
	return nil
}

// finish gives directories what they are to have in the end, deepest first, closes what was opened for a while, and comes back
// when all is on the disk.
func (a *apply) finish() error {
	paths := []string{}
	for i := range a.items {
		if isDir(a.goal(i)) {
			paths = append(paths, a.path(i))
		}
	}
	for path := range a.t.opened {
		if i, ok := a.at[path]; !ok || !isDir(a.goal(i)) {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(x, y string) int { // the directory itself is the last one
		return cmp.Or(cmp.Compare(b2i(x == root), b2i(y == root)), cmp.Compare(y, x))
	})
	// What only got another mode has no descriptor that could be synced.
	syncs := len(a.items) <= fewSyncs && !slices.ContainsFunc(a.items, func(it item) bool { return it.InPlace })
	for _, path := range paths {
		i, ok := a.at[path]
		err := error(nil)
		if ok && isDir(a.goal(i)) {
			if err = a.directory(i, syncs); err != nil {
				err = a.failed(i, err)
			}
		} else if !ok {
			err = a.t.shut(path)
		} else if a.goal(i) != nil {
			err = a.shutFile(i)
		}
		if err != nil {
			return err
		}
		delete(a.t.opened, path)
	}
	a.t.leave()
	if !syncs {
		at("sync of all")
		return unix.Syncfs(a.t.fd)
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// directory gives one directory what it is to have.
func (a *apply) directory(i int, sync bool) error {
	fd, st, err := a.t.open(a.path(i))
	if err != nil || fd < 0 {
		return errors.Join(err, a.gone(nil))
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return &errForeign{"it is no directory"}
	}
	var d *os.File
	if sync {
		real, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil && err != unix.EACCES {
			return err
		}
		if err == nil {
			d = os.NewFile(uintptr(real), a.path(i))
			defer d.Close()
		}
	}
	goal := a.goal(i)
	if a.items[i].Implied { // it is what it was but for names and, on the way back, its time
		n := *goal
		n.UID, n.GID, n.AnyXattrs, n.Mode = st.Uid, st.Gid, true, st.Mode&0o7777
		if mode, ok := a.t.opened[a.path(i)]; ok {
			n.Mode = mode
		}
		n.AnyTime = !a.back
		err = attribute(fd, &n, &n, func(string, error) {})
	} else {
		err = a.attribute(i, fd)
	}
	if err == nil && d != nil {
		at("sync of a directory")
		err = d.Sync()
	}
	return err
}

// shutFile takes the rights away that the owner got to read a file that was in place before.
func (a *apply) shutFile(i int) error {
	fd, st, err := a.t.open(a.path(i))
	if err != nil || fd < 0 {
		return nil // verify names it
	}
	defer unix.Close(fd)
	mode := a.goal(i).Mode
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o7777 == mode || st.Mode&0o7777 != mode|ownerRights {
		return nil
	}
	at("shut")
	return unix.Chmod(handle(fd), mode)
}

// shut gives what was opened for a while its mode back. It may be gone.
func (t *target) shut(path string) error {
	fd, _, err := t.open(path)
	if noDir(err) || err == nil && fd < 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	at("shut")
	if err := unix.Chmod(handle(fd), t.opened[path]); err != nil {
		return fmt.Errorf("%s: its mode: %w", shown(path), err)
	}
	return nil
}

// shutAll closes all that was opened for a while, deepest first.
func (t *target) shutAll() error {
	paths := make([]string, 0, len(t.opened))
	for path := range t.opened {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(x, y string) int {
		return cmp.Or(cmp.Compare(b2i(x == root), b2i(y == root)), cmp.Compare(y, x))
	})
	var errs []error
	for _, path := range paths {
		if err := t.shut(path); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(t.opened, path)
	}
	t.leave()
	return errors.Join(errs...)
}

// verify looks at all names once more, and says what each one is now.
func (a *apply) verify() ([]receipt, error) {
	list := make([]receipt, len(a.items))
	for i := range a.items {
		list[i].Path = a.items[i].Path
		n, err := a.is(i)
		if err != nil {
			if err = a.failed(i, err); err != nil {
				return nil, err
			}
		}
		list[i].Now = n
	}
	return list, nil
}

// is is what one name is, which must be what it is to be.
func (a *apply) is(i int) (*node, error) {
	goal := a.goal(i)
	s, err := a.t.look(a.path(i), goal != nil && goal.SHA256 != "")
	if goal == nil && (noDir(err)) {
		return nil, nil
	}
	switch {
	case err != nil:
		return nil, err
	case s == nil && goal == nil:
		return nil, nil
	case s == nil:
		return nil, a.gone(nil)
	case goal == nil:
		return nil, &errForeign{"it is still there"}
	}
	n := s.node
	if a.items[i].Implied {
		n.AnyTime, n.AnyXattrs = true, true
		if n.Kind != tree.Dir {
			return nil, &errForeign{"it is no directory"}
		}
		return &n, nil
	}
	if goal.Link != "" {
		n.Link, n.Size, n.SHA256 = goal.Link, 0, ""
		s.Size = 0
	}
	if why := a.same(i, s); why != "" {
		return nil, &errForeign{why}
	}
	return &n, a.group(i, s)
}

// group checks that a name is the same file as the names that it is to be the same file as, and no others.
func (a *apply) group(i int, s *seen) error {
	goal := a.goal(i)
	if goal.Kind != tree.File {
		return nil
	}
	if goal.Link != "" {
		of, err := a.t.look(string(goal.Link), false)
		if err != nil || of == nil || of.ino != s.ino || of.dev != s.dev {
			return errors.Join(err, &errForeign{fmt.Sprintf("it is not the same file as %s", shown(string(goal.Link)))})
		}
		return nil
	}
	if want := uint64(a.many[a.path(i)]); s.links != want {
		return &errForeign{fmt.Sprintf("the file has %d names, expected %d", s.links, want)}
	}
	return nil
}
