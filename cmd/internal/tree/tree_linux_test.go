package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// grow makes a tree of all kinds of names.
func grow(t testing.TB, dir string, rnd *rand.Rand) {
	t.Helper()
	var dirs, files []string
	dirs = append(dirs, dir)
	names := []string{"a", "a-b", "a.b", "b", "new\nline", "bad\xff", " ", "-rf", "*", "é", strings.Repeat("n", 255)}
	for range 60 {
		at := filepath.Join(dirs[rnd.IntN(len(dirs))], names[rnd.IntN(len(names))])
		if len(at) > 3000 {
			continue
		}
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		var err error
		switch rnd.IntN(8) {
		case 0, 1:
			err = os.Mkdir(at, 0o755)
			dirs = append(dirs, at)
		case 2:
			err = os.Symlink(names[rnd.IntN(len(names))], at)
		case 3:
			err = unix.Mkfifo(at, 0o640)
		case 4:
			if len(files) > 0 {
				err = os.Link(files[rnd.IntN(len(files))], at)
				break
			}
			fallthrough
		default:
			err = os.WriteFile(at, bytes.Repeat([]byte{byte(rnd.IntN(3))}, rnd.IntN(5)*100), []os.FileMode{0o600, 0o644, 0o755}[rnd.IntN(3)])
			files = append(files, at)
		}
		testkit.Must(t, err)
	}
}

// found is what find(1) and sha256sum(1) say of a tree.
func found(t testing.TB, dir string) (list []string) {
	t.Helper()
	out, err := exec.Command("find", dir, "-mindepth", "1", "-printf", `%P\0%y\0%m\0%U\0%G\0%s\0%l\0%i\0`).Output()
	testkit.Must(t, err)
	kinds := map[string]Kind{"f": File, "d": Dir, "l": Symlink, "p": FIFO, "s": Socket, "c": Char, "b": Block}
	for f := strings.Split(string(out), "\x00"); len(f) > 8; f = f[8:] {
		line := fmt.Sprintf("%q %s %s %s %s", f[0], kinds[f[1]], f[2], f[3], f[4])
		switch kinds[f[1]] {
		case File:
			sum, err := exec.Command("sha256sum", "--zero", dir+"/"+f[0]).Output()
			testkit.Must(t, err)
			line += " " + f[5] + " " + string(sum[:64])
		case Symlink:
			line += fmt.Sprintf(" %q", f[6])
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

// said is the same of entries. Further names of a file have the digest of the first.
func said(list []Entry) (lines []string) {
	by := map[string]*Entry{}
	for i := range list {
		by[list[i].Path] = &list[i]
	}
	for _, e := range list {
		line := fmt.Sprintf("%q %s %o %d %d", e.Path, e.Kind, e.Mode, e.UID, e.GID)
		switch sum := e.SHA256; e.Kind {
		case File:
			if e.Link != "" {
				sum = by[e.Link].SHA256
			}
			line += fmt.Sprintf(" %d %s", e.Size, hex.EncodeToString(sum[:]))
		case Symlink:
			line += fmt.Sprintf(" %q", e.Target)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestScan compares random trees with what find and sha256sum say.
func TestScan(t *testing.T) {
	for seed := range uint64(6) {
		dir := t.TempDir()
		grow(t, dir, rand.New(rand.NewPCG(seed, 1)))
		list, err := Scan(dir, Options{})
		testkit.Must(t, err)
		if got, want := said(list), found(t, dir); !slices.Equal(got, want) {
			t.Errorf("seed %d:\n%s\nexpected\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !slices.IsSortedFunc(list, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
			t.Error("not sorted")
		}
		for _, e := range list {
			if e.Link != "" {
				a, err := os.Stat(filepath.Join(dir, e.Path))
				testkit.Must(t, err)
				b, err := os.Stat(filepath.Join(dir, e.Link))
				testkit.Must(t, err)
				if !os.SameFile(a, b) || e.Link >= e.Path {
					t.Errorf("%q is not %q", e.Path, e.Link)
				}
			}
		}
	}
}

// TestHostileTrees: trees that end or mislead programs that read them.
func TestHostileTrees(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Symlink("loop", dir+"/loop"))
	testkit.Must(t, os.Symlink(".", dir+"/self"))
	testkit.Must(t, os.Symlink("/etc", dir+"/out"))
	testkit.Must(t, unix.Mkfifo(dir+"/fifo", 0o644)) // which nobody writes
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	defer unix.Close(fd)
	testkit.Must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: dir + "/socket"}))
	// A path that no call takes whole: 300 levels of 200 bytes.
	const deep = 300
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	testkit.Must(t, err)
	name := strings.Repeat("d", 200)
	for range deep {
		testkit.Must(t, unix.Mkdirat(at, name, 0o755))
		below, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		testkit.Must(t, err)
		unix.Close(at)
		at = below
	}
	unix.Close(at)
	defer exec.Command("rm", "-rf", dir).Run()
	list, err := Scan(dir, Options{})
	testkit.Must(t, err)
	kinds := map[Kind]int{}
	for _, e := range list {
		kinds[e.Kind]++
	}
	const known = MaxPath/201 + 1 // what is further below would have no room in a line of a record
	if kinds[Dir] != known || kinds[Symlink] != 3 || kinds[FIFO] != 1 || kinds[Socket] != 1 || len(list) != known+5 {
		t.Errorf("%d names: %v", len(list), kinds)
	}
	for _, e := range list {
		if deepest := len(e.Path) == known*201-1; deepest != (e.Unread != "") || len(e.Path) > known*201-1 {
			t.Errorf("%d bytes: unread %q", len(e.Path), e.Unread)
		}
	}
	if _, err := Scan(dir+"/none", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Scan(dir+"/fifo", Options{}); !errors.Is(err, unix.ENOTDIR) {
		t.Error(err)
	}
}

// TestUnread: what may not be read is told, and the rest is there. Root may read all.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(dir+"/closed", 0o700))
	testkit.Must(t, os.WriteFile(dir+"/closed/x", nil, 0o644))
	testkit.Must(t, os.WriteFile(dir+"/secret", []byte("x"), 0o600))
	testkit.Must(t, os.WriteFile(dir+"/plain", []byte("x"), 0o644))
	testkit.Must(t, os.Mkdir(dir+"/listed", 0o744))
	for _, mode := range []os.FileMode{0o000, 0o400} {
		testkit.Must(t, os.Chmod(dir+"/closed", mode))
		testkit.Must(t, os.Chmod(dir+"/secret", 0))
		list, err := Scan(dir, Options{})
		testkit.Must(t, err)
		root := os.Geteuid() == 0
		for _, e := range list {
			if unread := e.Unread != ""; unread != (!root && (e.Path == "closed" || e.Path == "secret")) {
				t.Errorf("%s: unread %q", e.Path, e.Unread)
			}
		}
		if len(Diff(list, list)) != map[bool]int{true: 0, false: 2}[root] {
			t.Errorf("%+v", Diff(list, list))
		}
	}
	testkit.Must(t, os.Chmod(dir+"/closed", 0o700))
}

// TestDiff: the changes of one tree to another make the one the other, and nothing differs from itself.
func TestDiff(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		a, b := t.TempDir(), t.TempDir()
		grow(t, a, rnd)
		testkit.Must(t, exec.Command("cp", "-a", a+"/.", b).Run())
		before, err := Scan(a, Options{})
		testkit.Must(t, err)
		same, err := Scan(b, Options{})
		testkit.Must(t, err)
		if d := Diff(before, same); len(d) != 0 {
			t.Fatalf("seed %d: a copy differs: %+v", seed, d[0])
		}
		for range 10 {
			e := before[rnd.IntN(len(before))]
			at := filepath.Join(b, e.Path)
			switch rnd.IntN(4) {
			case 0:
				os.RemoveAll(at)
			case 1:
				os.Chmod(at, 0o711)
			case 2:
				if e.Kind == File {
					os.WriteFile(at, []byte("other"), 0o600)
				}
			case 3:
				os.RemoveAll(at)
				os.Symlink("x", at)
			}
		}
		grow(t, b, rnd)
		after, err := Scan(b, Options{})
		testkit.Must(t, err)
		now := map[string]Entry{}
		for _, e := range before {
			now[e.Path] = e
		}
		changes := Diff(before, after)
		for i := range changes {
			c := &changes[i]
			if i > 0 && changes[i-1].Path() >= c.Path() {
				t.Fatal("not sorted")
			}
			if (c.Before == nil) != (c.Op == Add) || (c.After == nil) != (c.Op == Delete) || c.Op == Replace != (c.Before != nil && c.After != nil && c.Before.Kind != c.After.Kind) {
				t.Fatalf("%+v", c)
			}
			if c.After == nil {
				delete(now, c.Path())
			} else {
				now[c.Path()] = *c.After
			}
		}
		if len(now) != len(after) {
			t.Errorf("seed %d: %d names, expected %d", seed, len(now), len(after))
		}
		for _, e := range after {
			if was := now[e.Path]; timeless(was) != timeless(e) {
				t.Errorf("seed %d: %q is %+v, expected %+v", seed, e.Path, now[e.Path], e)
			}
		}
	}
}

// timeless is an entry without its times.
func timeless(e Entry) Entry {
	e.Modified, e.Changed = 0, 0
	return e
}

// TestChangesAreTold: each kind of change has its name.
func TestChangesAreTold(t *testing.T) {
	file := Entry{Path: "x", Kind: File, Mode: 0o644, SHA256: sha256.Sum256(nil)}
	with := func(change func(*Entry)) Entry { e := file; change(&e); return e }
	for _, x := range []struct {
		to   Entry
		want Op
	}{
		{file, ""}, {with(func(e *Entry) { e.Mode = 0o600 }), Mode}, {with(func(e *Entry) { e.UID = 1 }), Mode}, {with(func(e *Entry) { e.SHA256[0]++ }), Modify},
		{with(func(e *Entry) { e.Kind, e.SHA256 = Dir, [32]byte{} }), Replace}, {with(func(e *Entry) { e.Link = "a" }), Relink}, {with(func(e *Entry) { e.Unread = "no" }), Modify},
		{with(func(e *Entry) { e.Size = 1 }), Modify},
	} {
		d := Diff([]Entry{file}, []Entry{x.to})
		if x.want == "" && len(d) > 0 || x.want != "" && (len(d) != 1 || d[0].Op != x.want) {
			t.Errorf("%+v, expected %s", d, x.want)
		}
	}
}
