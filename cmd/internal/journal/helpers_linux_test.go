package journal

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// room is a directory on a file system in memory if there is one that has attributes of users: the tests sync a lot.
func room(t testing.TB) string {
	t.Helper()
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) != nil || st.Type != unix.TMPFS_MAGIC {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "journal-")
	testkit.Must(t, err)
	testkit.Must(t, os.Chmod(dir, 0o755))
	if unix.Setxattr(dir, "user.test", nil, 0) != nil { // before Linux 6.6
		testkit.Must(t, os.Remove(dir))
		return t.TempDir()
	}
	testkit.Must(t, unix.Removexattr(dir, "user.test"))
	t.Cleanup(func() { removeAll(t, dir) })
	return dir
}

// scan is a tree as the recorder of a run would describe it.
func scan(t testing.TB, dir string) []tree.Entry {
	t.Helper()
	list, err := tree.Scan(dir, tree.Options{})
	testkit.Must(t, err)
	root, err := tree.Root(dir)
	testkit.Must(t, err)
	list = append(list, root)
	slices.SortFunc(list, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func stateOf(e *tree.Entry) *State {
	if e == nil {
		return nil
	}
	s := &State{Kind: e.Kind, Mode: e.Mode, UID: int(e.UID), GID: int(e.GID), Link: e.Link, Target: e.Target, ModifiedNS: e.Modified, Unread: e.Unread}
	if e.Kind == tree.File && e.Link == "" {
		s.Size, s.SHA256 = e.Size, "sha256:"+hex.EncodeToString(e.SHA256[:])
	}
	return s
}

// change is what turns one tree into another one.
func change(t testing.TB, from, to string) []Transition {
	t.Helper()
	var list []Transition
	for _, c := range tree.Diff(scan(t, from), scan(t, to)) {
		list = append(list, Transition{c.Path(), stateOf(c.Before), stateOf(c.After)})
	}
	return list
}

// contents opens files of a tree by their digests.
func contents(t testing.TB, dir string) func(string) (io.ReadCloser, error) {
	t.Helper()
	paths := map[string]string{}
	for _, e := range scan(t, dir) {
		if e.Kind == tree.File && e.Link == "" {
			paths["sha256:"+hex.EncodeToString(e.SHA256[:])] = e.Path
		}
	}
	return func(digest string) (io.ReadCloser, error) {
		root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(root)
		return tree.Open(root, paths[digest])
	}
}

// picture is all that must be the same again, of each name, without a word of the package's own.
func picture(t testing.TB, dir string) (list []string) {
	t.Helper()
	inodes := map[uint64]string{}
	restore := ease(t, dir)
	defer restore()
	modes := eased[dir]
	testkit.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if mode, ok := modes[path]; ok {
			st.Mode = mode
		}
		line := fmt.Sprintf("%q %o %d:%d %d.%d", strings.TrimPrefix(path, dir), st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		switch {
		case info.Mode().IsRegular():
			if first, ok := inodes[st.Ino]; ok {
				line += " = " + first
				break
			}
			inodes[st.Ino] = fmt.Sprintf("%q", strings.TrimPrefix(path, dir))
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x", st.Nlink, b)
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			line += fmt.Sprintf(" -> %q", target)
		}
		buf := make([]byte, 4096)
		if n, err := unix.Llistxattr(path, buf); err == nil {
			names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
			slices.Sort(names)
			for _, name := range names {
				value := make([]byte, 4096)
				if n, err := unix.Lgetxattr(path, name, value); err == nil {
					line += fmt.Sprintf(" %s=%x", name, value[:n])
				}
			}
		}
		list = append(list, line)
		return nil
	}))
	return list
}

// eased are the modes of names that ease gave other ones for a while.
var eased = map[string]map[string]uint32{}

// ease lets the owner, who is not root, read all of a tree until the result is called.
func ease(t testing.TB, dir string) (restore func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		return func() {}
	}
	var paths []string
	modes := map[string]uint32{}
	var visit func(path string)
	visit = func(path string) {
		var st unix.Stat_t
		testkit.Must(t, unix.Lstat(path, &st))
		kind := st.Mode & unix.S_IFMT
		if kind == unix.S_IFDIR && st.Mode&0o500 != 0o500 || kind == unix.S_IFREG && st.Mode&0o400 == 0 {
			paths, modes[path] = append(paths, path), st.Mode
			testkit.Must(t, unix.Chmod(path, st.Mode&0o7777|0o500))
		}
		if kind == unix.S_IFDIR {
			for _, name := range testkit.Names(t, path) {
				visit(path + "/" + name)
			}
		}
	}
	visit(dir)
	eased[dir] = modes
	return func() {
		delete(eased, dir)
		for _, path := range slices.Backward(paths) {
			testkit.Must(t, unix.Chmod(path, modes[path]&0o7777))
		}
	}
}

// equal compares two pictures.
func equal(t testing.TB, what string, got, want []string) bool {
	t.Helper()
	if slices.Equal(got, want) {
		return true
	}
	var b strings.Builder
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&b, "got  %s\n", testkit.Clip(line))
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "want %s\n", testkit.Clip(line))
		}
	}
	t.Errorf("%s: the trees differ:\n%s", what, testkit.Clip(b.String()))
	return false
}

// names of a random tree: all bytes but those of a path.
var someNames = []string{"a", "a-b", "a.b", "b", "c", "new\nline", "bad\xff", " ", "-rf", "*", "é", "\\x41", strings.Repeat("n", 255), "d", "!"}

// grow makes a random tree of all kinds that can be made, or changes one at random.
func grow(t testing.TB, dir string, rnd *rand.Rand, n int) {
	t.Helper()
	list := scan(t, dir)
	for range n {
		path := someNames[rnd.IntN(len(someNames))]
		if dirs := slices.DeleteFunc(slices.Clone(list), func(e tree.Entry) bool { return e.Kind != tree.Dir || len(e.Path) > 1500 }); len(dirs) > 0 {
			if in := dirs[rnd.IntN(len(dirs))].Path; in != "." {
				path = in + "/" + path
			}
		}
		if rnd.IntN(2) == 0 && len(list) > 1 {
			path = list[rnd.IntN(len(list))].Path
		}
		mutate(t, dir, path, list, rnd)
		list = scan(t, dir)
	}
}

// closed is a mode with which root alone can read: others could not describe the tree.
func closed() uint32 {
	if os.Geteuid() == 0 {
		return 0
	}
	return 0o500
}

// removeAll removes a tree, whatever the modes in it.
func removeAll(t testing.TB, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		letRemove(path)
	}
	testkit.Must(t, os.RemoveAll(path))
}

// letRemove lets the owner remove what is in a directory.
func letRemove(path string) {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return
	}
	os.Chmod(path, 0o700)
	list, _ := os.ReadDir(path)
	for _, e := range list {
		if e.IsDir() {
			letRemove(filepath.Join(path, e.Name()))
		}
	}
}

// writable lets the owner make names in a directory, until the result is called.
func writable(t testing.TB, dir string) (restore func()) {
	t.Helper()
	info, err := os.Lstat(dir)
	testkit.Must(t, err)
	if os.Geteuid() == 0 || info.Mode().Perm()&0o200 != 0 {
		return func() {}
	}
	testkit.Must(t, os.Chmod(dir, 0o700))
	return func() { testkit.Must(t, os.Chmod(dir, info.Mode())) }
}

// mutate does one random thing to one name.
func mutate(t testing.TB, dir, path string, list []tree.Entry, rnd *rand.Rand) {
	t.Helper()
	at := filepath.Join(dir, path)
	info, err := os.Lstat(at)
	if path == "." {
		testkit.Must(t, os.Chmod(at, []os.FileMode{0o755, 0o700, 0o775}[rnd.IntN(3)]))
		return
	}
	if err == nil {
		switch rnd.IntN(5) {
		case 0:
			defer writable(t, filepath.Dir(at))()
			removeAll(t, at)
			return
		case 1: // another kind
			defer writable(t, filepath.Dir(at))()
			removeAll(t, at)
		case 2:
			if info.Mode().IsRegular() {
				testkit.Must(t, os.Chmod(at, 0o600))
				testkit.Must(t, os.WriteFile(at, bytes.Repeat([]byte{byte(rnd.IntN(256))}, rnd.IntN(200)), 0o600))
				return
			}
			fallthrough
		case 3:
			if info.Mode()&os.ModeSymlink == 0 {
				mode := []uint32{closed(), 0o600, 0o644, 0o755, 0o555, 0o4755, 0o2775, 0o1777}[rnd.IntN(8)]
				if info.IsDir() {
					mode |= closed()
				}
				testkit.Must(t, unix.Chmod(at, mode))
			}
			return
		default:
			if info.Mode().IsRegular() || info.IsDir() {
				if os.Geteuid() != 0 {
					testkit.Must(t, os.Chmod(at, 0o700))
				}
				testkit.Must(t, unix.Setxattr(at, "user.test", []byte{byte(rnd.IntN(256))}, 0))
			}
			return
		}
	}
	create(t, dir, at, list, rnd)
}

func create(t testing.TB, dir, at string, list []tree.Entry, rnd *rand.Rand) {
	t.Helper()
	defer writable(t, filepath.Dir(at))()
	switch rnd.IntN(8) {
	case 0, 1:
		testkit.Must(t, os.Mkdir(at, []os.FileMode{0o755, 0o700, 0o555, 0o511}[rnd.IntN(4)]))
	case 2:
		target := []string{"a", "/etc", "..", "bad\xfe", strings.Repeat("t", 300)}[rnd.IntN(5)]
		testkit.Must(t, os.Symlink(target, at))
		datedBy(t, dir, at, target)
	case 3:
		testkit.Must(t, unix.Mkfifo(at, 0o640))
		datedBy(t, dir, at, "")
	case 4, 5:
		for _, i := range rnd.Perm(len(list)) {
			if list[i].Kind == tree.File && os.Link(filepath.Join(dir, list[i].Path), at) == nil {
				return
			}
		}
		fallthrough
	default:
		content := bytes.Repeat([]byte{byte(rnd.IntN(4))}, rnd.IntN(5)*100)
		testkit.Must(t, os.WriteFile(at, content, 0o600))
		datedBy(t, dir, at, string(content))
		testkit.Must(t, unix.Chmod(at, []uint32{0o600, 0o644, closed(), 0o755}[rnd.IntN(4)]))
		if rnd.IntN(3) == 0 && os.Geteuid() == 0 {
			testkit.Must(t, os.Lchown(at, rnd.IntN(3), rnd.IntN(3)))
		}
		if rnd.IntN(3) == 0 && os.Geteuid() == 0 {
			testkit.Must(t, unix.Setxattr(at, "trusted.test", []byte("x"), 0))
		}
	}
}

// datedBy gives a name a time that follows from what it is. What is removed and made again as it was is no change; at a time of
// its own it would be one to a witness, if a second passed in between.
func datedBy(t testing.TB, dir, at, content string) {
	t.Helper()
	what := fnv.New32a()
	io.WriteString(what, strings.TrimPrefix(at, dir)+"\x00"+content)
	when := unix.Timespec{Sec: int64(what.Sum32() >> 1), Nsec: int64(what.Sum32() % 1e9)}
	testkit.Must(t, unix.UtimesNanoAt(unix.AT_FDCWD, at, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW))
}

// copyTree copies with all that cp can copy: to a new name, or into a directory.
func copyTree(t testing.TB, to string, from ...string) {
	t.Helper()
	if out, err := exec.Command("cp", append(append([]string{"-a"}, from...), to)...).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
}

// open opens a journal until the end of the test.
func open(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	testkit.Must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

var background = context.Background()
