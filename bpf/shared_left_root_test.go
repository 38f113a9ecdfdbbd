//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// leftIn is what a place says that is left in it, and whether a ring is.
func leftIn(t *testing.T, set *probeSet, run uint32) (left uint32, ring bool) {
	t.Helper()
	places, err := set.places()
	testkit.Must(t, err)
	var id uint32
	if err = set.maps[objects.KernelSharedMapRings].Lookup(run-1, &id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Fatal(err)
	}
	return places[run].Left, err == nil
}

// The end of a run leaves its place marked, and its ring there, and a later run takes both away. One ring is left at most.
func TestSharedLeft(t *testing.T) {
	shareHere(t)
	keeps := shareWith(t, newScope(t, ownCgroup(t)), Options{})
	is := func(when string, run uint32, left uint32, ring bool) {
		t.Helper()
		if l, r := leftIn(t, keeps.set, run); l != left || r != ring {
			t.Errorf("%s: in place %d is left %d, a ring: %v, expected %d and %v", when, run, l, r, left, ring)
		}
	}
	scopes := [3]string{newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))}
	var at [3]uint32
	var of [3]*Session
	for i, scope := range scopes {
		of[i] = shareWith(t, scope, Options{})
		at[i] = of[i].member.run
	}
	for i := range of {
		of[i].Close()
	}
	is("the first to end", at[0], leftRing, true)
	is("the second to end", at[1], leftPrograms, false)
	is("the third to end", at[2], leftPrograms, false)

	// What a program that was late puts into a table after its run's end.
	const late = 1 << 62
	testkit.Must(t, keeps.set.add(late, at[1], ebpf.UpdateAny))
	next := shareWith(t, scopes[0], Options{})
	is("beside the next run", at[0], leftPrograms, false)
	is("beside the next run", next.member.run, leftNothing, true)
	runIn(t, scopes[0], openMany, "/nothing/next", "10")
	if got := all(t, next); got.opens["/nothing/next"] != 10 {
		t.Errorf("the next run: %d events, %v", got.read, got.opens)
	}
	next.Close()
	for _, run := range at {
		is("after the next run", run, leftNothing, false)
	}
	is("after the next run", next.member.run, leftRing, true)
	if of := keeps.set.members()[late]; of != 0 {
		t.Errorf("a cgroup of a run that has ended is still that of run %d", of)
	}

	large := shareWith(t, scopes[1], Options{RingSize: 2 * maxLeftRing})
	larger := large.member.run
	large.Close()
	is("a large ring", larger, leftPrograms, false)
	is("before a large ring", next.member.run, leftNothing, false)
}

// Where no other place is free, a run takes one that another has just left. It is told nothing of that one.
func TestSharedLeftIsTaken(t *testing.T) {
	shareHere(t)
	keeps := shareWith(t, newScope(t, ownCgroup(t)), Options{})
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	for _, size := range []int{0, 2 * maxLeftRing} {
		first := shareWith(t, a, Options{RingSize: size})
		place := first.member.run
		runIn(t, a, openMany, "/nothing/first", "10")
		first.Close()
		const late = 1 << 62
		testkit.Must(t, keeps.set.add(late, place, ebpf.UpdateAny))
		freeLast(t, keeps, place)

		second := shareWith(t, b, Options{})
		if second.member.run != place || !second.member.waited {
			t.Fatalf("the second run has place %d, waited: %v, expected %d", second.member.run, second.member.waited, place)
		}
		if of := keeps.set.members()[late]; of != 0 {
			t.Errorf("a cgroup of a run that has ended is that of run %d", of)
		}
		runIn(t, b, openMany, "/nothing/second", "10")
		if got := all(t, second); got.opens["/nothing/second"] != 10 || got.opens["/nothing/first"] != 0 {
			t.Errorf("the second run: %d events, %v", got.read, got.opens)
		}
		second.Close()
	}
}
