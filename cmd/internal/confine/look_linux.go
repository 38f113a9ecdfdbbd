package confine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Look says what is at a path, without following links.
func Look(path string) (Place, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return Absent, nil
	case errors.Is(err, unix.ELOOP):
		return BehindLink, nil
	case err != nil:
		return Absent, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Absent, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return BehindLink, nil
	case unix.S_IFDIR:
		return Directory, nil
	}
	return File, nil
}
