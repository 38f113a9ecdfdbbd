package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestEverySubset loses every subset of the records of some calls. What is left must never
// tell more than was made: no operation twice, and no other one. (That something was lost
// is told by the capture's counters.)
func TestEverySubset(t *testing.T) {
	type rec struct {
		op, source, addr string
		ret              int64 // 1 is none
	}
	const none = 1
	for _, c := range []struct {
		name string
		recs []rec
		made map[string]int // by address
		ring string         // the address that is reached through io_uring
	}{
		{"connect", []rec{{"connect", "cgroup", "a", none}, {"connect", "syscall", "a", 0}}, map[string]int{"a": 1}, ""},
		{"pending connect, then again", []rec{{"connect", "cgroup", "a", none}, {"connect", "syscall", "a", -115}, {"connect", "syscall", "a", 0}},
			map[string]int{"a": 2}, ""},
		{"the same twice", []rec{{"connect", "cgroup", "a", none}, {"connect", "syscall", "a", -111}, {"connect", "cgroup", "a", none}, {"connect", "syscall", "a", 0}},
			map[string]int{"a": 2}, ""},
		{"two peers", []rec{{"connect", "cgroup", "a", none}, {"connect", "syscall", "a", 0}, {"sendmsg", "cgroup", "b", none}, {"sendto", "syscall", "b", 0}},
			map[string]int{"a": 1, "b": 1}, ""},
		{"messages", []rec{{"sendmsg", "cgroup", "a", none}, {"sendmsg", "cgroup", "b", none}, {"sendmmsg", "syscall", "a", 2}, {"sendmmsg", "syscall", "b", 2}},
			map[string]int{"a": 1, "b": 1}, ""},
		{"started over", []rec{{"connect", "cgroup", "a", none}, {"connect", "syscall", "a", none}, {"connect", "syscall", "a", none}, {"connect", "syscall", "a", 0}},
			map[string]int{"a": 1}, ""},
		{"through io_uring", []rec{{"connect", "cgroup", "a", none}, {"connect", "io_uring", "a", 0}}, map[string]int{"a": 1}, "a"},
		{"a call while io_uring connects", []rec{{"connect", "cgroup", "a", none}, {"connect", "cgroup", "b", none}, {"connect", "syscall", "b", 0}, {"connect", "io_uring", "a", 0}},
			map[string]int{"a": 1, "b": 1}, "a"},
	} {
		for lost := range 1 << len(c.recs) {
			var r raw
			for i, e := range c.recs {
				if lost>>i&1 == 0 {
					edits := []edit{addr(e.source, map[string]string{"a": "1.1.1.1:1", "b": "2.2.2.2:2"}[e.addr])}
					if e.ret != none {
						edits = append(edits, ret(e.ret))
					}
					if e.source == "cgroup" && e.addr == c.ring {
						edits = append(edits, marks(schemas.MarkIOUring))
					}
					r.add(5, 5, e.op, edits...)
				}
			}
			r.add(5, 5, "openat", opened("/end"))
			got := map[string]int{}
			all := mustNormalize(t, r.bytes(t)).lines
			for _, l := range all {
				got[string(l.Value)]++
			}
			exact := lost == 0
			if n := got["1.1.1.1:1"]; n > c.made["a"] || exact && n != c.made["a"] {
				t.Errorf("%s without %b: %d lines for the first peer, made %d", c.name, lost, n, c.made["a"])
			}
			if n := got["2.2.2.2:2"]; n > c.made["b"] || exact && n != c.made["b"] {
				t.Errorf("%s without %b: %d lines for the second peer, made %d", c.name, lost, n, c.made["b"])
			}
			if got["/end"] != 1 || len(all) > c.made["a"]+c.made["b"]+1 {
				t.Errorf("%s without %b: lines %v", c.name, lost, got)
			}
		}
	}
}
