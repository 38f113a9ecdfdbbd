package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// windowed is the output of --windows, taken apart.
type windowed struct {
	plain   []string // its records without what --windows adds
	procs   []schemas.Process
	parents []int // by place in procs, -1 for roots
	of      []int // kernel lines: place of their process in procs
	times   []uint64
	own     schemas.StageHealth
}

var timeAtEnd = regexp.MustCompile(`,"ktime_ns":([0-9]+)}$`)

func parseWindowed(t testing.TB, out string) *windowed {
	t.Helper()
	r, err := stream.NewReader(strings.NewReader(out), "out", schemas.StreamNormalized)
	if err != nil {
		t.Fatal(err)
	}
	w := &windowed{}
	var path []int
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := string(rec.Bytes)
		switch rec.Schema {
		case schemas.SchemaProcess:
			var p schemas.Process
			if err := schemas.Unmarshal(rec.Bytes, &p); err != nil {
				t.Fatal(err)
			}
			if again, err := schemas.Marshal(p); err != nil || !bytes.Equal(again, rec.Bytes) {
				t.Fatalf("not canonical: %s", line)
			}
			if int(p.Depth) > len(path) {
				t.Fatalf("depth %d below %d: %s", p.Depth, len(path), line)
			}
			parent := -1
			if p.Depth > 0 {
				parent = path[p.Depth-1]
			}
			path = append(path[:p.Depth], len(w.procs))
			w.procs, w.parents = append(w.procs, p), append(w.parents, parent)
			continue
		case schemas.SchemaKernelEvent:
			m := timeAtEnd.FindStringSubmatchIndex(line)
			if m == nil || len(path) == 0 {
				t.Fatalf("no time, or no process: %s", line)
			}
			at, _ := strconv.ParseUint(line[m[2]:m[3]], 10, 64)
			line = line[:m[0]] + "}"
			w.times, w.of = append(w.times, at), append(w.of, path[len(path)-1])
			var k schemas.KernelEvent
			if err := schemas.NewKernelParser(testRun).Parse([]byte(line), &k); err != nil {
				t.Fatal(err)
			}
			if pid := w.procs[path[len(path)-1]].PID; k.PID != pid {
				t.Fatalf("line of pid %d under the record of %d", k.PID, pid)
			}
		case schemas.SchemaStageHealth:
			if err := schemas.Unmarshal(rec.Bytes, &w.own); err != nil {
				t.Fatal(err)
			}
			line = strings.Replace(line, fmt.Sprintf(`"process_records":%d,`, len(w.procs)), "", 1)
		}
		w.plain = append(w.plain, line)
	}
	if n, ok := w.own.Counters["process_records"]; !ok || n != uint64(len(w.procs)) {
		t.Fatalf("process_records %d, %d records", n, len(w.procs))
	}
	return w
}

// withWindows normalizes with and without --windows, checks that the difference is
// what the specification says, and returns the former.
func withWindows(t testing.TB, in []byte, args ...string) *windowed {
	t.Helper()
	without, msg, code := call(t, in, args...)
	if code != 0 {
		t.Fatalf("exit %d %s", code, msg)
	}
	out, msg, code := call(t, in, append([]string{"--windows"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d %s", code, msg)
	}
	w := parseWindowed(t, out)
	want := strings.Split(strings.TrimSpace(without), "\n")
	if want = want[1 : len(want)-1]; !slices.Equal(w.plain, want) {
		t.Fatalf("without the added\n%s\nwithout --windows\n%s", strings.Join(w.plain, "\n"), strings.Join(want, "\n"))
	}
	return w
}

func (w *windowed) short() string {
	var b strings.Builder
	for i, p := range w.procs {
		fmt.Fprintf(&b, "%*d=%d %d-%d:", 2*p.Depth, p.PID, p.KernelPID, p.StartNS, p.EndNS)
		for line, of := range w.of {
			if of == i {
				fmt.Fprintf(&b, " %d", w.times[line])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestWindows(t *testing.T) {
	o := func(r *raw, pid, tid uint32) {
		r.add(pid, tid, "openat", opened(fmt.Sprintf("/w/%d", len(r.events))))
	}
	for _, c := range []struct {
		name string
		make func(r *raw)
		want string // pid=kernel pid start-end: times of lines
	}{
		{"processes without lines are there only for their descendants", func(r *raw) {
			o(r, 10, 10)                           // 1000
			r.add(10, 10, "fork", child(20, 20))   // 1001
			r.add(20, 20, "fork", child(30, 30))   // 1002
			r.add(10, 10, "fork", child(40, 40))   // 1003, never does anything
			r.add(40, 40, "fork", child(50, 50))   // 1004, nor does this
			o(r, 30, 30)                           // 1005
			o(r, 30, 30)                           // 1006
			r.add(20, 20, "exit")                  // 1007
			r.add(30, 30, "exit")                  // 1008
			r.add(10, 10, "openat", opened("/w/")) // 1009
			r.add(10, 10, "exit")                  // 1010
		}, "1=10 0-1010: 1000 1009\n 2=20 1001-1007:\n   3=30 1002-1008: 1005 1006\n"},
		{"the last thread ends a process", func(r *raw) {
			o(r, 10, 10)
			r.add(10, 10, "fork", child(20, 20)) // 1001
			r.add(20, 20, "fork", child(20, 21)) // 1002
			r.add(20, 20, "exit")                // 1003
			o(r, 20, 21)                         // 1004
			r.add(20, 21, "exit")                // 1005
		}, "1=10 0-0: 1000\n 2=20 1001-1005: 1004\n"},
		{"a thread whose end was not seen leaves the end open", func(r *raw) {
			r.add(10, 10, "fork", child(20, 20)) // 1000
			r.add(20, 20, "fork", child(20, 21)) // 1001
			r.add(20, 20, "exit")                // 1002
			o(r, 20, 21)                         // 1003
			r.add(10, 10, "fork", child(21, 21)) // 1004, the number is used again
			o(r, 21, 21)                         // 1005
			r.add(21, 21, "exit")                // 1006
			o(r, 10, 10)                         // 1007
		}, "1=10 0-0: 1007\n 2=20 1000-0: 1003\n 3=21 1004-1006: 1005\n"},
		{"a process number used again names two", func(r *raw) {
			o(r, 10, 10)                         // 1000
			r.add(10, 10, "fork", child(20, 20)) // 1001
			o(r, 20, 20)                         // 1002
			r.add(20, 20, "exit")                // 1003
			r.add(10, 10, "fork", child(20, 20)) // 1004
			o(r, 20, 20)                         // 1005
			r.add(20, 20, "exit")                // 1006
		}, "1=10 0-0: 1000\n 2=20 1001-1003: 1002\n 3=20 1004-1006: 1005\n"},
		{"a thread's exec is not an end", func(r *raw) {
			r.add(10, 10, "fork", child(20, 20)) // 1000
			r.add(20, 20, "fork", child(20, 21)) // 1001
			r.add(20, 20, "exit")                // 1002
			r.add(20, 20, "exec", path("/new"), oldTID(21))
			r.add(20, 20, "exit") // 1004
		}, "1=10 0-0:\n 2=20 1000-1004: 1003\n"},
		{"a line that another call's hook made has the call's time", func(r *raw) {
			r.add(10, 10, "connect", addr("cgroup", "1.1.1.1:1"))
			o(r, 20, 20) // 1001, of somebody else
			r.add(10, 10, "connect", addr("syscall", "1.1.1.1:1"), ret(0))
			r.add(10, 10, "connect", addr("cgroup", "2.2.2.2:1")) // 1003, and no call
			o(r, 10, 10)                                          // 1004
		}, "1=10 0-0: 1002 1004 1003\n2=20 0-0: 1001\n"},
		{"both lines of one operation", func(r *raw) {
			r.add(10, 10, "rename", user("/w", "a"), user2("/w", "b"), ret(0))
		}, "1=10 0-0: 1000 1000\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &raw{}
			c.make(r)
			in := r.bytes(t)
			if got := withWindows(t, in, "--canonical-pids").short(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			for _, p := range withWindows(t, in).procs {
				if p.PID != p.KernelPID {
					t.Errorf("pid %d of kernel pid %d without --canonical-pids", p.PID, p.KernelPID)
				}
			}
		})
	}
}

// TestWindowsNumbers: the number that a process has for itself is in its record, from its fork, or from an exec where that was not seen. It
// is not there if the kernel told two.
func TestWindowsNumbers(t *testing.T) {
	var r raw
	r.add(10, 10, "exec", path("/box"), inSpace(7, 2))
	r.add(10, 10, "fork", child(20, 20), inSpace(7, 3))
	r.add(20, 20, "openat", opened("/w/a"))
	r.add(20, 20, "fork", child(20, 21)) // a thread
	r.add(20, 20, "exec", path("/b"), oldTID(21), inSpace(7, 3))
	r.add(20, 20, "fork", child(30, 30), inSpace(8, 1))
	r.add(30, 30, "openat", opened("/w/b"))
	r.add(30, 30, "exec", path("/c"), inSpace(8, 2)) // another process, whose fork was not seen
	r.add(30, 30, "exec", path("/c"), inSpace(8, 1))
	r.add(40, 40, "exec", path("/d"))
	r.add(50, 50, "exec", path("/e"), inSpace(0, 4))
	got := ""
	for _, p := range withWindows(t, r.bytes(t)).procs {
		got += fmt.Sprintf("%d=%d:%d ", p.KernelPID, p.PIDNS, p.NSPID)
	}
	if want := "10=7:2 20=7:3 30=0:0 40=0:0 50=0:0 "; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

// TestWindowsDrop wants records only for what is left, and a program that does not
// know of times.
func TestWindowsDrop(t *testing.T) {
	var r raw
	r.add(10, 10, "openat", opened("/w/a"))
	r.add(10, 10, "fork", child(20, 20))
	r.add(20, 20, "openat", opened("/w/drop"))
	r.add(20, 20, "fork", child(30, 30))
	r.add(30, 30, "openat", opened("/w/drop"))
	r.add(30, 30, "openat", opened("/w/b"))
	r.add(10, 10, "fork", child(40, 40))
	r.add(40, 40, "openat", opened("/w/drop"))
	w := withWindows(t, r.bytes(t), "--canonical-pids", "--drop", `if has("ktime_ns") then error("a time") else .value == "/w/drop" end`)
	want := "1=10 0-0: 1000\n 2=20 1001-0:\n   3=30 1003-0: 1005\n"
	if got := w.short(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWindowsOfRandomTrees compares the records with the tree that was made, and
// wants times and nothing else to depend on how tasks were interleaved.
func TestWindowsOfRandomTrees(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		const root = 50
		parent := map[uint32]uint32{root: 0} // of processes
		lines := map[uint32]int{}
		tasks := [][]step{{}}
		pids := []uint32{root}
		open := func(pid, tid uint32) step {
			lines[pid]++
			return step{tid: tid, f: func(r *raw) { r.add(pid, tid, "openat", opened(fmt.Sprintf("/w/%d/%d", tid, rnd.IntN(9)))) }}
		}
		tasks[0] = append(tasks[0], step{tid: root, f: func(r *raw) { r.add(root, root, "move") }})
		for next := uint32(root + 1); next < root+1+uint32(rnd.IntN(80)); next++ {
			by := rnd.IntN(len(tasks))
			pid, tid, cpid, ctid := pids[by], tasks[by][0].tid, next, next
			if rnd.IntN(3) == 0 {
				cpid = pid
			} else {
				parent[cpid] = pid
			}
			tasks[by] = append(tasks[by], step{tid: tid, makes: ctid, f: func(r *raw) { r.add(pid, tid, "fork", child(cpid, ctid)) }})
			mine := []step{{tid: ctid, f: func(r *raw) { r.add(cpid, ctid, "move") }}}
			for range rnd.IntN(3) {
				mine = append(mine, open(cpid, ctid))
			}
			tasks, pids = append(tasks, mine), append(pids, cpid)
		}
		ends := rnd.IntN(2) == 0
		for i := range tasks {
			if pid, tid := pids[i], tasks[i][0].tid; ends {
				tasks[i] = append(tasks[i], step{tid: tid, f: func(r *raw) { r.add(pid, tid, "exit") }})
			}
		}
		needed := map[uint32]bool{}
		for pid := range lines {
			for ; pid != 0; pid = parent[pid] {
				needed[pid] = true
			}
		}
		shape := ""
		for range 4 {
			r := interleave(tasks, rnd)
			w := withWindows(t, r.bytes(t))
			start, end, count := map[uint32]uint64{}, map[uint32]uint64{}, map[uint32]int{}
			for i, e := range r.events {
				switch {
				case e.Op == "fork" && e.ChildPID == e.ChildTID && parent[e.ChildPID] == e.PID:
					start[e.ChildPID] = uint64(1000 + i)
				case e.Op == "exit":
					end[e.PID] = uint64(1000 + i)
				}
			}
			for _, of := range w.of {
				count[w.procs[of].KernelPID]++
			}
			tree := ""
			for i, p := range w.procs {
				above := uint32(0)
				if w.parents[i] >= 0 {
					above = w.procs[w.parents[i]].KernelPID
				}
				tree += fmt.Sprintln(p.KernelPID, p.Depth, count[p.KernelPID])
				switch pid := p.KernelPID; {
				case !needed[pid]:
					t.Errorf("seed %d: process %d has no line below it", seed, pid)
				case above != parent[pid]:
					t.Errorf("seed %d: parent of %d is %d, expected %d", seed, pid, above, parent[pid])
				case p.StartNS != start[pid] || p.EndNS != end[pid]:
					t.Errorf("seed %d: %d lived %d-%d, expected %d-%d", seed, pid, p.StartNS, p.EndNS, start[pid], end[pid])
				case count[pid] != lines[pid]:
					t.Errorf("seed %d: %d has %d lines, expected %d", seed, pid, count[pid], lines[pid])
				}
			}
			if len(w.procs) != len(needed) {
				t.Errorf("seed %d: %d records, expected %d", seed, len(w.procs), len(needed))
			}
			if shape == "" {
				shape = tree
			}
			if tree != shape {
				t.Errorf("seed %d: got\n%s\nonce it was\n%s", seed, tree, shape)
			}
			if t.Failed() {
				return
			}
		}
	}
}

func TestWindowsSpill(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 7))
	var r raw
	live := []uint32{1}
	for i := range 2000 {
		pid := live[rnd.IntN(len(live))]
		if rnd.IntN(10) == 0 {
			c := uint32(len(live) + 1)
			r.add(pid, pid, "fork", child(c, c))
			live = append(live, c)
			continue
		}
		r.add(pid, pid, "openat", opened(fmt.Sprintf("/w/%d/%s", i, strings.Repeat("x", rnd.IntN(300)))))
	}
	in := r.bytes(t)
	want, _, _ := call(t, in, "--windows")
	for _, limit := range []int{1, 5000, 100_000} {
		var out bytes.Buffer
		env := &tool.Env{Stdout: &out, Stderr: io.Discard, Name: "runner-normalize"}
		if err := normalize(context.Background(), env, bytes.NewReader(in), "in", Options{Windows: true}, limit); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("arena of %d bytes: another stream", limit)
		}
	}
}

// TestWindowsDeep has one line at the end of a long chain: its records come before.
func TestWindowsDeep(t *testing.T) {
	const n = 20_000
	var r raw
	for i := range uint32(n) {
		r.add(i+1, i+1, "fork", child(i+2, i+2))
	}
	r.add(n+1, n+1, "openat", opened("/w"))
	r.add(1, 1, "fork", child(n+2, n+2))
	r.add(n+2, n+2, "openat", opened("/w"))
	w := withWindows(t, r.bytes(t))
	if len(w.procs) != n+2 || w.procs[n].Depth != n || w.procs[n+1].Depth != 1 || len(w.times) != 2 {
		t.Errorf("%d records, %d lines", len(w.procs), len(w.times))
	}
}

func TestClock(t *testing.T) {
	var c clock
	times := []uint64{1 << 60, 0, 5, 1<<60 + 7, 1<<64 - 1, 1 << 63}
	var packed []byte
	for _, ns := range times {
		packed = c.pack(packed, ns)
	}
	for _, want := range times {
		var got uint64
		if got, packed = c.unpack(packed); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}
