package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// family is a small world with every kind of relative:
//
//	100 ── thread 101
//	 ├─ child 200 ── thread 201 ── child 300 (by the thread)
//	 └─ child 400 (by thread 101)
func family() [][]step {
	o := func(pid, tid uint32, name string) step {
		return step{tid: tid, f: func(r *raw) { r.add(pid, tid, "openat", opened("/w/"+name)) }}
	}
	fork := func(pid, tid, cpid, ctid uint32) step {
		return step{tid: tid, makes: ctid, f: func(r *raw) { r.add(pid, tid, "fork", child(cpid, ctid)) }}
	}
	exit := func(pid, tid uint32) step {
		return step{tid: tid, f: func(r *raw) { r.add(pid, tid, "exit") }}
	}
	hook := step{tid: 201, f: func(r *raw) { r.add(200, 201, "connect", addr("cgroup", "1.1.1.1:1")) }}
	callIt := step{tid: 201, f: func(r *raw) { r.add(200, 201, "connect", addr("syscall", "1.1.1.1:1"), ret(0)) }}
	return [][]step{
		{o(100, 100, "p1"), fork(100, 100, 100, 101), o(100, 100, "p2"), fork(100, 100, 200, 200), o(100, 100, "p3"), exit(100, 100)},
		{o(100, 101, "t1"), fork(100, 101, 400, 400), o(100, 101, "t2"), exit(100, 101)},
		{o(200, 200, "c1"), fork(200, 200, 200, 201), o(200, 200, "c2"), exit(200, 200)},
		{hook, callIt, o(200, 201, "ct1"), hook, fork(200, 201, 300, 300), o(200, 201, "ct2"), exit(200, 201)},
		{o(300, 300, "g1"), exit(300, 300)},
		{o(400, 400, "d1"), o(400, 400, "d2"), exit(400, 400)},
	}
}

// step is one event of one task. It may create another, which cannot act before.
type step struct {
	tid, makes uint32
	f          func(*raw)
}

// interleave mixes tasks at random, keeping each one's order and creation first.
func interleave(tasks [][]step, rnd *rand.Rand) *raw {
	r := &raw{}
	alive := map[uint32]bool{tasks[0][0].tid: true}
	at := make([]int, len(tasks))
	for {
		var can []int
		for i, t := range tasks {
			if at[i] < len(t) && alive[t[0].tid] {
				can = append(can, i)
			}
		}
		if len(can) == 0 {
			return r
		}
		i := can[rnd.IntN(len(can))]
		s := tasks[i][at[i]]
		at[i]++
		s.f(r)
		if s.makes != 0 {
			alive[s.makes] = true
		}
	}
}

func TestInterleavingDoesNotMatter(t *testing.T) {
	want := []string{
		"1 1 /w/p1 3 success", "1 1 /w/p2 3 success", "1 1 /w/p3 3 success",
		"1 1 /w/t1 3 success", "1 1 /w/t2 3 success",
		"2 1 /w/c1 3 success", "2 1 /w/c2 3 success",
		"2 2 1.1.1.1:1 0 success", "2 1 /w/ct1 3 success", "2 1 /w/ct2 3 success", "2 2 1.1.1.1:1",
		"3 1 /w/g1 3 success",
		"4 1 /w/d1 3 success", "4 1 /w/d2 3 success",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	first := ""
	for range 100 {
		r := interleave(family(), rnd)
		got := mustNormalize(t, r.bytes(t), "--canonical-pids")
		wantLines(t, got, want...)
		all := fmt.Sprint(got.kernel, got.own())
		if first == "" {
			first = all
		}
		if all != first {
			t.Fatalf("got\n%s\nonce it was\n%s", all, first)
		}
		if n := got.own().Notes; len(n) != 1 || n[0] != schemas.NotePIDs.Format() {
			t.Errorf("notes %q", n)
		}
		if t.Failed() {
			return
		}
	}
}

// TestRandomTrees does the same with trees made at random.
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		tasks := [][]step{{{tid: 50, f: func(r *raw) { r.add(50, 50, "exec", path("/bin/x")) }}}}
		pids := []uint32{50}
		for next := uint32(51); next < 51+uint32(rnd.IntN(60)); next++ {
			by := rnd.IntN(len(tasks))
			pid, tid, cpid, ctid := pids[by], tasks[by][0].tid, next, next
			if rnd.IntN(3) == 0 {
				cpid = pid
			}
			tasks[by] = append(tasks[by], step{tid: tid, makes: ctid, f: func(r *raw) { r.add(pid, tid, "fork", child(cpid, ctid)) }})
			var mine []step
			for i := range 1 + rnd.IntN(4) {
				mine = append(mine, step{tid: ctid, f: func(r *raw) { r.add(cpid, ctid, "openat", opened(fmt.Sprintf("/w/%d/%d", ctid, i))) }})
			}
			tasks, pids = append(tasks, mine), append(pids, cpid)
		}
		first := ""
		for range 5 {
			got := mustNormalize(t, interleave(tasks, rnd).bytes(t), "--canonical-pids")
			if all := strings.Join(got.kernel, "\n"); first == "" {
				first = all
			} else if all != first {
				t.Fatalf("seed %d: got\n%s\nonce it was\n%s", seed, all, first)
			}
		}
	}
}

func TestTree(t *testing.T) {
	o := func(r *raw, pid, tid uint32, name string) { r.add(pid, tid, "openat", opened(name)) }
	for _, c := range []struct {
		name string
		make func(r *raw)
		want string // pid:path …
	}{
		{"a thread's exec takes the leader's place", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(10, 11))
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/x")
			o(r, 10, 11, "/b")
			r.add(10, 10, "exit")
			r.add(10, 10, "exec", path("/new"), oldTID(11))
			o(r, 10, 10, "/c")
			o(r, 10, 11, "/late") // the number is free again: this is somebody else
		}, "1:/a 1:/b 1:/new 1:/c 1:/late 2:/x"},
		{"a thread's exec with the leader's exit lost", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(10, 11))
			r.add(10, 10, "exec", path("/new"), oldTID(11))
			o(r, 10, 10, "/c")
		}, "1:/a 1:/new 1:/c"},
		{"a number used again", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/first")
			r.add(20, 20, "exit")
			r.add(10, 10, "fork", child(30, 30))
			o(r, 30, 30, "/second")
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/third")
		}, "1:/a 2:/first 3:/second 4:/third"},
		{"a number used again, the exit lost", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/first")
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/second")
		}, "1:/a 2:/first 3:/second"},
		{"roots by first appearance", func(r *raw) {
			o(r, 30, 30, "/a")
			o(r, 10, 10, "/b")
			o(r, 30, 30, "/c")
		}, "1:/a 1:/c 2:/b"},
		{"an unseen thread of a known process", func(r *raw) {
			o(r, 30, 30, "/a")
			o(r, 40, 40, "/z")
			o(r, 30, 31, "/b")
			r.add(30, 31, "fork", child(50, 50))
			o(r, 50, 50, "/c")
		}, "1:/a 1:/b 2:/c 3:/z"},
		{"threads outlive the leader", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(10, 11))
			r.add(10, 10, "exit")
			r.add(10, 11, "fork", child(10, 12))
			o(r, 10, 12, "/c")
			o(r, 10, 11, "/b")
			r.add(10, 12, "fork", child(20, 20))
			o(r, 20, 20, "/d")
		}, "1:/a 1:/b 1:/c 2:/d"},
		{"fork by an unknown task", func(r *raw) {
			r.add(10, 10, "fork", child(20, 20))
			o(r, 20, 20, "/b")
			o(r, 10, 10, "/a")
		}, "1:/a 2:/b"},
		{"a process and its thread number elsewhere", func(r *raw) {
			o(r, 10, 11, "/a")
			r.add(10, 11, "exit")
			o(r, 11, 11, "/b")
			o(r, 10, 10, "/c") // everyone of the old 10 is gone
		}, "1:/a 2:/b 3:/c"},
		{"a daemon outlives everyone", func(r *raw) {
			o(r, 10, 10, "/a")
			r.add(10, 10, "fork", child(20, 20))
			r.add(20, 20, "fork", child(30, 30))
			r.add(20, 20, "exit")
			r.add(10, 10, "fork", child(40, 40))
			o(r, 40, 40, "/z")
			r.add(10, 10, "exit")
			o(r, 30, 30, "/b")
		}, "1:/a 3:/b 4:/z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &raw{}
			c.make(r)
			var got []string
			for _, k := range mustNormalize(t, r.bytes(t), "--canonical-pids").lines {
				got = append(got, fmt.Sprintf("%d:%s", k.PID, k.Value))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

// TestDeepAndWide would overflow a stack that grows with the tree.
func TestDeepAndWide(t *testing.T) {
	for _, deep := range []bool{true, false} {
		var tr tree
		top, err := tr.at(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		const n = 300_000
		parent := top
		for i := range uint32(n) {
			if err := tr.fork(parent, i+2, i+2, 0); err != nil {
				t.Fatal(err)
			}
			if deep {
				parent = tr.id(i + 2).task
			}
		}
		o := tr.rank()
		if len(o.processes) != n+1 || !slices.IsSorted(o.place) {
			t.Errorf("deep %v: %d processes", deep, len(o.processes))
		}
		for i, p := range o.processes {
			if p.pid != uint32(i+1) || p.end != uint32(i+1) || !deep && i > 0 && p.parent != 1 || deep && p.parent != uint32(i) {
				t.Fatalf("deep %v: process %d is %+v", deep, i+1, p)
			}
		}
	}
}

func TestNumbersAreBounded(t *testing.T) {
	for _, op := range []string{"exec", "fork", "openat"} {
		var r raw
		if op == "fork" {
			r.add(1, 1, op, child(maxID, maxID))
		} else {
			r.add(1, maxID, op, oldTID(2))
		}
		if _, msg, code := call(t, r.bytes(t)); code != 3 || !strings.Contains(msg, "expected less than 4194304") {
			t.Errorf("%s: exit %d %s", op, code, msg)
		}
	}
}

func TestSpillMakesNoDifference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var r raw
	r.add(1, 1, "exec", path("/bin/x"))
	live := []uint32{1}
	for i := range 3000 {
		pid := live[rnd.IntN(len(live))]
		if rnd.IntN(20) == 0 {
			c := uint32(len(live) + 1)
			r.add(pid, pid, "fork", child(c, c))
			live = append(live, c)
			continue
		}
		r.add(pid, pid, "openat", opened(fmt.Sprintf("/w/%d/%s", i, strings.Repeat("x", rnd.IntN(300)))))
	}
	r.add(1, 1, "openat", opened("/w/"+strings.Repeat("long", 5000)))
	in := r.bytes(t)
	want := mustNormalize(t, in)
	for _, limit := range []int{1, 100, 5000, 100_000, 300_000} {
		got := normalizeWithArena(t, in, limit)
		if !slices.Equal(got.kernel, want.kernel) {
			t.Fatalf("arena of %d bytes: other lines", limit)
		}
	}
}

func TestSortSpans(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, max := range []uint32{1, 7, 3000, 1 << 22, 1<<32 - 1} {
		a := make([]span, 5000)
		for i := range a {
			a[i] = span{key: rnd.Uint32N(max), off: uint32(i)}
		}
		want := slices.Clone(a)
		slices.SortStableFunc(want, func(x, y span) int { return int(int64(x.key) - int64(y.key)) })
		if got, _ := sortSpans(a, make([]span, len(a))); !slices.Equal(got, want) {
			t.Errorf("keys below %d: not sorted", max)
		}
	}
}
