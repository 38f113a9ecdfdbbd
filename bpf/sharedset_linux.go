//go:build amd64 || arm64

package bpf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// probeSet is a set of probes that is attached for several runs. All of it is pinned: it stays when the run that loaded it has
// ended, and who opens it holds it.
type probeSet struct {
	path  string
	at    os.FileInfo // the directory
	facts setFacts
	maps  map[string]*ebpf.Map
	progs map[string]*ebpf.Program // by their names in the sources, copies with their number
	links map[string]link.Link     // likewise, of those that are attached for all runs
}

// setFacts are what the run that loaded the probes found out.
type setFacts struct {
	IOUring, IOUringForm, Unix, Results, PathObjects string
	Reasons                                          []string
	Tasks, Calls                                     bool // where the kernel preempts tasks in probes
	CopiesOfTasks, CopiesOfCalls                     bool
	Pins                                             map[string]uint32 // all that is pinned but the facts, by the kernel's numbers
}

// The names of pins begin with what they are.
const (
	pinMap, pinProgram, pinLink = "map-", "program-", "link-"
	factsMap                    = "facts"
	factsSize                   = 8192
)

// ofAll marks the objects that all runs share in the guard's table; those of a run are marked with its number.
const ofAll = ^uint32(0)

// setMaps are the maps that a run opens. Those that it writes are not frozen.
var setMaps = map[string]struct{ written bool }{
	objects.KernelSharedMapRuns: {true}, objects.KernelSharedMapMembers: {true}, objects.KernelSharedMapRings: {true},
	objects.SockSharedMapHookedRun: {true}, objects.KernelSharedMapOwnObjects: {true}, objects.KernelSharedMapReached: {true},
	objects.UringSharedMapRequests: {true},
	objects.KernelMapCounters:      {}, objects.KernelMapDrops: {}, objects.KernelMapAlarms: {}, objects.KernelSharedMapTouched: {},
	factsMap: {},
}

// damagedError says that a set is not as it was made.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what }

// openSet opens a set. The error is os.ErrNotExist if there is none, and a damagedError if it is not as it was made.
func openSet(path string) (_ *probeSet, err error) {
	at, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	set := &probeSet{path: path, at: at, maps: map[string]*ebpf.Map{}, progs: map[string]*ebpf.Program{}, links: map[string]link.Link{}}
	defer func() {
		if err != nil {
			set.close()
			err = fmt.Errorf("opening the shared probes in %s: %w", path, err)
		}
	}()
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		kind, name, _ := strings.Cut(e.Name(), "-")
		switch kind + "-" {
		case pinMap:
			set.maps[name], err = ebpf.LoadPinnedMap(at, nil)
		case pinProgram:
			set.progs[name], err = ebpf.LoadPinnedProgram(at, nil)
		case pinLink:
			set.links[name], err = link.LoadPinnedLink(at, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	facts := make([]byte, factsSize)
	if m := set.maps[factsMap]; m == nil || m.ValueSize() != factsSize {
		return nil, &damagedError{"what is known of the set is missing"}
	} else if err := m.Lookup(uint32(0), &facts); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(bytes.TrimRight(facts, "\x00"), &set.facts); err != nil {
		return nil, err
	}
	return set, set.whole()
}

// whole checks that all that was pinned is there, and nothing else. A set without its links records nothing, and nobody would be told.
func (set *probeSet) whole() error {
	found, err := set.numbers()
	if err != nil {
		return err
	}
	if !maps.Equal(found, set.facts.Pins) {
		return &damagedError{"the set is not as it was made"}
	}
	return nil
}

// numbers are the kernel's numbers of all that is pinned but the facts.
func (set *probeSet) numbers() (found map[string]uint32, err error) {
	found = map[string]uint32{}
	add := func(pin string, object any) {
		n, e := idsOf(object)
		found[pin], err = n.id, errors.Join(err, e)
	}
	for name, m := range set.maps {
		add(pinMap+name, m)
	}
	for name, p := range set.progs {
		add(pinProgram+name, p)
	}
	for name, l := range set.links {
		add(pinLink+name, l)
	}
	delete(found, pinMap+factsMap)
	return found, err
}

// there reports whether the set is still the one at its path.
func (set *probeSet) there() bool {
	now, err := os.Lstat(set.path)
	return err == nil && os.SameFile(set.at, now)
}

// The ends of the names of sets that are being made and removed. Who does that can be killed: nobody takes them for sets.
const newSet, oldSet = "-new", "-old"

// removeSet removes a set: as a whole or not at all.
func removeSet(path string) error {
	old := path + oldSet
	if err := errors.Join(os.RemoveAll(old), os.Rename(path, old)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// sweep removes what somebody who was killed left: of making or removing a set, or of being alone. The caller holds the lock.
func (sh *share) sweep() {
	entries, _ := os.ReadDir(sh.path)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), newSet) || strings.HasSuffix(e.Name(), oldSet) {
			os.RemoveAll(filepath.Join(sh.path, e.Name()))
		}
	}
	if f, err := openAlone(sh.path); err == nil {
		removeAlone(f)
		f.Close()
	}
}

func (set *probeSet) close() {
	for _, m := range set.maps {
		m.Close()
	}
	for _, p := range set.progs {
		p.Close()
	}
	for _, l := range set.links {
		if l != nil { // the one that could not be opened
			l.Close()
		}
	}
}

// copiesOfSets is a variable so that tests can make sets with copies on every kernel.
var copiesOfSets = CopiesAuto

// makeSet loads and attaches the probes, and pins them. They are there as a whole or not at all.
func makeSet(path string) error {
	types := new(kernelBTF)
	go types.Kernel()
	s := &Session{types: types, from: sharedObjects, sharing: true, required: make(chan struct{})}
	defer s.Close() // what is pinned stays
	s.Preemption = DetectPreemption(types)
	if err := s.Preemption.Err; err != nil {
		return err
	}
	if s.copies = chooseCopies(copiesOfSets, s.Preemption); s.copies.any() {
		s.from = sharedCopies
	}
	if err := s.lacks(0); err != nil {
		return err
	}
	if s.without&(Cast|Loop) != 0 {
		return errors.New(s.Loaded())
	}
	shared, facts, err := s.loadSet()
	if err != nil {
		return err
	}
	blank := path + newSet
	if err := os.Mkdir(blank, 0o700); err != nil {
		return err
	}
	err = s.closeSet(shared)
	if err == nil {
		err = s.pin(blank, shared, facts)
	}
	if err == nil {
		err = os.Rename(blank, path)
	}
	if err != nil {
		os.RemoveAll(blank)
		return fmt.Errorf("pinning the shared probes: %w", err)
	}
	return nil
}

// loadSet loads everything, side by side, and attaches what is attached for all runs.
func (s *Session) loadSet() (shared map[string]*ebpf.Map, facts setFacts, err error) {
	facts.Tasks, facts.Calls = s.Preemption.Tasks, s.Preemption.Calls
	facts.CopiesOfTasks, facts.CopiesOfCalls = s.copies.tasks, s.copies.calls
	probes, err := s.read(s.from.kernel)
	if err != nil {
		return nil, facts, err
	}
	s.copySpec = s.copies.spec(probes)
	coll, err := s.load(onlyMaps(probes), nil)
	if err != nil {
		return nil, facts, fmt.Errorf("making the maps: %w", err)
	}
	// One map is of the address hooks alone, which are three objects.
	sock, err := s.from.sock()
	if err != nil {
		return nil, facts, err
	}
	only := onlyMaps(sock)
	maps.DeleteFunc(only.Maps, func(name string, _ *ebpf.MapSpec) bool { return name != objects.SockSharedMapHookedRun })
	only.Variables = nil
	hooked, err := s.load(only, nil)
	if err != nil {
		return nil, facts, fmt.Errorf("making the maps: %w", err)
	}
	shared = maps.Clone(coll.Maps)
	shared[objects.SockSharedMapHookedRun] = hooked.Maps[objects.SockSharedMapHookedRun]
	guard, err := s.from.guard()
	if err != nil {
		return nil, facts, err
	}
	var errs [6]error
	var copied [probeCopies]*ebpf.Collection
	var wg sync.WaitGroup
	if s.copies.any() {
		wg.Go(func() { copied, errs[5] = s.loadCopies(shared) })
	}
	wg.Go(func() { errs[0] = s.attachRequired(probes, shared) })
	wg.Go(func() { errs[1] = s.attachGuard(guard, shared) })
	wg.Go(func() { errs[2] = s.loadNumbers(guard) })
	wg.Go(func() { errs[3] = s.attachRings(shared, &facts) })
	wg.Go(func() {
		if facts.PathObjects, err = s.attachObjects(shared); err != nil {
			facts.PathObjects = state(err)
		}
	})
	wg.Go(func() {
		_, errs[4] = s.load(sock, shared)
		facts.Results = state(s.loadHook(s.from.result, shared))
		e := s.hasUnixHooks()
		if e == nil {
			e = s.loadHook(s.from.unix, shared)
		}
		facts.Unix = state(e)
	})
	wg.Wait()
	facts.Reasons = s.reasons
	if s.requests != nil {
		shared[objects.UringSharedMapRequests] = s.requests
	}
	if err := errors.Join(errs[:]...); err != nil || !s.copies.any() {
		return shared, facts, err
	}
	return shared, facts, s.attachCopies(copied)
}

func (s *Session) loadHook(read specFunc, shared map[string]*ebpf.Map) error {
	spec, err := read()
	if err == nil {
		_, err = s.load(spec, shared)
	}
	return err
}

// attachRings attaches what sees io_uring. Where that does not load, its use would have to be counted, for each run: such a run
// has probes of its own.
func (s *Session) attachRings(shared map[string]*ebpf.Map, facts *setFacts) error {
	kernel, err := s.types.Kernel()
	if err != nil {
		return err
	}
	form, err := uringFormOf(kernel)
	if err == nil {
		err = s.attachUringObject(shared, form)
	}
	if err != nil {
		return err
	}
	facts.IOUring, facts.IOUringForm = state(nil), form.String()
	return nil
}

// loadNumbers loads the programs that say which number a process has.
func (s *Session) loadNumbers(guard *ebpf.CollectionSpec) error {
	spec := pick(guard, objects.GuardProgOwnTgid, objects.GuardProgParentTgid)
	if err := s.prepare(spec); err != nil {
		return err
	}
	maps.DeleteFunc(spec.Maps, func(name string, _ *ebpf.MapSpec) bool { return !strings.HasPrefix(name, ".") })
	coll, err := s.loadSomehow(spec, nil)
	if err == nil {
		s.add(coll, nil)
	}
	return err
}

// closeSet fills the guard's tables and freezes what only the programs write.
func (s *Session) closeSet(shared map[string]*ebpf.Map) error {
	if err := fillKernelFiles(shared[objects.KernelMapKernelFiles]); err != nil {
		return err
	}
	own, err := s.maps()
	if err != nil {
		return err
	}
	keys, err := s.objects(own)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := shared[objects.KernelMapOwnObjects].Put(key, ofAll); err != nil {
			return fmt.Errorf("filling the guard's table of objects: %w", err)
		}
	}
	for _, o := range own {
		if o.info.Frozen() || setMaps[o.name].written {
			continue
		}
		if err := o.m.Freeze(); err != nil {
			return fmt.Errorf("freezing the map %s: %w", o.name, err)
		}
	}
	return nil
}

// pin pins what a run needs: programs, links, some maps, and what there is to know of them.
func (s *Session) pin(dir string, shared map[string]*ebpf.Map, facts setFacts) error {
	set := probeSet{maps: map[string]*ebpf.Map{}, progs: map[string]*ebpf.Program{}, links: map[string]link.Link{}}
	for _, name := range slices.Sorted(maps.Keys(setMaps)) {
		if name == factsMap {
			continue
		}
		if shared[name] == nil {
			return fmt.Errorf("there is no map %s", name)
		}
		set.maps[name] = shared[name]
	}
	own, err := s.maps()
	if err != nil {
		return err
	}
	for _, o := range own {
		if o.m.Type() == ebpf.ProgramArray { // the kernel empties one that nobody holds
			set.maps[o.name] = o.m
		}
	}
	names, copies := s.programNames(), map[string]int{}
	for i, l := range s.links {
		p := s.progs[i]
		name := nameOfCopy(names[p], copies[names[p]])
		copies[names[p]]++
		set.links[name], set.progs[name] = l, p
	}
	for p, name := range names {
		if copies[name] == 0 && name != objects.PathObjProgOnArmTester { // each part of the lookups has one, and only while it is tried
			set.progs[name] = p
		}
	}
	if facts.Pins, err = set.numbers(); err != nil {
		return err
	}
	known, err := facts.toMap()
	if err != nil {
		return err
	}
	defer known.Close()
	set.maps[factsMap] = known
	for name, m := range set.maps {
		err = errors.Join(err, m.Pin(filepath.Join(dir, pinMap+name)))
	}
	for name, p := range set.progs {
		err = errors.Join(err, p.Pin(filepath.Join(dir, pinProgram+name)))
	}
	for name, l := range set.links {
		err = errors.Join(err, l.Pin(filepath.Join(dir, pinLink+name)))
	}
	return err
}

// nameOfCopy is the name of the pins of a copy of a program, and programOfCopy that of the program.
func nameOfCopy(program string, copy int) string {
	if copy == 0 {
		return program
	}
	return fmt.Sprintf("%s-%d", program, copy)
}

func programOfCopy(name string) string {
	program, _, _ := strings.Cut(name, "-")
	return program
}

// toMap makes the map that holds the facts.
func (facts setFacts) toMap() (*ebpf.Map, error) {
	text, err := json.Marshal(facts)
	if err != nil {
		return nil, err
	}
	if len(text) > factsSize {
		return nil, fmt.Errorf("%d bytes of facts, expected at most %d", len(text), factsSize)
	}
	known, err := ebpf.NewMap(&ebpf.MapSpec{Name: "runner_facts", Type: ebpf.Array, KeySize: 4, ValueSize: factsSize, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(known.Put(uint32(0), append(text, make([]byte, factsSize-len(text))...)), known.Freeze()); err != nil {
		known.Close()
		return nil, err
	}
	return known, nil
}
