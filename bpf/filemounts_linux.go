//go:build amd64 || arm64

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a line of mountinfo. Paths within the same device are comparable, whatever mount
// shows them.
type mount struct {
	id          uint64
	dev         string
	root, point string // the directory in the file system, and where it is mounted
	kind        string
}

// same are the kinds of file systems of which every new mount shows the same things again.
// Their instances are recognized by the magic number.
var same = []string{"proc", "sysfs", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs"}

// stacked are the kinds that show files of others.
var stacked = []string{"overlay", "ecryptfs"}

func readMounts() ([]mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []mount
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 5 || len(t) < 1 {
			return nil, fmt.Errorf("mountinfo: a line of another form: %.200q", lines.Text())
		}
		id, err := strconv.ParseUint(h[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("mountinfo: %w", err)
		}
		m := mount{id: id, dev: h[2], root: unescape(h[3]), point: unescape(h[4]), kind: t[0]}
		if strings.HasPrefix(m.root, "/") { // not an object of nsfs
			out = append(out, m)
		}
	}
	return out, lines.Err()
}

// unescape replaces the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// below reports whether a path is a directory or below it, and what follows.
func below(dir, path string) (rest string, ok bool) {
	if dir == "/" {
		return path, true
	}
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// resolve follows the symlinks of the part of a path that exists.
func resolve(path string) (resolved, existing string) {
	for at, rest := path, ""; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), real
		}
		if at == "/" {
			return path, "/"
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// mountOf is the mount that shows an existing path.
func mountOf(mounts []mount, path string) (mount, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st)
	if err != nil {
		return mount{}, fmt.Errorf("%s: %w", path, err)
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return mount{}, errors.New("this kernel does not tell which mount a path is on")
	}
	i := slices.IndexFunc(mounts, func(m mount) bool { return m.id == st.Mnt_id })
	if i < 0 {
		return mount{}, fmt.Errorf("%s is on a mount that mountinfo does not have", path)
	}
	return mounts[i], nil
}

// fileSystems are the rules' paths as paths within file systems.
type fileSystems struct {
	tree   *fileTree
	mounts []mount
	roots  map[string]uint32 // of a device: its root in the tree
	things []thing
}

// thing is an object whose place is known.
type thing struct {
	path  string // as the loader sees it
	node  uint32
	leaf  bool
	magic bool // so are all objects with the magic number of its file system
	rule  bool
}

// translate puts the rules into the tree: as names, as names without symlinks, and as paths
// in the file systems that show them now, so that they hold whatever mounts there are later.
func translate(t *fileTree, mounts []mount) (*fileSystems, error) {
	fs := &fileSystems{tree: t, mounts: mounts, roots: map[string]uint32{}}
	for i := range t.rules.Rules {
		path, err := t.path(i)
		if err != nil {
			return nil, err
		}
		resolved, existing := resolve(path)
		for _, p := range []string{path, resolved} {
			if err := t.add(nodeTop, p, i); err != nil {
				return nil, err
			}
		}
		if err := fs.place(i, resolved, existing); err != nil {
			return nil, err
		}
	}
	return fs, fs.anchors()
}

func (fs *fileSystems) root(dev string) uint32 {
	id, ok := fs.roots[dev]
	if !ok {
		id = fs.tree.root()
		fs.roots[dev] = id
	}
	return id
}

// place adds a rule for the file system of its path, and for those that are mounted below.
func (fs *fileSystems) place(rule int, resolved, existing string) error {
	m, err := mountOf(fs.mounts, existing)
	if err != nil {
		return err
	}
	rest, ok := below(m.point, resolved)
	if !ok {
		return fmt.Errorf("%s is not below the mount %s that it is on", resolved, m.point)
	}
	inside := filepath.Join(m.root, rest)
	if err := fs.tree.add(fs.root(m.dev), inside, rule); err != nil {
		return err
	}
	for _, o := range fs.mounts {
		if rest, ok := below(resolved, o.point); ok && rest != "" && rest != "/" {
			if err := fs.tree.add(fs.root(o.dev), o.root, rule); err != nil {
				return err
			}
		}
	}
	if resolved == existing && fs.tree.denies(rule) {
		node, leaf := fs.tree.find(fs.root(m.dev), inside)
		fs.things = append(fs.things, thing{path: resolved, node: node, leaf: leaf, rule: true})
	}
	return nil
}

// anchors are the mounts of the file systems that rules are about; of all file systems, if
// something is denied by default.
func (fs *fileSystems) anchors() error {
	for _, m := range fs.mounts {
		if _, ok := fs.roots[m.dev]; !ok && !fs.tree.closed() {
			continue
		}
		on, err := mountOf(fs.mounts, m.point)
		if err != nil || on.id != m.id {
			continue // not reachable by its path: another mount covers it
		}
		node, leaf := fs.tree.find(fs.root(m.dev), m.root)
		fs.things = append(fs.things, thing{path: m.point, node: node, leaf: leaf, magic: m.root == "/" && slices.Contains(same, m.kind)})
	}
	return nil
}

// pin opens a thing without using it, so that its inode stays in memory. A detached mount of
// it does not keep others from unmounting its file system.
func (t *thing) pin() (int, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.OpenTree(unix.AT_FDCWD, t.path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if err != nil {
		fd, err = unix.Open(t.path, flags, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("%s: %w", t.path, err)
	}
	return fd, nil
}

// components is a path as an anchor has it, cut to the room that there is.
func components(path string, room int) (out []byte) {
	parts := names(path)
	for _, p := range slices.Backward(parts) {
		if len(out)+1+len(p) > room {
			break
		}
		out = append(append(out, byte(len(p))), p...)
	}
	return out
}
