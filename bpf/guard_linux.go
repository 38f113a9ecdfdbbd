//go:build amd64 || arm64

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// A program of the scope can be root, and then it can try to change the measurement. What it
// did to the runner's processes and to the kernel comes as alarms (probes/guard.h). What it
// did to the probes is looked for here: every map that user space need not write is frozen,
// and the position in the ring and the links must be at the end as they were left.

// alarmKinds is indexed by enum alarm_kind of guard.h.
var alarmKinds = [...]string{"", schemas.InterferenceBPF, schemas.InterferenceTrace, schemas.InterferenceTrace,
	schemas.InterferenceSignal, schemas.InterferenceMove, schemas.InterferenceKernel, schemas.InterferenceHelper, schemas.InterferenceUnseen}

const (
	alarmReach  = 3 // a process number, which may be one of ours
	alarmKernel = 6
	alarmHelper = 7
	alarmCount  = len(alarmKinds)
	alarmSize   = 16
	ringHead    = 8 // what the kernel keeps before a record
)

// kernelFiles are the files whose writing reaches past the cgroup, by the magic number of
// their file system. A file system without names here is watched as a whole.
var kernelFiles = []struct {
	magic uint32
	names []string
	kind  uint32
}{
	{unix.PROC_SUPER_MAGIC, []string{"core_pattern", "modprobe", "hotplug", "poweroff_cmd", "bset", "inheritable"}, alarmHelper},
	// Without ftrace the kernel does not run LSM programs, and says so to nobody.
	{unix.PROC_SUPER_MAGIC, []string{"sysrq-trigger", "ftrace_enabled"}, alarmKernel},
	{unix.SYSFS_MAGIC, []string{"uevent_helper"}, alarmHelper},
	{unix.CGROUP_SUPER_MAGIC, []string{"release_agent"}, alarmHelper},
	{unix.BINFMTFS_MAGIC, []string{"register"}, alarmHelper},
	{unix.DEBUGFS_MAGIC, nil, alarmKernel},
}

// guard is what the session keeps for the checks at its end.
type guard struct {
	alarms []byte // producer page and data of the ring of alarms, read-only
	cons   []byte // consumer page of the ring of events, read-only
	prod   []byte
	procs  []*os.File // directories in /proc of the runner's processes
	moved  bool       // the ring was not where its only reader had left it
	lost   uint64     // links that were not as they were attached
}

// watchProcesses finds out who the runner's processes are, as the kernel numbers them.
func (s *Session) watchProcesses(spec *ebpf.CollectionSpec, supervised bool) (err error) {
	if s.captureTGID, err = s.number(spec, objects.GuardProgOwnTgid); err == nil && supervised {
		s.supervisorTGID, err = s.number(spec, objects.GuardProgParentTgid)
	}
	if err != nil {
		return fmt.Errorf("finding the runner's processes: %w", err)
	}
	return nil
}

// number runs a program that returns a number.
func (s *Session) number(spec *ebpf.CollectionSpec, name string) (uint32, error) {
	one := pick(spec, name)
	if err := s.prepare(one); err != nil {
		return 0, err
	}
	one.Maps = map[string]*ebpf.MapSpec{".rodata": one.Maps[".rodata"]}
	coll, err := s.loadSomehow(one, nil)
	if err != nil {
		return 0, err
	}
	defer coll.Close()
	return coll.Programs[name].Run(&ebpf.RunOptions{})
}

// attachGuard attaches what watches signals, in copies where tasks are preempted in probes. On a
// realtime kernel that is so where a signal is sent.
func (s *Session) attachGuard(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) error {
	n := uint32(1)
	if s.copies.has(objects.GuardProgOnSignal) {
		n = smallCopies
	}
	for i := range n {
		one := pick(spec)
		if v := one.Variables["copy"]; v != nil { // the object for the usual kernel has none
			if err := v.Set(i); err != nil {
				return err
			}
		}
		coll, err := s.load(one, shared, objects.GuardProgOnSignal)
		if err == nil {
			err = s.trace(coll.Programs[objects.GuardProgOnSignal])
		}
		if err != nil {
			return fmt.Errorf("loading the guard: %w", err)
		}
	}
	return nil
}

// closeMaps fills the guard's tables and freezes the maps: from here on no process can
// write them by a system call, and programs only as they do.
func (s *Session) closeMaps(shared map[string]*ebpf.Map) error {
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
		if err := shared[objects.KernelMapOwnObjects].Put(key, uint32(1)); err != nil {
			return fmt.Errorf("filling the guard's table of objects: %w", err)
		}
	}
	s.holdProcesses()
	if err := s.mapPositions(shared); err != nil {
		return err
	}
	for _, o := range own {
		if o.name == objects.KernelMapEvents || o.info.Frozen() {
			continue // the reader of the events writes how far it has read
		}
		if err := o.m.Freeze(); err != nil {
			return fmt.Errorf("freezing the map %s: %w", o.name, err)
		}
	}
	return nil
}

// fillKernelFiles fills the guard's table of files.
func fillKernelFiles(m *ebpf.Map) error {
	for _, f := range kernelFiles {
		whole := f.kind
		if f.names != nil {
			whole = 0
		}
		for _, name := range append([]string{""}, f.names...) {
			key := objects.KernelKernelFile{Magic: f.magic}
			for i := range len(name) {
				key.Name[i] = int8(name[i])
			}
			kind := f.kind
			if name == "" {
				kind = whole
			}
			if err := m.Put(key, kind); err != nil {
				return fmt.Errorf("filling the guard's table of files: %w", err)
			}
		}
	}
	return nil
}

// ownMap is a map of the session.
type ownMap struct {
	name string
	m    *ebpf.Map
	info *ebpf.MapInfo
}

// maps are the session's maps, each once.
func (s *Session) maps() (all []ownMap, err error) {
	for _, c := range s.coll {
		for name, m := range c.Maps {
			if s.shares[m] {
				continue
			}
			info, err := m.Info()
			if err != nil {
				return nil, fmt.Errorf("asking for the map %s: %w", name, err)
			}
			all = append(all, ownMap{name, m, info})
		}
	}
	return all, nil
}

// Kinds of objects in own_objects (guard.h). A key there is the kind and the kernel's number.
const (
	aProgram = iota + 1
	aMap
	aLink
)

func ownKey(kind, id uint64) uint64 { return kind<<32 | id }

// objects are the keys of the session's programs, maps and links in own_objects.
func (s *Session) objects(own []ownMap) (keys []uint64, err error) {
	seen := map[uint64]bool{}
	add := func(key uint64, e error) {
		if e != nil {
			err = errors.Join(err, e)
		} else if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, c := range s.coll {
		for _, p := range c.Programs {
			n, e := idsOf(p)
			add(ownKey(aProgram, uint64(n.id)), e)
		}
	}
	for _, o := range own {
		id, _ := o.info.ID()
		add(ownKey(aMap, uint64(id)), nil)
	}
	for _, l := range s.links {
		n, e := idsOf(l)
		if e != nil {
			return nil, e
		}
		add(ownKey(aLink, uint64(n.id)), nil)
	}
	return keys, err
}

// mapPositions maps the pages that say how far the rings are written and read. Read-only: so
// the ring of alarms can be frozen.
func (s *Session) mapPositions(shared map[string]*ebpf.Map) (err error) {
	page := os.Getpagesize()
	look := func(m *ebpf.Map, at, size int) []byte {
		b, e := unix.Mmap(m.FD(), int64(at), size, unix.PROT_READ, unix.MAP_SHARED)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("mapping a ring: %w", e))
		}
		return b
	}
	if alarms := shared[objects.KernelMapAlarms]; alarms != nil {
		s.guard.alarms = look(alarms, page, page+int(alarms.MaxEntries()))
	}
	s.guard.cons = look(shared[objects.KernelMapEvents], 0, page)
	s.guard.prod = look(shared[objects.KernelMapEvents], page, page)
	return err
}

func (s *Session) unmapPositions() {
	for _, b := range [][]byte{s.guard.alarms, s.guard.cons, s.guard.prod} {
		if b != nil {
			unix.Munmap(b)
		}
	}
	s.guard.alarms, s.guard.cons, s.guard.prod = nil, nil, nil
	for _, d := range s.guard.procs {
		d.Close()
	}
}

// position is the 64-bit number at the beginning of a ring's page, which others write.
func position(page []byte) uint64 { return atomic.LoadUint64((*uint64)(unsafe.Pointer(&page[0]))) }

// ReadTo says how many bytes of the ring its only reader has read since the start, when it has
// just come to the end. Nobody can change what was written to the ring, but whoever has
// the map can change the position up to which it counts as read.
func (s *Session) ReadTo(consumed uint64) {
	if s.guard.cons == nil {
		return
	}
	if position(s.guard.cons) != consumed || position(s.guard.prod)-consumed > uint64(s.Ring.BufferSize()) {
		s.guard.moved = true
	}
}

// checkLinks counts the links that are not attached as the session attached them.
func (s *Session) checkLinks() {
	for i, l := range s.links {
		attached, err := idsOf(l)
		program, e := idsOf(s.progs[i])
		if err != nil || e != nil || attached.program != program.id || attached.kind == unix.BPF_LINK_TYPE_CGROUP && attached.cgroup != s.CgroupID {
			s.guard.lost++
		}
	}
}

// Interference is what programs of the scope did to the measurement, by the kinds of
// schemas.Interferences. It is final after Quiet, when the ring has been read to its end.
func (s *Session) Interference(consumed uint64) map[string]uint64 {
	out := map[string]uint64{}
	if s.guard.lost > 0 {
		out[schemas.InterferenceLinks] = s.guard.lost
	}
	if s.ReadTo(consumed); s.guard.moved || position(s.guard.prod) != consumed {
		out[schemas.InterferenceRing] = 1
	}
	if s.set != nil {
		s.alarmsOfMember(out)
		return out
	}
	data := s.guard.alarms[os.Getpagesize():]
	written := position(s.guard.alarms)
	ours := s.threads()
	if uint64(len(data))-min(written, uint64(len(data))) < ringHead+alarmSize { // later alarms were lost
		ours = func(int) bool { return true }
	}
	said := map[uint32]map[string]uint64{} // by copy of the probe
	for at := uint64(0); at < min(written, uint64(len(data))); {
		size := uint64(binary.NativeEndian.Uint32(data[at:]))
		if size != alarmSize { // not committed, or not ours
			out[schemas.InterferenceBPF]++
			break
		}
		kind := binary.NativeEndian.Uint32(data[at+8:])
		number := int(int32(binary.NativeEndian.Uint32(data[at+16:])))
		copy := binary.NativeEndian.Uint32(data[at+20:])
		at += ringHead + alarmSize
		if kind == 0 || int(kind) >= len(alarmKinds) || kind == alarmReach && !ours(number) {
			continue
		}
		if said[copy] == nil {
			said[copy] = map[string]uint64{}
		}
		said[copy][alarmKinds[kind]]++
	}
	// Each copy says the same, and one that was skipped says less.
	for _, i := range schemas.Interferences {
		kind := i.Kind
		n := uint64(0)
		for _, by := range said {
			n = max(n, by[kind])
		}
		if n > 0 {
			out[kind] += n
		}
	}
	return out
}

// holdProcesses opens the directories in /proc of this process, of its parent and of the parent's
// other children, before the command can mount over them.
func (s *Session) holdProcesses() {
	parent := strconv.Itoa(os.Getppid())
	pids := []string{"self", parent}
	if task, err := os.Open("/proc/" + parent + "/task"); err == nil {
		threads, _ := task.Readdirnames(-1)
		task.Close()
		for _, t := range threads { // not filepath.Glob: it lists all that there is of each thread
			b, _ := os.ReadFile(task.Name() + "/" + t + "/children")
			pids = append(pids, strings.Fields(string(b))...)
		}
	}
	for _, pid := range pids {
		if d, err := os.OpenFile("/proc/"+pid, unix.O_PATH|unix.O_DIRECTORY, 0); err == nil {
			s.guard.procs = append(s.guard.procs, d)
		}
	}
}

// threads returns whether a number is that of a thread of the runner's processes. If that
// cannot be read, because something is mounted there, every number is.
func (s *Session) threads() func(number int) bool {
	ours := map[int]bool{}
	for _, d := range s.guard.procs {
		fd, err := unix.Openat2(int(d.Fd()), "task", &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV})
		if errors.Is(err, unix.EXDEV) {
			return func(int) bool { return true }
		}
		if err != nil {
			continue // it has ended
		}
		list := os.NewFile(uintptr(fd), "task")
		names, _ := list.Readdirnames(-1)
		list.Close()
		for _, name := range names {
			n, _ := strconv.Atoi(name)
			ours[n] = true
		}
	}
	return func(number int) bool { return ours[number] }
}
