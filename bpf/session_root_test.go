//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// ownCgroup is where this test runs; the probes may watch it like any other.
func ownCgroup(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if strings.Contains(line, " - cgroup2 ") && len(f) > 4 {
			for l := range strings.Lines(string(own)) {
				if p, ok := strings.CutPrefix(strings.TrimSpace(l), "0::"); ok {
					return f[4] + strings.TrimSuffix(p, "/")
				}
			}
		}
	}
	t.Fatal("no cgroup2 mount")
	return ""
}

func attachOwn(t *testing.T, redundant bool) *Session {
	t.Helper()
	return attachWith(t, Options{Arguments: true, Copies: map[bool]Copies{false: CopiesOff, true: CopiesOn}[redundant]})
}

// asTested says whose probes a session uses, and whether it is these that have copies.
func asTested(opt Options) Options {
	if os.Getenv(testProbes) != schemas.ProbesShared {
		return opt
	}
	if os.Getenv(testCopies) != "" && opt.Copies == CopiesOn {
		opt.Copies = CopiesAuto
	}
	if opt.cannotShare() == nil {
		opt.Probes = ProbesShared
	}
	return opt
}

func attachWith(t *testing.T, opt Options) *Session {
	t.Helper()
	opt.Cgroup, opt.RingSize = ownCgroup(t), 1<<24 // other processes of the cgroup fill it too
	s, err := Attach(asTested(opt))
	if err != nil {
		testkit.Missing(t, "the probes", err)
	}
	t.Cleanup(s.Close)
	return s
}

// opens makes n opens of a marked path and counts how many records report them.
func opens(t *testing.T, s *Session, n int) (seen int) {
	t.Helper()
	marker := fmt.Sprintf("/runner-bpf-test/%s/%d", t.Name(), os.Getpid())
	for range n {
		unix.Open(marker, unix.O_RDONLY, 0)
	}
	if err := s.Quiet(); err != nil {
		t.Fatal(err)
	}
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return seen
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode(rec.RawSample, &e); err != nil {
			t.Errorf("%v: %x", err, rec.RawSample)
		}
		if string(e.UserPath) == marker {
			seen++
		}
	}
}

func TestSession(t *testing.T) {
	for _, redundant := range []bool{false, true} {
		t.Run(fmt.Sprint(redundant), func(t *testing.T) {
			s := attachOwn(t, redundant)
			if want := map[bool]string{false: "off", true: "on"}[redundant || s.set != nil && s.copies.any()]; s.Redundant != want {
				t.Errorf("redundant %q, expected %q", s.Redundant, want)
			}
			if n := opens(t, s, 23); n != 23 {
				t.Errorf("%d of 23 opens were recorded", n)
			}
			st, err := s.Stats()
			if err != nil || st.Seen != st.Emitted+st.Dropped || st.Lost != 0 {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

// If copies do not load, the session says so, and the base object loses no events.
func TestRedundantUnavailable(t *testing.T) {
	t.Setenv(testProbes, schemas.ProbesOwn)
	attachOwn(t, false).Close()
	loadCopy = func(s *Session, copy uint32, shared map[string]*ebpf.Map, names []string) (*ebpf.Collection, error) {
		if copy == 2 {
			return nil, errors.New("this kernel has no more room")
		}
		return s.loadCopy(copy, shared, names)
	}
	defer func() { loadCopy = (*Session).loadCopy }()
	s := attachOwn(t, true)
	if !strings.HasPrefix(s.Redundant, "unavailable: ") || !strings.Contains(s.Redundant, "no more room") {
		t.Errorf("redundant %q", s.Redundant)
	}
	if n := opens(t, s, 23); n != 23 {
		t.Errorf("%d of 23 opens were recorded", n)
	}
}

// Older kernels read each field by a helper call, and have no bpf_loop. The paths are the
// same.
func TestWithoutParts(t *testing.T) {
	dir := t.TempDir()
	var paths [4]string
	for i := range paths {
		s := attachWith(t, Options{Without: Part(i)})
		if s.IOUring != "attached" {
			t.Errorf("without parts %b: io_uring %s", i, s.IOUring)
		}
		if _, err := os.Create(dir + "/a b/../c"); err == nil {
			t.Fatal("created below a directory that is not there")
		}
		f, err := os.Create(dir + "/./c")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		paths[i] = resolved(t, s, dir)
	}
	if want := dir + "/c"; paths != [4]string{want, want, want, want} {
		t.Errorf("resolved %q, expected %q each time", paths, want)
	}
}

// What a verifier refuses is loaded in another way, and the session says why.
func TestVerifierRefuses(t *testing.T) {
	t.Setenv(testProbes, schemas.ProbesOwn)
	for _, c := range []struct {
		refused map[string]bool // a program with these values of its variables
		want    string
	}{
		{map[string]bool{"no_cast": false}, "without cast: program on_sys_exit: "},
		{map[string]bool{"no_loop": false}, "without cast: program on_sys_exit: "},
	} {
		newCollection = func(spec *ebpf.CollectionSpec, opts ebpf.CollectionOptions) (*ebpf.Collection, error) {
			for name, value := range c.refused {
				var now bool
				if v := spec.Variables[name]; (v == nil || v.Get(&now) == nil) && now == value && spec.Programs["on_sys_exit"] != nil {
					return nil, fmt.Errorf("program on_sys_exit: %w", &ebpf.VerifierError{Cause: errors.New("not this"), Log: []string{"more"}})
				}
			}
			return ebpf.NewCollectionWithOptions(spec, opts)
		}
		s := attachWith(t, Options{})
		newCollection = ebpf.NewCollectionWithOptions
		if _, loop := c.refused["no_loop"]; !strings.HasPrefix(s.Loaded(), c.want) || strings.Contains(s.Loaded(), "\n") ||
			strings.Contains(s.Loaded(), "not this: more; without loop: program on_sys_exit: ") != loop {
			t.Errorf("loaded %q, expected %q", s.Loaded(), c.want)
		}
		if n := opens(t, s, 23); n != 23 {
			t.Errorf("%d of 23 opens were recorded", n)
		}
	}
	if s := attachWith(t, Options{}); s.Loaded() != schemas.LoadedWhole {
		t.Errorf("loaded %q, expected %q", s.Loaded(), schemas.LoadedWhole)
	}
}

// resolved is the last path that the kernel resolved below dir.
func resolved(t *testing.T, s *Session, dir string) (path string) {
	t.Helper()
	if err := s.Quiet(); err != nil {
		t.Fatal(err)
	}
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		if err := s.Ring.ReadInto(&rec); err != nil {
			return path
		}
		if _, err := d.Decode(rec.RawSample, &e); err == nil && strings.HasPrefix(string(e.Path), dir) {
			path = string(e.Path)
		}
	}
}
