package box

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
)

// shown is a directory of ours that the box would hide: one below a directory that it has a fresh one of.
type shown struct {
	path string
	fd   int // of a copy of its mount
}

type shownList []shown

// ours are the directory of our own programs, if the command is one of them, and that of the logs which runner-exec collects.
func (p *place) ours() (list shownList, err error) {
	var dirs []string
	if len(p.conf.Command) > 0 && slices.Contains(wrap.Names[:], path.Base(p.conf.Command[0])) {
		dirs = append(dirs, p.conf.Tools)
	}
	if p.conf.State.Logs != "" {
		logs, err := filepath.EvalSymlinks(p.conf.State.Logs)
		if err != nil {
			return nil, fmt.Errorf("looking for the logs of the run: %w", err)
		}
		if within(logs, p.conf.Workdir) {
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("the logs of the run are in %s, and there the box has its workspace %s", schemas.Text(logs), schemas.Text(p.conf.Workdir)),
				"name another --workdir, or another directory for temporary files: TMPDIR=DIR")
		}
		dirs = append(dirs, logs)
	}
	for _, dir := range dirs {
		if !slices.ContainsFunc(fresh[:], func(f freshDir) bool { return within(dir, f.path) }) && !within(dir, freshShm) {
			continue
		}
		s, err := copyMount(dir)
		if err != nil {
			list.close()
			return nil, fmt.Errorf("showing %s in the box: %w", schemas.Text(dir), err)
		}
		list = append(list, s)
	}
	return list, nil
}

// within reports whether a path is a directory or below it. Both are absolute and clean.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// copyMount makes a read-only copy of the mount of a directory. A FIFO in it can be written to all the same.
func copyMount(dir string) (shown, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return shown{}, err
	}
	if err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID}); err != nil {
		unix.Close(fd)
	}
	return shown{dir, fd}, err
}

// show puts them into the box, those below /dev when there is one.
func (l shownList) show(stage string, dev bool) error {
	for _, s := range l {
		if within(s.path, freshShm) != dev {
			continue
		}
		at := stage + s.path
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(s.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("showing %s in the box: %w", schemas.Text(s.path), err)
		}
	}
	return nil
}

func (l shownList) close() {
	for _, s := range l {
		unix.Close(s.fd)
	}
}
