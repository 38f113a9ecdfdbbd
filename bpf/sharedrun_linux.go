//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// member is a run's place among those that share probes.
type member struct {
	run     uint32 // its number there, from 1
	ring    *ebpf.Map
	before  [slots][]objects.KernelSharedCounters // what earlier runs counted in its place
	drops   []uint64
	misses  map[*ebpf.Program]uint64 // what each program missed before, whosever it was
	alarms  [alarmCount]uint64       // what was told before, by kind
	touched uint64
	entered objects.KernelSharedRun // what it put in its place
	alive   *ebpf.Map               // that it is there
	keys    []uint64                // of its objects in own_objects: the ring, then the hooks
	waited  bool                    // its place was left a moment ago
	leaving map[uint32]uint32       // places that had been left when it came, and their lives
	toTake  uint32                  // the one that had a ring
	left    sync.WaitGroup          // what goes on in the background
}

// Errors of runs that have to have probes of their own.
var (
	errNested = errors.New("its cgroup belongs to a run that shares probes: a run inside of another one has its own")
	errAbove  = errors.New("a run below its cgroup shares probes: a run around another one has its own")
	errFull   = errors.New("as many runs share probes as can")
)

// join makes a run a member. The caller holds the lock.
func (set *probeSet) join(opt Options) (_ *Session, err error) {
	s := &Session{set: set, sharing: true, Redundant: schemas.RedundantOff, arguments: opt.Arguments, Cgroup: opt.Cgroup}
	s.IOUring, s.IOUringForm, s.Unix, s.Results, s.PathObjects = set.facts.IOUring, set.facts.IOUringForm, set.facts.Unix, set.facts.Results, set.facts.PathObjects
	s.reasons = set.facts.Reasons
	s.Preemption = Preemption{Tasks: set.facts.Tasks, Calls: set.facts.Calls}
	if s.copies = (copySet{set.facts.CopiesOfTasks, set.facts.CopiesOfCalls}); s.copies.any() {
		s.Redundant = RedundantOn
	}
	s.requests = set.maps[objects.UringSharedMapRequests]
	defer func() {
		if err != nil {
			s.member.left.Wait()
			s.set = nil // the caller closes it
			s.Close()
			if s.member.run != 0 {
				set.forget(s.member.run)
			}
			s.member.close()
		}
	}()
	dir, err := os.Open(opt.Cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, err
	}
	s.CgroupID = st.Ino
	if err := set.reap(); err != nil {
		return nil, err
	}
	if err := s.take(); err != nil {
		return nil, err
	}
	if s.captureTGID, err = set.number(objects.GuardProgOwnTgid); err == nil && opt.Supervised {
		s.supervisorTGID, err = set.number(objects.GuardProgParentTgid)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the runner's processes: %w", err)
	}
	if err := s.makeRing(opt); err != nil {
		return nil, err
	}
	if err := s.attachHooksOfSet(dir); err != nil {
		return nil, err
	}
	if err := s.remember(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.holdProcesses()
	return s, s.mapPositions(map[string]*ebpf.Map{objects.KernelMapEvents: s.member.ring})
}

// number runs a program that returns a number.
func (set *probeSet) number(name string) (uint32, error) {
	p := set.progs[name]
	if p == nil {
		return 0, fmt.Errorf("there is no program %s", name)
	}
	return p.Run(&ebpf.RunOptions{})
}

// makeRing makes the run's ring and puts it where its number is. The kernel then waits until no program can have what was there
// before, for some milliseconds: a run has to only where another one was a moment ago.
func (s *Session) makeRing(opt Options) (err error) {
	m := &s.member
	if m.ring, err = opt.ring(); err != nil {
		return fmt.Errorf("making the ring: %w", err)
	}
	if s.Ring, err = NewRing(m.ring); err != nil {
		return fmt.Errorf("opening the ring: %w", err)
	}
	ring, err := idsOf(m.ring)
	if err != nil {
		return err
	}
	m.keys = append(m.keys, ownKey(aMap, uint64(ring.id)))
	put := make(chan error, 1)
	m.left.Go(func() { put <- s.set.maps[objects.KernelSharedMapRings].Put(m.run-1, m.ring) })
	if m.waited {
		if err := <-put; err != nil {
			return fmt.Errorf("giving the run its ring: %w", err)
		}
		if !s.set.sweep(func(run uint32) bool { return run == m.run }) {
			return errFull
		}
	}
	if err := s.set.awaitRing(m.run, ring.id, put); err != nil {
		return fmt.Errorf("giving the run its ring: %w", err)
	}
	return s.takeLeft()
}

// attachHooksOfSet attaches the programs that are attached to each cgroup. Until the run is a member they do nothing.
func (s *Session) attachHooksOfSet(dir *os.File) error {
	set := s.set
	if err := s.attachTo(dir, set.progs, addressHooks); err != nil {
		return err
	}
	if s.Unix == schemas.CaptureAttached {
		if err := s.attachTo(dir, set.progs, unixAddressHooks); err != nil {
			return err
		}
	}
	if s.Results == schemas.CaptureAttached {
		if err := s.attachTo(dir, set.progs, resultHook); err != nil {
			return err
		}
	}
	for _, l := range s.links {
		n, err := idsOf(l)
		if err != nil {
			return err
		}
		s.member.keys = append(s.member.keys, ownKey(aLink, uint64(n.id)))
	}
	for name, l := range set.links {
		if set.progs[name] == nil {
			return fmt.Errorf("there is no program %s", name)
		}
		s.keep(l, set.progs[name])
	}
	return nil
}

// remember reads what was counted in this place before. Nobody can write there.
func (s *Session) remember() error {
	m := &s.member
	for slot := range uint32(slots) {
		if err := s.set.maps[objects.KernelMapCounters].Lookup(s.slotKey(slot), &m.before[slot]); err != nil {
			return fmt.Errorf("reading counters: %w", err)
		}
	}
	m.drops = make([]uint64, len(opNames))
	for op := range m.drops {
		if err := s.set.maps[objects.KernelMapDrops].Lookup(s.dropKey(uint32(op)), &m.drops[op]); err != nil {
			return fmt.Errorf("reading drops: %w", err)
		}
	}
	var alarms objects.KernelSharedAlarmsOfRun
	if err := s.set.maps[objects.KernelMapAlarms].Lookup(m.run-1, &alarms); err != nil {
		return fmt.Errorf("reading alarms: %w", err)
	}
	m.alarms = alarms.Of
	var err error
	if m.touched, err = s.set.touched(); err != nil {
		return err
	}
	m.misses = map[*ebpf.Program]uint64{}
	for _, p := range s.progs {
		st, err := p.Stats()
		if err != nil {
			return fmt.Errorf("reading recursion misses: %w", err)
		}
		m.misses[p] = st.RecursionMisses
	}
	return nil
}

func (set *probeSet) touched() (n uint64, err error) {
	if err = set.maps[objects.KernelSharedMapTouched].Lookup(uint32(0), &n); err != nil {
		err = fmt.Errorf("reading alarms: %w", err)
	}
	return n, err
}

func (s *Session) slotKey(slot uint32) uint32 { return (s.member.run-1)*slots + slot }
func (s *Session) dropKey(op uint32) uint32   { return (s.member.run-1)*uint32(len(opNames)) + op }

// enter tells the programs of the run. From here on they record it.
func (s *Session) enter() error {
	set, run := s.set, s.member.run
	alive, err := s.live()
	if err != nil {
		return fmt.Errorf("saying that the run is there: %w", err)
	}
	for _, key := range append(slices.Clone(s.member.keys), ownKey(aMap, uint64(alive))) { // who holds that one keeps a killed run alive
		if err := set.maps[objects.KernelMapOwnObjects].Put(key, run); err != nil {
			return fmt.Errorf("filling the guard's table of objects: %w", err)
		}
	}
	r := objects.KernelSharedRun{CgroupId: s.CgroupID, CaptureTgid: s.captureTGID, SupervisorTgid: s.supervisorTGID, Alive: alive}
	if s.arguments {
		r.ReadArguments = 1
	}
	s.member.entered = r
	if err := set.maps[objects.KernelSharedMapRuns].Put(run-1, r); err != nil {
		return fmt.Errorf("entering the run: %w", err)
	}
	// Its own cgroup first: what is made below it from then on, the programs add themselves.
	if err := set.add(s.CgroupID, run, ebpf.UpdateAny); err != nil {
		return err
	}
	if err := s.addBelow(); err != nil {
		return err
	}
	if err := set.maps[objects.SockSharedMapHookedRun].Update(s.CgroupID, uint64(run), ebpf.UpdateExist); err != nil {
		return fmt.Errorf("entering the run for its address hooks: %w", err)
	}
	s.Hooks.from = now()
	return nil
}

func (set *probeSet) add(id uint64, run uint32, how ebpf.MapUpdateFlags) error {
	err := set.maps[objects.KernelSharedMapMembers].Update(id, objects.KernelSharedMember{Id: id, Run: run}, how)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("entering a cgroup: %w", err)
	}
	return nil
}

// addBelow enters the cgroups that are below already.
func (s *Session) addBelow() error {
	root := s.Cgroup + "/." // it can be a link
	var top, st unix.Statx_t
	if err := statMount(root, &top); err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil || !d.IsDir() || path == root {
			return err
		}
		if err := statMount(path, &st); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if st.Mnt_id != top.Mnt_id {
			return fmt.Errorf("%s: something is mounted over a cgroup: a run around it has probes of its own", path)
		}
		var m objects.KernelSharedMember
		if s.set.maps[objects.KernelSharedMapMembers].Lookup(st.Ino, &m) == nil && m.Run != s.member.run {
			return errAbove
		}
		return s.set.add(st.Ino, s.member.run, ebpf.UpdateNoExist)
	})
}

// statMount says which file a path is, and on which mount.
func statMount(path string, st *unix.Statx_t) error {
	const what = unix.STATX_INO | unix.STATX_MNT_ID
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, what, st)
	if err == nil && st.Mask&what != what {
		err = errors.New("the kernel does not say on which mount a cgroup is")
	}
	return err
}

// members are the cgroups of runs.
func (set *probeSet) members() map[uint64]uint32 {
	found := map[uint64]uint32{}
	var id uint64
	var m objects.KernelSharedMember
	for it := set.maps[objects.KernelSharedMapMembers].Iterate(); it.Next(&id, &m); {
		found[id] = m.Run
	}
	return found
}

// stopMember ends the recording of the run. Programs that are at an event of it go on for a moment: where tasks are left, it waits
// until there are none.
func (s *Session) stopMember() error {
	set, run := s.set, s.member.run
	s.checkMember()
	s.member.entered.Ended = 1 // what is kept for longer than a program runs is told no more: from here on the counters stand
	if err := set.maps[objects.KernelSharedMapRuns].Put(run-1, s.member.entered); err != nil {
		return fmt.Errorf("ending the run: %w", err)
	}
	set.dropCgroups(run)
	events, err := os.ReadFile(filepath.Join(s.Cgroup, "cgroup.events"))
	if err != nil || !strings.Contains(string(events), "populated 0") {
		unix.Syscall(unix.SYS_MEMBARRIER, 1 /* MEMBARRIER_CMD_GLOBAL: waits as the kernel does before it frees what programs use */, 0, 0)
	}
	return nil
}

// checkMember compares what is there of the run with what it put there. Root can write these tables from outside of every scope.
func (s *Session) checkMember() {
	set, run := s.set, s.member.run
	var r objects.KernelSharedRun
	var m objects.KernelSharedMember
	var hooked uint64
	var ring uint32
	err := errors.Join(set.maps[objects.KernelSharedMapRuns].Lookup(run-1, &r), set.maps[objects.KernelSharedMapRings].Lookup(run-1, &ring),
		set.maps[objects.KernelSharedMapMembers].Lookup(s.CgroupID, &m), set.maps[objects.SockSharedMapHookedRun].Lookup(s.CgroupID, &hooked))
	if err != nil || r != s.member.entered || uint64(ring) != s.member.keys[0]&0xffffffff || m.Run != run || hooked != uint64(run) {
		s.guard.lost++
	}
}

// leaveSet gives the place back. The last one takes the probes away.
func (s *Session) leaveSet() {
	set := s.set
	s.member.left.Wait()
	sh, err := lockShare(sharePatience)
	if err == nil { // else the next run finds that this one has gone
		s.leave()
		sh.tidyAfter(set)
		sh.unlock()
	}
	s.member.left.Wait()
	s.member.close()
	set.close()
	s.set = nil
}

func (m *member) close() {
	for _, m := range []*ebpf.Map{m.alive, m.ring} {
		if m != nil {
			m.Close()
		}
	}
}

// tidyAfter removes a set that no run uses any more, unless it is kept. One whose capture was killed uses nothing. Where it was,
// another one can be by now, which runs use.
func (sh *share) tidyAfter(set *probeSet) {
	if set.reap() != nil || isKept(set.path) {
		return
	}
	if runs, err := set.runs(); err == nil && len(runs) == 0 && filepath.Dir(set.path) == sh.path && set.there() {
		removeSet(set.path)
	}
}

func (sh *share) tidy(path string) {
	if set, err := openSet(path); err == nil {
		sh.tidyAfter(set)
		set.close()
	}
}
