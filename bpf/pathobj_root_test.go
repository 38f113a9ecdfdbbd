//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Operations through a symlink have their object where the kernel shows it, and are text
// where it does not, or where that is asked for.
func TestPathObjects(t *testing.T) {
	for _, without := range []Part{0, Objects} {
		s := attachWith(t, Options{Without: without})
		there := !strings.HasPrefix(s.PathObjects, schemas.UnavailableBecause)
		if there && without != 0 || !there && without == 0 && !strings.Contains(s.PathObjects, "refuses") {
			t.Fatalf("without %d: the objects come from %q", without, s.PathObjects)
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		testkit.Must(t, err)
		testkit.Must(t, os.Mkdir(dir+"/d", 0o755))
		testkit.Must(t, os.Symlink("d", dir+"/l"))
		testkit.Must(t, unix.Mkdirat(unix.AT_FDCWD, dir+"/l/x", 0o755))
		if err := unix.Renameat(unix.AT_FDCWD, dir+"/l/none", unix.AT_FDCWD, dir+"/l/../b"); !errors.Is(err, unix.ENOENT) {
			t.Fatal(err)
		}
		want := map[string]string{"mkdir": dir + "/d/x", "rename": dir + "/d/none " + dir + "/b"}
		if !there {
			want = map[string]string{"mkdir": "text", "rename": "text"}
		}
		for op, got := range objectsIn(t, s, dir+"/l/") {
			if got != want[op] {
				t.Errorf("%s has %s, expected %s", op, got, want[op])
			}
			delete(want, op)
		}
		if len(want) > 0 {
			t.Errorf("no record of %v", want)
		}
		s.Close()
	}
}

// objectsIn are the objects of the operations whose text begins so, or "text".
func objectsIn(t *testing.T, s *Session, prefix string) map[string]string {
	t.Helper()
	testkit.Must(t, s.Quiet())
	found := map[string]string{}
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		if err := s.Ring.ReadInto(&rec); errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return found
		}
		dec, err := d.Decode(rec.RawSample, &e)
		testkit.Must(t, err)
		if !strings.HasPrefix(string(e.UserPath), prefix) || e.Op != schemas.OpMkdir && e.Op != schemas.OpRename {
			continue
		}
		found[e.Op] = strings.TrimSpace(string(e.Path) + " " + string(e.Path2))
		if dec.Lexical {
			found[e.Op] = "text"
		}
	}
}

// A function is used only in a form that this build knows.
func TestLookupForms(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		testkit.Missing(t, "the kernel's types", err)
	}
	form := lookups[1][0]
	if err := fits(kernel, form); err != nil {
		testkit.Missing(t, form.function, err)
	}
	form.params = []string{"s32 filename*"}
	if err := fits(kernel, form); err == nil || !strings.Contains(err.Error(), "does not know the form (s32 filename* u32 path* path*)") {
		t.Errorf("another form: %v", err)
	}
	form.function = "no_such_function"
	if err := fits(kernel, form); err == nil {
		t.Error("a function that is not there fits")
	}
}

// A test that the programs do not pass leaves nothing attached.
func TestLookupThatDoesNotAct(t *testing.T) {
	s := attachWith(t, Options{})
	if strings.HasPrefix(s.PathObjects, schemas.UnavailableBecause) {
		t.Logf("the kernel shows no lookups: %s", s.PathObjects)
		return
	}
	s.types = new(kernelBTF)
	kernel, err := s.types.Kernel()
	testkit.Must(t, err)
	shared := map[string]*ebpf.Map{}
	links := len(s.links)
	never := []lookupTest{{"getpid", func() error { unix.Getpid(); return unix.ENOSYS }, "1/x"}}
	for part := range lookups {
		if name, err := s.firstLookup(kernel, shared, lookups[part], never); err == nil || !strings.Contains(err.Error(), "did not come") {
			t.Errorf("%q, %v", name, err)
		}
	}
	if len(s.links) != links {
		t.Errorf("%d links, expected %d", len(s.links), links)
	}
}
