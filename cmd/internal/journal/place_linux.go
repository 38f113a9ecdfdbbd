package journal

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// place renames what was made into place.
func (a *apply) place() error {
	return a.each(true, a.made, func(i int) error {
		dir, err := a.parent(i)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if unix.Fstatat(dir, a.temp(i), &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			return nil // it was in place before, or could not be made
		}
		return a.rename(i, dir)
	})
}

// rename puts what was made in the place of what is there, if that is as it was.
func (a *apply) rename(i, dir int) error {
	s, err := a.where(i)
	if err == nil && s != nil && s.Kind == tree.Dir {
		err = &errForeign{"it is a directory"}
	}
	if err != nil {
		unix.Unlinkat(dir, a.temp(i), 0)
		return err
	}
	if dir, err = a.parent(i); err != nil {
		return err
	}
	_, base := cut(a.path(i))
	if s != nil {
		return a.exchange(i, dir, base, s)
	}
	at("rename")
	if err = renameNew(dir, a.temp(i), base); err != nil {
		unix.Unlinkat(dir, a.temp(i), 0)
	}
	if err == unix.EEXIST {
		err = &errForeign{"it is there already"}
	}
	return err
}

// flagless reports whether a file system knows no flags of renameat2.
func flagless(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// renameat2 is replaced by a test that has no file system without flags.
var renameat2 = unix.Renameat2

// renameNew gives what is no directory a name that nothing has. What somebody else put there meanwhile stays.
func renameNew(dir int, from, to string) error {
	err := renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if !flagless(err) {
		return err
	}
	if err = unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}

// exchange puts what was made in the place of s. Who looks and then renames over it would take what somebody else puts there between the
// two: both change their names, and what comes out is looked at before it is removed. If it is not s, it gets its place back.
func (a *apply) exchange(i, dir int, base string, s *seen) error {
	temp := a.temp(i)
	var ours unix.Stat_t
	if err := unix.Fstatat(dir, temp, &ours, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	at("rename")
	err := renameat2(dir, temp, dir, base, unix.RENAME_EXCHANGE)
	switch {
	case flagless(err):
		if err = unix.Renameat(dir, temp, dir, base); err != nil {
			unix.Unlinkat(dir, temp, 0)
		}
		return err
	case err != nil:
		unix.Unlinkat(dir, temp, 0)
		if err == unix.ENOENT {
			err = &errForeign{"it is not there"}
		}
		return err
	}
	at("exchanged")
	if s.still(dir, temp) {
		return unix.Unlinkat(dir, temp, 0)
	}
	if err := renameat2(dir, temp, dir, base, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("somebody else replaced it; what was there is %s now, and was not put back: %w", temp, err)
	}
	var now unix.Stat_t
	if err := unix.Fstatat(dir, temp, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil || now.Dev != ours.Dev || now.Ino != ours.Ino {
		return fmt.Errorf("somebody else replaced it again and again; what was there is %s now", temp)
	}
	unix.Unlinkat(dir, temp, 0)
	return &errForeign{"it was replaced"}
}

// still reports whether a name is that of what was seen, and nobody wrote to it since.
func (s *seen) still(dir int, name string) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false
	}
	return uint64(st.Dev) == s.dev && st.Ino == s.ino && int64(st.Mtim.Sec) == s.Sec && int64(st.Mtim.Nsec) == s.Nsec && (s.Kind != tree.File || uint64(st.Size) == s.Size)
}

// takeAway removes what is no directory, if it is still s. It gets another name first, so that what somebody else puts there
// between a look and the removal is not removed.
func (a *apply) takeAway(i, dir int, base string, s *seen) error {
	at("remove")
	temp := a.temp(i)
	err := renameat2(dir, base, dir, temp, unix.RENAME_NOREPLACE)
	switch {
	case flagless(err), err == unix.ENOSPC, err == unix.EDQUOT: // another name can need room
		return unix.Unlinkat(dir, base, 0)
	case err == unix.ENOENT:
		return &errForeign{"it is not there"}
	case err != nil:
		return err
	}
	at("taken away")
	if s.still(dir, temp) {
		return unix.Unlinkat(dir, temp, 0)
	}
	if err := renameat2(dir, temp, dir, base, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("somebody else replaced it; what was there is %s now, and was not put back: %w", temp, err)
	}
	return &errForeign{"it was replaced"}
}

// drop removes one name if it is as it was.
func (a *apply) drop(i int) error {
	s, err := a.where(i)
	if err != nil || s == nil {
		return err
	}
	if goal := a.goal(i); goal != nil && isDir(&s.node) == isDir(goal) {
		return nil // done before
	}
	dir, err := a.parent(i)
	if err != nil {
		return err
	}
	_, base := cut(a.path(i))
	flags := 0
	if s.Kind == tree.Dir {
		flags = unix.AT_REMOVEDIR
		if a.t.in == a.path(i) {
			a.t.leave()
		}
	}
	if flags == 0 {
		return a.takeAway(i, dir, base, s)
	}
	at("remove")
	err = unix.Unlinkat(dir, base, flags)
	if err == unix.ENOTEMPTY || err == unix.EEXIST {
		return &errForeign{"it holds something that is no part of the change"}
	}
	return err
}

// link gives files their other names.
func (a *apply) link() error {
	return a.each(true, a.linked, func(i int) error {
		to := string(a.goal(i).Link)
		of, err := a.t.look(to, false)
		if err == nil && (of == nil || of.Kind != tree.File) {
			err = &errForeign{fmt.Sprintf("the file %s that it is to be a link to is not there", shown(to))}
		}
		if err != nil {
			return err
		}
		s, err := a.where(i)
		if err != nil || s != nil && s.ino == of.ino && s.dev == of.dev {
			return err
		}
		dir, err := a.parent(i)
		if err != nil {
			return err
		}
		if dir, err = unix.Openat(dir, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		defer unix.Close(dir)
		above, base := cut(to)
		from, err := a.t.dir(above)
		if err != nil {
			return err
		}
		at("link")
		if err := unix.Linkat(from, base, dir, a.temp(i), 0); err != nil {
			return err
		}
		return a.rename(i, dir)
	})
}
