package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestTorn: a line that a crash of the machine cut is cut off, and the transaction goes on from the lines before.
func TestTorn(t *testing.T) {
	at, before, x := begun(t)
	j := open(t, at+"/journal")
	_, err := j.Commit(background, x, nil)
	testkit.Must(t, err)
	testkit.Must(t, j.Close())
	b := testkit.Read(t, at+"/journal/"+fileName)
	last := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	for _, n := range []int{last, last + 1, len(b) - 1} {
		testkit.Write(t, at+"/journal/"+fileName, b[:n])
		j := open(t, at+"/journal")
		if got := testkit.Read(t, at+"/journal/"+fileName); len(got) != last {
			t.Errorf("cut at %d: %d bytes are left, expected %d", n, len(got), last)
		}
		res, err := j.Commit(background, x, nil)
		if err != nil || res.Step != StepCommitted || res.Already {
			t.Errorf("%+v %v", res, err)
		}
		testkit.Must(t, j.Close())
	}
	j = open(t, at+"/journal")
	if _, err := j.Revert(background, "tx", nil); err != nil {
		t.Error(err)
	}
	equal(t, "reverted", picture(t, at+"/target"), before)
}

// TestDamaged: a journal that is not as it was written is refused, and the directory is not touched.
func TestDamaged(t *testing.T) {
	at, _, x := begun(t)
	j := open(t, at+"/journal")
	_, err := j.Commit(background, x, nil)
	testkit.Must(t, err)
	items := j.log.txs["tx"].items
	testkit.Must(t, j.Close())
	now := picture(t, at+"/target")
	name := at + "/journal/" + fileName
	b := testkit.Read(t, name)
	testkit.Write(t, name, bytes.Replace(b, []byte(`"checked"`), []byte(`"chekced"`), 1))
	if _, err := Open(at + "/journal"); err == nil || !strings.Contains(err.Error(), fileName+":2: the line is damaged") {
		t.Error(err)
	}
	testkit.Write(t, name, b)
	for _, digest := range []string{items, schemas.DigestOf("old")} {
		blob := filepath.Join(at, "journal", blobsName, strings.TrimPrefix(digest, digestPrefix))
		old := testkit.Read(t, blob)
		damaged := bytes.Clone(old)
		damaged[len(damaged)/2] ^= 1
		testkit.Write(t, blob, damaged)
		j := open(t, at+"/journal")
		if _, err := j.Revert(background, "tx", nil); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(digest, digestPrefix)) {
			t.Errorf("a damaged blob: %v", err)
		}
		if digest == items {
			equal(t, "untouched", picture(t, at+"/target"), now)
		}
		testkit.Write(t, blob, old)
		testkit.Must(t, j.Close())
	}
	j = open(t, at+"/journal")
	if res, err := j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted {
		t.Errorf("%+v %v", res, err)
	}
}

// small is a file system of so many bytes.
func small(t *testing.T, bytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Skip(t, "a full disk", "it needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		testkit.Missing(t, "a full disk", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestDiskFull: on a full disk of the journal nothing is applied; on one of the directory all is taken back; with space both go on.
func TestDiskFull(t *testing.T) {
	const page = 4096
	for _, of := range []string{"journal", "target"} {
		for pages := range 24 {
			at := room(t)
			disk := small(t, 64*page)
			places := map[string]string{"journal": at + "/journal", "target": at + "/target"}
			places[of] = disk + "/" + of
			testkit.Must(t, os.Mkdir(places["target"], 0o755))
			shell(t, places["target"], faultsBefore)
			j, err := Open(places["journal"])
			testkit.Must(t, err)
			fill(t, disk, pages*page)
			before := picture(t, places["target"])
			x := &Transaction{ID: "tx", Dir: places["target"], Transitions: faultsList, Content: texts("new")}
			_, err = j.Commit(background, x, nil)
			if err != nil && !full(err) {
				t.Fatalf("%s, %d pages: %v", of, pages, err)
			}
			if err != nil {
				equal(t, fmt.Sprintf("%s, %d pages", of, pages), picture(t, places["target"]), before)
			}
			testkit.Must(t, os.Remove(disk+"/filled"))
			if pages == 0 && err == nil {
				t.Errorf("%s: nothing failed", of)
			}
			if err != nil {
				testkit.Must(t, j.Close())
				j = open(t, places["journal"])
				if _, err = j.Commit(background, x, nil); err != nil {
					t.Fatalf("%s, %d pages, with space: %v", of, pages, err)
				}
			}
			if res, err := j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted {
				t.Fatalf("%s, %d pages: %+v %v", of, pages, res, err)
			}
			equal(t, "reverted", picture(t, places["target"]), before)
			testkit.Must(t, j.Close())
		}
	}
}

// fill leaves so many bytes of a file system.
func fill(t *testing.T, disk string, leave int) {
	t.Helper()
	f, err := os.Create(disk + "/filled")
	testkit.Must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	info, err := f.Stat()
	testkit.Must(t, err)
	testkit.Must(t, f.Truncate(max(0, info.Size()-int64(leave))))
}

// TestImmutable: a name that the file system does not let go is an error, and all is taken back.
func TestImmutable(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "flags of files", "they need root")
	}
	at, before, x := begun(t)
	f, err := os.Open(at + "/target/b")
	testkit.Must(t, err)
	defer f.Close()
	const immutable = 0x10
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		testkit.Missing(t, "flags of files", err)
	}
	j := open(t, at+"/journal")
	_, err = j.Commit(background, x, nil)
	var u *UndoneError
	if !errors.As(err, &u) || !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "b: ") || len(u.Left) > 0 {
		t.Errorf("%v", err)
	}
	equal(t, "taken back", picture(t, at+"/target"), before)
	testkit.Must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0))
	if _, err := j.Commit(background, x, nil); err != nil {
		t.Error(err)
	}
}

// TestMany: a change of 10,000 names takes time of the processor that is in proportion.
func TestMany(t *testing.T) { many(t, 10_000) }

// TestManyNames: and so does one of 100,000, and memory.
func TestManyNames(t *testing.T) {
	many(t, 100_000)
	var use unix.Rusage
	testkit.Must(t, unix.Getrusage(unix.RUSAGE_SELF, &use))
	if most := int64(1 << 20); use.Maxrss > most { // KiB
		t.Errorf("%d KiB of memory, at most %d", use.Maxrss, most)
	}
	t.Logf("%d KiB of memory", use.Maxrss)
}

// worked is how long this process had a processor. Unlike a clock, it does not count what others do.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var use unix.Rusage
	testkit.Must(t, unix.Getrusage(unix.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func many(t *testing.T, n int) {
	t.Helper()
	at := room(t)
	testkit.Must(t, os.Mkdir(at+"/target", 0o755))
	var list []Transition
	for i := range n {
		if i%1000 == 0 {
			list = append(list, Transition{fmt.Sprintf("d%d", i/1000), nil, folder()})
		}
		list = append(list, Transition{fmt.Sprintf("d%d/f%d", i/1000, i%1000), nil, file([]string{"new", "x", ""}[i%3])})
	}
	rand.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	began, before := time.Now(), worked(t)
	j := open(t, at+"/journal")
	res, err := j.Commit(background, &Transaction{ID: "tx", Dir: at + "/target", Transitions: list, Content: texts("new", "x", "")}, nil)
	if err != nil || res.Names != len(list) {
		t.Fatalf("%+v %v", res, err)
	}
	committed := time.Since(began)
	if got := len(scan(t, at+"/target")); got != len(list)+1 {
		t.Errorf("%d names, expected %d", got, len(list)+1)
	}
	if res, err = j.Revert(background, "tx", nil); err != nil || res.Step != StepReverted || len(testkit.Names(t, at+"/target")) > 0 {
		t.Fatalf("%+v %v", res, err)
	}
	t.Logf("%d names: commit %v, revert %v", len(list), committed, time.Since(began)-committed)
	if took := worked(t) - before; took > time.Duration(n)*time.Millisecond {
		t.Errorf("%v of the processors for %d names", took, n)
	}
}

// TestDeep: paths longer than any call of the system takes.
func TestDeep(t *testing.T) {
	at := room(t)
	testkit.Must(t, os.Mkdir(at+"/target", 0o755))
	name := strings.Repeat("d", 200)
	var list []Transition
	path := name
	for range 30 {
		list = append(list, Transition{path, nil, folder()})
		path += "/" + name
	}
	list = append(list, Transition{path, nil, file("new")})
	j := open(t, at+"/journal")
	if res, err := j.Commit(background, &Transaction{ID: "tx", Dir: at + "/target", Transitions: list, Content: texts("new")}, nil); err != nil {
		t.Fatalf("%+v %v", res, err)
	}
	all := scan(t, at+"/target")
	if len(all) != len(list)+1 || !slices.ContainsFunc(all, func(e tree.Entry) bool { return e.Path == path }) {
		t.Errorf("%d names", len(all))
	}
	if res, err := j.Revert(background, "tx", nil); err != nil || len(testkit.Names(t, at+"/target")) > 0 {
		t.Errorf("%+v %v", res, err)
	}
}
