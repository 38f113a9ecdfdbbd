package box

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// fresh are the directories that are empty at first, and gone at the end.
var fresh = [...]freshDir{{"/tmp", 0o1777}, {"/run", 0o755}, {"/var/tmp", 0o1777}}

// freshShm is one too, below a /dev that is made anew.
const freshShm = "/dev/shm"

type freshDir struct {
	path string
	mode uint32
}

// own are the places in the root that are not copied from outside.
var own = map[string]bool{"tmp": true, "run": true, "proc": true, "dev": true}

// place is the box's file tree while it is made, and the workspace.
type place struct {
	conf      Config
	stage     string   // where the new root is mounted until it is the root
	workspace string   // schemas.WorkspaceOverlay, …
	base      int      // descriptor of the base's directory, or -1
	work      int      // descriptor of the workspace, once process 1 is in the box
	upper     int      // descriptor of what the overlay holds of its own, or -1
	fresh     []string // the directories of fresh that there are
}

// build makes the mounts of the box. Process 1 has a mount namespace of its own.
func build(c Config) (*place, error) {
	p := &place{conf: c, base: -1, work: -1, upper: -1}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making the mounts private: %w", err)
	}
	base, err := p.open()
	if err != nil {
		return nil, err
	}
	if base != nil {
		defer base.Close()
	}
	resolver := resolverFile()
	ours, err := p.ours()
	if err != nil {
		return nil, err
	}
	defer ours.close()
	if err := p.mountStage(); err != nil {
		return nil, err
	}
	steps := []func() error{p.copyRoot, p.makeWorkdir, p.makeReadOnly, p.makeFresh, func() error { return resolver.put(p.stage) }, func() error { return ours.show(p.stage, false) },
		func() error { return p.makeWorkspace(base) }, p.makeDev, p.makeProc, func() error { return ours.show(p.stage, true) }}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := unix.Sethostname([]byte("box")); err != nil {
		return nil, fmt.Errorf("setting the host name: %w", err)
	}
	return p, nil
}

// open opens the base, which must be what was looked at outside.
func (p *place) open() (*os.File, error) {
	if p.conf.Kind == BaseNone {
		return nil, nil
	}
	f, err := os.Open(p.conf.Base)
	if err != nil {
		return nil, tool.CannotRead(p.conf.Base, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Dev != p.conf.Device || st.Ino != p.conf.Inode {
		f.Close()
		return nil, tool.Failf(tool.ExitOwn, "the base %s was replaced meanwhile", schemas.Text(p.conf.Base))
	}
	return f, nil
}

// mountStage mounts an empty file system over a directory that the box does not need. It becomes the root.
func (p *place) mountStage() (err error) {
	for _, dir := range []string{"/tmp", "/run", "/mnt", "/dev"} {
		if err = mountTmpfs(dir, "mode=0755"); err == nil {
			p.stage = dir
			return nil
		}
	}
	return fmt.Errorf("mounting the root of the box: %w", err)
}

func mountTmpfs(at, options string) error {
	return unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// copyRoot shows what is in the root outside, with all that is mounted below.
func (p *place) copyRoot() error {
	list, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("reading the root: %w", err)
	}
	for _, d := range list {
		if own[d.Name()] {
			continue
		}
		if err := p.copy(d); err != nil {
			return fmt.Errorf("showing /%s in the box: %w", schemas.Text(d.Name()), err)
		}
	}
	return nil
}

func (p *place) copy(d os.DirEntry) error {
	from, to := "/"+d.Name(), p.stage+"/"+d.Name()
	switch {
	case d.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case d.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	case d.Type().IsRegular():
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	default: // a FIFO, a socket or a device in the root
		return nil
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makeWorkdir makes the directory where the workspace comes. A new one can be made only in the root, and below the
// fresh directories, which come later.
func (p *place) makeWorkdir() error {
	if p.inFresh() {
		return nil
	}
	top, rest, _ := strings.Cut(p.conf.Workdir[1:], "/")
	if _, err := os.Lstat("/" + top); errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(path.Join(p.stage, top, rest), 0o755)
	}
	real, err := filepath.EvalSymlinks(p.conf.Workdir)
	if err == nil && real == p.conf.Workdir {
		return nil
	}
	return tool.Fail(tool.ExitOwn, fmt.Errorf("--workdir %s: there is no such directory, and the box cannot make one below /%s, which is read-only", schemas.Text(p.conf.Workdir), schemas.Text(top)),
		"name a directory that exists without links, one below /tmp, or a new one in the root, such as "+Workdir)
}

// inFresh reports whether the workspace is below a fresh directory.
func (p *place) inFresh() bool {
	for _, f := range fresh {
		if strings.HasPrefix(p.conf.Workdir, f.path+"/") {
			return true
		}
	}
	return false
}

// makeReadOnly makes all that is there read-only. Devices in it cannot be opened: the kernel opens those for writing on a
// read-only mount too.
func (p *place) makeReadOnly() error {
	for _, d := range []string{"tmp", "run", "proc", "dev"} {
		if err := os.Mkdir(p.stage+"/"+d, 0o755); err != nil {
			return err
		}
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, p.stage, unix.AT_RECURSIVE, attr); err != nil {
		return missing(NoReadOnly, fmt.Errorf("making the root of the box read-only (Linux 5.12): %w", err))
	}
	return nil
}

// makeFresh mounts the directories for temporary files.
func (p *place) makeFresh() error {
	for _, f := range fresh {
		at := p.stage + f.path
		if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
			continue // no /var/tmp outside
		} else if err != nil {
			return err
		}
		if err := mountTmpfs(at, fmt.Sprintf("mode=%o", f.mode)); err != nil {
			return fmt.Errorf("mounting %s: %w", f.path, err)
		}
		if u := p.conf.State.User; u != nil && f.mode&0o1000 == 0 {
			if err := os.Chown(at, int(u.UID), int(u.GID)); err != nil {
				return err
			}
		}
		p.fresh = append(p.fresh, f.path)
	}
	if p.inFresh() {
		return os.MkdirAll(p.stage+p.conf.Workdir, 0o755)
	}
	return nil
}

// resolver is the resolver's configuration where it is in a directory that the box has a fresh one of.
type resolver struct {
	path string
	text []byte
}

func resolverFile() *resolver {
	at, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return nil
	}
	for _, f := range fresh {
		if strings.HasPrefix(at, f.path+"/") {
			if text, err := os.ReadFile(at); err == nil {
				return &resolver{at, text}
			}
		}
	}
	return nil
}

func (r *resolver) put(stage string) error {
	if r == nil {
		return nil
	}
	if err := os.MkdirAll(path.Dir(stage+r.path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(stage+r.path, r.text, 0o644)
}

// enter makes the stage the root, and takes the old one away.
func (p *place) enter(workdir string) (err error) {
	if err := unix.Chdir(p.stage); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return missing(NoReadOnly, fmt.Errorf("changing the root: %w", err), "on a root that the kernel unpacked at boot (rootfs) this is not possible")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("taking the old root away: %w", err)
	}
	if p.work, err = unix.Open(workdir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	return unix.Fchdir(p.work)
}
