//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// newScope makes a cgroup.
func newScope(t *testing.T, under string) string {
	t.Helper()
	dir, err := os.MkdirTemp(under, "runner-shared-")
	testkit.Must(t, err)
	t.Cleanup(func() { removeScope(dir) })
	return dir
}

func removeScope(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			removeScope(path)
			return filepath.SkipDir
		}
		return nil
	})
	for end := time.Now().Add(5 * time.Second); os.Remove(dir) != nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// runIn runs a shell script in a cgroup.
func runIn(t *testing.T, cgroup, script string, args ...string) {
	t.Helper()
	if out, err := inScope(t, cgroup, "sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func inScope(t *testing.T, cgroup, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.Open(cgroup)
	testkit.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return cmd
}

// openMany opens a name that is not there, so often.
const openMany = `i=0; while [ $i -lt "$2" ]; do { true < "$1"; } 2>/dev/null; i=$((i+1)); done; true`

func shareWith(t *testing.T, cgroup string, opt Options) *Session {
	t.Helper()
	opt.Cgroup, opt.Probes, opt.RingSize = cgroup, ProbesShared, max(opt.RingSize, os.Getpagesize())
	if opt.RingSize == os.Getpagesize() {
		opt.RingSize = 1 << 22
	}
	s, err := Attach(opt)
	if err != nil {
		testkit.Missing(t, "shared probes", err)
	}
	t.Cleanup(s.Close)
	return s
}

// seen is what a session recorded.
type seen struct {
	opens     map[string]int // by name
	ops       map[string]int
	arguments int // bytes
	read      uint64
	stats     Stats
}

// all reads everything that a session recorded, and checks that nothing of it is missing.
func all(t *testing.T, s *Session) seen {
	t.Helper()
	testkit.Must(t, s.Quiet())
	out := seen{opens: map[string]int{}, ops: map[string]int{}}
	d := Decoder{FirstSeq: s.FirstSeq}
	numbers := map[[2]uint32][]uint64{}
	var rec ringbuf.Record
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute))
	for {
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) {
			break
		}
		testkit.Must(t, err)
		got, err := d.Decode(rec.RawSample, &e)
		testkit.Must(t, err)
		out.read++
		out.ops[e.Op]++
		out.arguments += len(got.Arguments)
		out.opens[string(e.UserPath)]++
		key := [2]uint32{uint32(e.Probe), e.CPU}
		numbers[key] = append(numbers[key], e.CPUSeq)
	}
	var err error
	out.stats, err = s.Stats()
	testkit.Must(t, err)
	st := out.stats
	if st.Seen != st.Emitted+st.Dropped || st.Emitted != out.read || st.ScratchMissing != 0 || st.RecursionMisses != 0 || st.Lost != 0 {
		t.Errorf("%d records were read: %+v", out.read, st)
	}
	if st.Dropped > 0 {
		return out
	}
	for key, list := range numbers {
		slices.Sort(list)
		for i, n := range list {
			if n != uint64(i) {
				t.Errorf("probe %d on CPU %d: record %d has number %d", key[0], key[1], i, n)
				break
			}
		}
	}
	return out
}

// loads counts what is loaded while f runs.
func loads(f func()) (n int) {
	find := newCollection
	var mu sync.Mutex
	newCollection = func(spec *ebpf.CollectionSpec, opts ebpf.CollectionOptions) (*ebpf.Collection, error) {
		mu.Lock()
		n++
		mu.Unlock()
		return find(spec, opts)
	}
	defer func() { newCollection = find }()
	f()
	return n
}

// Each run that shares probes has all of its own events and none of others', also in a place that another run had before. Only the
// first one loads anything, and the last one leaves nothing.
func TestShared(t *testing.T) {
	shareHere(t)
	for round := range 3 {
		const runs = 4
		var s [runs]*Session
		var dirs [runs]string
		for i := range s {
			dirs[i] = newScope(t, ownCgroup(t))
			n := loads(func() { s[i] = shareWith(t, dirs[i], Options{Arguments: i%2 == 0}) })
			if n != 0 != (i == 0) {
				t.Errorf("run %d: %d objects were loaded", i, n)
			}
		}
		var wg sync.WaitGroup
		for i := range s {
			wg.Go(func() { runIn(t, dirs[i], openMany, fmt.Sprintf("/nothing/%d/%d", round, i), fmt.Sprint(300*(i+1))) })
		}
		wg.Wait()
		for _, i := range []int{2, 0, 3, 1} {
			got := all(t, s[i])
			for j := range s {
				want := 0
				if i == j {
					want = 300 * (i + 1)
				}
				if n := got.opens[fmt.Sprintf("/nothing/%d/%d", round, j)]; n != want {
					t.Errorf("run %d has %d opens of run %d, expected %d", i, n, j, want)
				}
			}
			if got.ops[schemas.OpExec] != 1 || got.arguments > 0 != (i%2 == 0) || got.ops[schemas.OpExit] == 0 {
				t.Errorf("run %d: %v, %d bytes of arguments", i, got.ops, got.arguments)
			}
			s[i].Close()
		}
	}
}

// A ring that overflows is that of its run: what it recorded and what it dropped is what was made, and another run misses nothing.
func TestSharedOverflow(t *testing.T) {
	shareHere(t)
	small, large := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	a, b := shareWith(t, small, Options{RingSize: 2 * os.Getpagesize()}), shareWith(t, large, Options{})
	runIn(t, small, openMany, "/nothing/small", "5000")
	runIn(t, large, openMany, "/nothing/large", "100")
	got := all(t, a)
	lost := got.stats.DroppedByOp[schemas.OpOpenat] + got.stats.DroppedByOp[schemas.OpOpen]
	recorded := uint64(got.ops[schemas.OpOpenat] + got.ops[schemas.OpOpen])
	if n := recorded + lost; lost == 0 || n < 10000 || n > 10100 { // each round opens two names, and the shell a few of its own
		t.Errorf("%d opens were recorded and %d dropped, expected a few more than 10000", recorded, lost)
	}
	if got := all(t, b); got.opens["/nothing/large"] != 100 || got.stats.Dropped != 0 {
		t.Errorf("the other run has %d of 100 opens, and dropped %d", got.opens["/nothing/large"], got.stats.Dropped)
	}
}

// The scope is the cgroup and all below it: those that were there, those that are made, and those that are made again.
func TestSharedCgroups(t *testing.T) {
	shareHere(t)
	dir := newScope(t, ownCgroup(t))
	testkit.Must(t, os.MkdirAll(dir+"/before/deep", 0o755))
	s := shareWith(t, dir, Options{})
	outside := newScope(t, ownCgroup(t))
	const in = `set -e; for c in before before/deep made made/deep; do mkdir -p "$1/$c"; (echo 0 > "$1/$c/cgroup.procs"; { true < "/nothing/$c"; } 2>/dev/null || true); done
		for i in 1 2 3; do mkdir "$1/again"; (echo 0 > "$1/again/cgroup.procs"; { true < /nothing/again; } 2>/dev/null || true); while ! rmdir "$1/again" 2>/dev/null; do :; done; done
		mkdir "$2/other"; (echo 0 > "$2/other/cgroup.procs"; { true < /nothing/outside; } 2>/dev/null || true)`
	runIn(t, dir, in, dir, outside)
	got := all(t, s)
	for name, want := range map[string]int{"before": 1, "before/deep": 1, "made": 1, "made/deep": 1, "again": 3, "outside": 0} {
		if n := got.opens["/nothing/"+name]; n != want {
			t.Errorf("%s: %d opens, expected %d", name, n, want)
		}
	}
	if got.ops[schemas.OpMove] != 1 { // out of the scope
		t.Errorf("moves: %v", got.ops)
	}
}

// A run inside of another one, and one around it, have probes of their own, and both record.
func TestSharedNested(t *testing.T) {
	shareHere(t)
	dir := newScope(t, ownCgroup(t))
	testkit.Must(t, os.MkdirAll(dir+"/in/deep", 0o755))
	s := shareWith(t, dir+"/in", Options{})
	for at, want := range map[string]error{dir + "/in/deep": errNested, dir + "/in": errNested, dir: errAbove} {
		if _, err := Attach(Options{Cgroup: at, RingSize: 1 << 16, Probes: ProbesShared}); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected: %v", at, err, want)
		}
	}
	inner, err := Attach(Options{Cgroup: dir + "/in/deep", RingSize: 1 << 20, Probes: ProbesAuto})
	testkit.Must(t, err)
	t.Cleanup(inner.Close)
	if inner.Shares() {
		t.Error("the run inside shares probes")
	}
	runIn(t, dir+"/in/deep", openMany, "/nothing/deep", "17")
	for name, s := range map[string]*Session{"inside": inner, "outside": s} {
		if got := all(t, s); got.opens["/nothing/deep"] != 17 {
			t.Errorf("%s: %d opens, expected 17", name, got.opens["/nothing/deep"])
		}
	}
}

// Who chooses nothing: a run alone has its own probes, the second one makes a set, and from then on all use it.
func TestSharedAuto(t *testing.T) {
	dir := shareHere(t)
	var s [3]*Session
	for i, want := range []bool{false, true, true} {
		var err error
		s[i], err = Attach(Options{Cgroup: newScope(t, ownCgroup(t)), RingSize: 1 << 16, Probes: ProbesAuto})
		testkit.Must(t, err)
		t.Cleanup(s[i].Close)
		if s[i].Shares() != want {
			t.Errorf("run %d shares probes: %v, expected %v", i, s[i].Shares(), want)
		}
		if i == 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, shareName, ObjectsDigest())); err != nil {
			t.Error(err)
		}
	}
	for opt, want := range map[*Options]bool{{Rules: ruleSet("allow")}: false, {Without: Cast}: false, {Copies: CopiesOn}: false, {}: true} {
		opt.Cgroup, opt.RingSize, opt.Probes = newScope(t, ownCgroup(t)), 1<<16, ProbesAuto
		s, err := Attach(*opt)
		testkit.Must(t, err)
		if s.Shares() != want {
			t.Errorf("%+v shares probes: %v", opt, s.Shares())
		}
		s.Close()
		opt.Probes = ProbesShared
		if want {
			continue
		}
		if s, err := Attach(*opt); !errors.As(err, new(*SharedProbesError)) {
			t.Errorf("%+v: %v, %v", opt, s, err)
		}
	}
}

// A directory that others can write, or one that is none of ours, is not trusted where something is in it.
func TestSharedByOthers(t *testing.T) {
	dir := shareHere(t)
	at := filepath.Join(dir, shareName)
	testkit.Must(t, os.MkdirAll(filepath.Join(at, "full"), 0o700))
	defer os.RemoveAll(at)
	for _, spoil := range []func() error{
		func() error { return os.Chmod(at, 0o777) },
		func() error { return errors.Join(os.Chmod(at, 0o700), os.Chown(at, 65534, 65534)) },
	} {
		testkit.Must(t, spoil())
		if _, err := Attach(Options{Cgroup: newScope(t, ownCgroup(t)), RingSize: 1 << 16, Probes: ProbesShared}); err == nil || !strings.Contains(err.Error(), "root's alone") {
			t.Errorf("%v", err)
		}
	}
}

const shareEnv = "RUNNER_TEST_SHARE" // "DIR CGROUP": shares probes there, says so, and waits

// shareMain is the process of another run.
func shareMain(words string) {
	dir, cgroup, _ := strings.Cut(words, " ")
	bpfMount = func() (string, error) { return dir, nil }
	_, err := Attach(Options{Cgroup: cgroup, RingSize: 1 << 20, Probes: ProbesShared})
	fmt.Println("attached:", err)
	time.Sleep(time.Minute)
}

// startSharing starts another run's process.
func startSharing(t *testing.T, dir, cgroup string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), shareEnv+"="+dir+" "+cgroup)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil || string(line[:n]) != "attached: <nil>\n" {
		t.Fatalf("%q, %v", line[:n], err)
	}
	return cmd
}

// A run that is killed leaves its place to the next one, and nothing when that has ended.
func TestSharedKilled(t *testing.T) {
	dir := shareHere(t)
	first, second := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	for range 3 {
		cmd := startSharing(t, dir, first)
		cmd.Process.Kill()
		cmd.Wait()
	}
	if names := testkit.Names(t, filepath.Join(dir, shareName)); len(names) != 1 {
		t.Errorf("sets: %q", names)
	}
	s := shareWith(t, second, Options{})
	if runs, err := s.set.runs(); err != nil || len(runs) != 1 || s.member.run != 4 { // those of the killed have been free for a shorter time
		t.Errorf("the run has place %d of %v", s.member.run, runs)
	}
	if left := s.set.members(); len(left) != 1 {
		t.Errorf("cgroups in the table: %v", left)
	}
	runIn(t, first, openMany, "/nothing/first", "10")
	runIn(t, second, openMany, "/nothing/second", "10")
	if got := all(t, s); got.opens["/nothing/first"] != 0 || got.opens["/nothing/second"] != 10 {
		t.Errorf("opens: %v", got.opens)
	}
	s.Close()
	cmd := startSharing(t, dir, first)
	cmd.Process.Kill()
	cmd.Wait()
	if n, err := Unload(); n != 1 || err != nil {
		t.Errorf("%d sets removed: %v", n, err)
	}
}

// The sets are removed under a run: it goes on, and the next one makes another set.
func TestSharedUnloaded(t *testing.T) {
	shareHere(t)
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	s := shareWith(t, a, Options{})
	if n, err := Unload(); n != 1 || err != nil {
		t.Errorf("%d sets removed: %v", n, err)
	}
	other := shareWith(t, b, Options{})
	runIn(t, a, openMany, "/nothing/a", "10")
	runIn(t, b, openMany, "/nothing/b", "10")
	if got := all(t, s); got.opens["/nothing/a"] != 10 || got.opens["/nothing/b"] != 0 {
		t.Errorf("opens: %v", got.opens)
	}
	s.Close()
	if got := all(t, other); got.opens["/nothing/a"] != 0 || got.opens["/nothing/b"] != 10 {
		t.Errorf("opens: %v", got.opens)
	}
}

const touchEnv = "RUNNER_TEST_TOUCH" // a file: gets a descriptor of what is pinned there

func touchMain(path string) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	fmt.Println(m, err)
}

// A program of one run gets hold of what all share: each run is told. What somebody outside of every scope changes is found.
func TestSharedAttacked(t *testing.T) {
	dir := shareHere(t)
	at := filepath.Join(dir, shareName, ObjectsDigest())
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	s, other := shareWith(t, a, Options{}), shareWith(t, b, Options{})
	for i, pin := range []string{pinMap + objects.KernelSharedMapMembers, pinProgram + objects.KernelProgOnSysExit, pinLink + objects.KernelProgOnSysExit} {
		cmd := inScope(t, a, "/proc/self/exe")
		cmd.Env = append(os.Environ(), touchEnv+"="+filepath.Join(at, pin))
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s, %v", pin, out, err)
		for name, s := range map[string]*Session{"the run": s, "the other": other} {
			if n, _ := s.set.touched(); n == s.member.touched && i != 1 {
				t.Errorf("%s was not told of %s", name, pin)
			}
		}
	}
	if got := interference(t, s); got[schemas.InterferenceBPF] < 3 {
		t.Errorf("the run was told: %v", got)
	}
	if got := interference(t, other); got[schemas.InterferenceBPF] == 0 {
		t.Errorf("the other run was told: %v", got)
	}
	s.Close()
	other.Close()

	for what, change := range map[string]func(*Session) error{
		"nothing": func(*Session) error { return nil },
		"run": func(s *Session) error {
			return s.set.maps[objects.KernelSharedMapRuns].Put(s.member.run-1, objects.KernelSharedRun{CgroupId: 1})
		},
		"ring":   func(s *Session) error { return s.set.maps[objects.KernelSharedMapRings].Delete(s.member.run - 1) },
		"cgroup": func(s *Session) error { return s.set.maps[objects.KernelSharedMapMembers].Delete(s.CgroupID) },
		"hooks":  func(s *Session) error { return s.set.maps[objects.SockSharedMapHookedRun].Put(s.CgroupID, uint64(0)) },
		"link":   func(s *Session) error { return s.set.links[objects.KernelProgOnSysExit].Close() },
	} {
		s := shareWith(t, a, Options{})
		testkit.Must(t, change(s))
		if got := interference(t, s); got[schemas.InterferenceLinks] > 0 != (what != "nothing") {
			t.Errorf("%s: %v", what, got)
		}
		s.Close()
	}
	for _, name := range []string{objects.KernelMapCounters, objects.KernelMapDrops, objects.KernelMapAlarms, objects.KernelSharedMapTouched, factsMap} {
		s := shareWith(t, a, Options{})
		info, err := s.set.maps[name].Info()
		testkit.Must(t, err)
		if !info.Frozen() {
			t.Errorf("anybody with the map %s can write it", name)
		}
		s.Close()
	}
}

// A run's process that another run's program attacks is none of that program's run. Its own are.
func TestSharedSignals(t *testing.T) {
	dir := shareHere(t)
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	s := shareWith(t, a, Options{})
	cmd := startSharing(t, dir, b)
	runIn(t, a, `kill -QUIT $1`, fmt.Sprint(cmd.Process.Pid))
	cmd.Wait()
	other := shareWith(t, b, Options{})
	runIn(t, b, `kill -0 $1`, fmt.Sprint(os.Getpid()))
	for _, s := range []*Session{other, s} {
		got := interference(t, s)
		delete(got, schemas.InterferenceRing) // nobody read it
		if len(got) != 0 {
			t.Errorf("told: %v", got)
		}
	}
}
