//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// How runs that were killed are found, and how a run is taken out of the tables.

// reap takes out runs whose capture was killed: the map that it held is gone.
func (set *probeSet) reap() error {
	runs, err := set.runs()
	if err != nil {
		return err
	}
	for run, r := range runs {
		switch alive, err := isAlive(r); {
		case err != nil:
			return fmt.Errorf("looking for the run of cgroup %d: %w", r.CgroupId, err)
		case !alive:
			set.forget(run)
		}
	}
	return nil
}

// aliveName is the name of the map that says that a run's capture is there. Its value is the run's cgroup.
const aliveName = "runner_alive"

// live makes that map. The kernel gives its number to no other one for a long time.
func (s *Session) live() (id uint32, err error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: aliveName, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return 0, err
	}
	s.member.alive = m
	if err := errors.Join(m.Put(uint32(0), s.CgroupID), m.Freeze()); err != nil {
		return 0, err
	}
	n, err := idsOf(m)
	return n.id, err
}

func isAlive(r objects.KernelSharedRun) (bool, error) {
	m, err := ebpf.NewMapFromID(ebpf.MapID(r.Alive))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil || info.Name != aliveName || info.ValueSize != 8 {
		return false, err
	}
	var cgroup uint64
	err = m.Lookup(uint32(0), &cgroup)
	return cgroup == r.CgroupId, err
}

// forget takes out a run that was killed, or that did not become one: first its cgroups, then its ring, for which the kernel waits until
// no program can be at an event of it any more, and then the rest.
func (set *probeSet) forget(run uint32) {
	set.dropCgroups(run)
	left := uint32(leftNothing)
	if set.maps[objects.KernelSharedMapRings].Delete(run-1) != nil { // it had none, so nobody waited
		left = leftPrograms
	}
	if set.sweep(func(of uint32) bool { return of == run }) {
		set.free(run, left)
	}
}

// sweep takes out what the tables have of some runs, and reports whether nothing is left. A place stays taken as long as something
// of its run is found: the next one there would be told it. Whoever starts or ends tries again.
func (set *probeSet) sweep(of func(run uint32) bool) bool {
	all := dropWhere(set.maps[objects.KernelSharedMapMembers], func(_ uint64, m *objects.KernelSharedMember) bool { return of(m.Run) })
	all = dropWhere(set.maps[objects.KernelMapOwnObjects], func(_ uint64, run *uint32) bool { return *run != ofAll && of(*run) }) && all
	all = dropWhere(set.maps[objects.UringSharedMapRequests], func(_ uint64, q *objects.UringSharedRequest) bool { return of(q.Run) }) && all
	return dropWhere(set.maps[objects.KernelSharedMapReached], func(r objects.KernelSharedReach, _ *uint32) bool { return of(r.Run) }) && all
}

func (set *probeSet) dropCgroups(run uint32) bool {
	return dropWhere(set.maps[objects.KernelSharedMapMembers], func(_ uint64, m *objects.KernelSharedMember) bool { return m.Run == run })
}

// tableWalks is how often a walk over a table is made at most.
const tableWalks = 8

// tableBatch is how many entries of a table are read at once at most, and tableBytes how many bytes of them at first.
const (
	tableBatch = 512
	tableBytes = 64 << 10
)

// dropWhere deletes entries of a hash table, in walks that are made until one finds nothing. It reports whether nothing is left.
func dropWhere[K comparable, V any](m *ebpf.Map, gone func(K, *V) bool) bool {
	batch := min(max(tableBytes/int(m.KeySize()+m.ValueSize()), 1), tableBatch)
	for range tableWalks {
		found, err := entriesWhere(m, batch, gone)
		for errors.Is(err, unix.ENOSPC) && batch < tableBatch { // they all have one hash: the kernel gives them at once, or none
			batch = min(4*batch, tableBatch)
			found, err = entriesWhere(m, batch, gone)
		}
		for _, k := range found {
			m.Delete(k)
		}
		if len(found) == 0 && errors.Is(err, ebpf.ErrKeyNotExist) { // which says that there is no more
			return true
		}
	}
	return false
}

// entriesWhere walks over a hash table once. Its error says why the walk ended: ErrKeyNotExist at the end of the table.
func entriesWhere[K comparable, V any](m *ebpf.Map, batch int, want func(K, *V) bool) (found []K, err error) {
	keys, values := make([]K, batch), make([]V, batch)
	for at := new(ebpf.MapBatchCursor); err == nil; {
		var n int
		n, err = m.BatchLookup(at, keys, values, nil)
		for i := range n {
			if want(keys[i], &values[i]) {
				found = append(found, keys[i])
			}
		}
	}
	return found, err
}
