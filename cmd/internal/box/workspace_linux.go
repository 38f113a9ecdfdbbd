package box

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// maxTar is how many bytes the files of a base tar may have. They are kept in memory.
const maxTar = 64 << 30

// makeWorkspace puts the workspace where it belongs. What the program writes there is kept in memory, as in the fresh
// directories, and gone at the end.
func (p *place) makeWorkspace(base *os.File) error {
	store := p.stage + "/proc" // which comes later
	if err := mountTmpfs(store, "mode=0700"); err != nil {
		return fmt.Errorf("mounting the workspace: %w", err)
	}
	files, work := store+"/files", store+"/work"
	for _, d := range []string{files, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := p.like(base, files); err != nil {
		return err
	}
	var err error
	switch p.conf.Kind {
	case BaseNone:
		p.workspace = schemas.WorkspaceEmpty
	case schemas.BaseTar:
		p.workspace = schemas.WorkspaceUnpacked
		err = p.unpack(base, files)
	case schemas.BaseDir:
		p.workspace = schemas.WorkspaceOverlay
		if err = p.overlay(base, files, work); err == nil {
			break
		}
		if p.conf.Fallback != FallbackCopy {
			return missing(NoOverlay, fmt.Errorf("mounting an overlay on the base: %w", err), "--fallback copy works on a copy of it")
		}
		p.workspace, p.upper = schemas.WorkspaceCopy, -1
		err = tree.Copy(int(base.Fd()), files, p.self())
	}
	if err == nil && p.workspace != schemas.WorkspaceOverlay {
		err = p.show(files)
	}
	if err == nil {
		err = unix.Unmount(store, unix.MNT_DETACH) // the workspace keeps what it needs of it
	}
	return err
}

// like gives the workspace the mode and the owner of the base; without a directory they are the program's.
func (p *place) like(base *os.File, dir string) error {
	if p.conf.Kind == schemas.BaseDir {
		var st unix.Stat_t
		if err := unix.Fstat(int(base.Fd()), &st); err != nil {
			return err
		}
		if !p.conf.Narrow { // else it is our own, as all that we may change
			if err := os.Lchown(dir, int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
		if err := unix.Chmod(dir, st.Mode&0o7777); err != nil {
			return err
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{st.Mtim, st.Mtim}, 0)
	}
	if o := p.owner(); o != nil {
		return os.Lchown(dir, o.UID, o.GID)
	}
	return nil
}

// owner is the program's user where it is not our own.
func (p *place) owner() *tree.Owner {
	if u := p.conf.State.User; u != nil {
		return &tree.Owner{UID: int(u.UID), GID: int(u.GID)}
	}
	return nil
}

// self is our own user in a user namespace, which has no other.
func (p *place) self() *tree.Owner {
	if p.conf.Narrow {
		return &tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	}
	return nil
}

// overlay mounts the workspace on the base. Without redirects and the like, a name in the upper directory is always the
// same name in the workspace.
func (p *place) overlay(base *os.File, files, work string) error {
	var err error
	if p.base, err = unix.Openat(int(base.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	if p.upper, err = unix.Open(files, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	options := "lowerdir=" + descriptor(p.base) + ",upperdir=" + files + ",workdir=" + work
	if p.conf.Narrow {
		if at := p.conf.Foreign; at != "" {
			return fmt.Errorf("%s belongs to another user or group, which a box without root does not have", schemas.Text(at))
		}
		options += ",userxattr" // which has no redirects
	} else {
		options += ",redirect_dir=off,index=off,metacopy=off"
	}
	at := p.stage + p.conf.Workdir
	if err := unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	hidden, err := p.hidden(at)
	if hidden != "" || err != nil {
		return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH), fmt.Errorf("%s of the base is a mark of overlays, and not shown as it is", schemas.Text(hidden)))
	}
	return nil
}

// hidden is a name of the base that the overlay does not show as it is, "" for none. What marks a deletion in an overlay can be in a base
// too: a device with the number 0:0, and some attributes. The program would not see it, and the record would say that it had removed it.
func (p *place) hidden(at string) (string, error) {
	names := tree.Options{Known: func(*tree.Entry) (none [32]byte, known bool) { return none, true }}
	base, err := tree.Scan(descriptor(p.base), names)
	if err != nil {
		return "", err
	}
	shown, err := tree.Scan(at, names)
	if err != nil {
		return "", err
	}
	kinds := make(map[string]tree.Kind, len(shown))
	for n := range shown {
		kinds[shown[n].Path] = shown[n].Kind
	}
	for n := range base {
		if base[n].Mount {
			return "", nil // which is refused
		}
		if kinds[base[n].Path] != base[n].Kind {
			return base[n].Path, nil
		}
	}
	return "", nil
}

// descriptor is a path to what a descriptor of ours is open for.
func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// unpack unpacks the base tar.
func (p *place) unpack(base *os.File, dir string) error {
	r, err := tree.Decompress(base)
	if err == nil {
		err = tree.Unpack(r, dir, maxTar, p.owner())
	}
	name := schemas.Text(p.conf.Base)
	switch {
	case err == nil:
		return nil
	case tree.Broken(err): // any file that is named for the base comes to here
		return tool.Fail(tool.ExitOwn, fmt.Errorf("--base %s is no whole tar: %w; expected a directory, or a tar, which may be gzipped", name, err),
			"--base DIR, or make a tar of it: tar -C DIR -czf base.tar.gz .")
	}
	return tool.Failf(tool.ExitOwn, "--base %s: %w", name, err)
}

// show makes a directory of the store the workspace.
func (p *place) show(dir string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", unix.AT_FDCWD, p.stage+p.conf.Workdir, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
