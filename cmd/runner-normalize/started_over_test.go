package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestStartedOver: a call that a signal interrupted and that started over is one operation.
func TestStartedOver(t *testing.T) {
	type step = func(*raw)
	of := func(op string, edits ...edit) step { return func(r *raw) { r.add(5, 5, op, edits...) } }
	call := func(op, a string, edits ...edit) step { return of(op, append(edits, addr("syscall", a))...) }
	hook := func(op, a string) step { return of(op, addr("cgroup", a)) }
	over := marks(schemas.MarkStartedOver)
	fifo := func(edits ...edit) step { return of("openat", append(edits, user("/w", "f"), flags(0))...) }
	for _, c := range []struct {
		name  string
		steps []step
		want  []string
		over  uint64
	}{
		{"connect", []step{hook("connect", "1.1.1.1:1"), call("connect", "1.1.1.1:1"), call("connect", "1.1.1.1:1", ret(0))},
			[]string{"5 2 1.1.1.1:1 0 success"}, 1},
		{"a send, whose hook runs again", []step{hook("sendmsg", "1.1.1.1:1"), call("sendto", "1.1.1.1:1"), hook("sendmsg", "1.1.1.1:1"), call("sendto", "1.1.1.1:1", ret(3))},
			[]string{"5 6 1.1.1.1:1 3 success"}, 1},
		{"often", []step{fifo(), fifo(over), fifo(over), of("openat", path("/w/f"), over, flags(0), ret(3))}, []string{"5 1 /w/f 3 success"}, 3},
		{"that led to another name", []step{fifo(), of("openat", path("/real/f"), over, flags(0), ret(3))}, []string{"5 1 /real/f 3 success"}, 1},
		{"that a handler left by a jump, and another name", []step{fifo(), of("openat", path("/real/f"), flags(0), ret(3))}, []string{"5 1 /real/f 3 success", "5 1 /w/f"}, 0},
		{"that a handler left by a jump, and the same name", []step{fifo(), fifo(ret(-2))}, []string{"5 1 /w/f -2 error", "5 1 /w/f"}, 0},
		{"its end failed", []step{fifo(), fifo(over, ret(-2))}, []string{"5 1 /w/f -2 error"}, 1},
		{"the program was told", []step{fifo(ret(-4)), fifo(ret(-4))}, []string{"5 1 /w/f -4 error", "5 1 /w/f -4 error"}, 0},
		{"a handler in between", []step{fifo(), of("openat", opened("/h")), hook("connect", "1.1.1.1:1"), call("connect", "1.1.1.1:1", ret(0)), fifo(over, ret(3))},
			[]string{"5 1 /h 3 success", "5 2 1.1.1.1:1 0 success", "5 1 /w/f 3 success"}, 1},
		{"inside of a handler", []step{fifo(), call("connect", "1.1.1.1:1"), call("connect", "1.1.1.1:1", ret(0)), fifo(over, ret(3))},
			[]string{"5 2 1.1.1.1:1 0 success", "5 1 /w/f 3 success"}, 2},
		{"killed", []step{fifo(), of("exit")}, []string{"5 1 /w/f"}, 0},
		{"at the end", []step{fifo(), of("mkdir", user("/w", "d"), ret(0))}, []string{"5 219 /w/d 0 success", "5 1 /w/f"}, 0},
		{"another file", []step{fifo(), of("openat", user("/w", "g"), flags(0), ret(-2))}, []string{"5 1 /w/g -2 error", "5 1 /w/f"}, 0},
		{"another flag", []step{fifo(), of("openat", path("/w/f"), over, flags(1), ret(3))}, []string{"5 1 /w/f 3 success", "5 1 /w/f"}, 0},
		{"two names", []step{of("rename", user("/w", "a"), user2("/w", "b")), of("rename", user("/w", "a"), user2("/w", "b"), ret(0))},
			[]string{"5 213 /w/a 0 success", "5 214 /w/b 0 success"}, 1},
		{"two names, killed", []step{of("rename", user("/w", "a"), user2("/w", "b"))}, []string{"5 213 /w/a", "5 214 /w/b"}, 0},
		{"other second name", []step{of("rename", user("/w", "a"), user2("/w", "b")), of("rename", user("/w", "a"), user2("/w", "c"), ret(0))},
			[]string{"5 213 /w/a 0 success", "5 214 /w/c 0 success", "5 213 /w/a", "5 214 /w/b"}, 0},
		{"exec", []step{of("execve", user("/w", "x")), of("exec", over, path("/w/real"))}, []string{"5 4 /w/real"}, 1},
		{"exec that a handler left by a jump", []step{of("execve", user("/w", "x")), of("exec", path("/w/real"))}, []string{"5 4 /w/real", "5 201 /w/x"}, 0},
		{"exec that failed", []step{of("execve", user("/w", "x")), of("execve", user("/w", "x"), over, ret(-2))}, []string{"5 201 /w/x -2 error"}, 1},
		{"a connect that a handler left by a jump, and a disconnect", []step{of("connect", addr("syscall", "1.1.1.1:1"), socketOf(7)), of("connect", addr("syscall", ""), socketOf(7), marks(schemas.MarkOfSocket), ret(0))},
			[]string{"5 2 null 0 success", "5 2 1.1.1.1:1"}, 0},
		{"the same, and another peer", []step{of("connect", addr("syscall", "1.1.1.1:1"), socketOf(7)), of("connect", addr("syscall", "2.2.2.2:2"), socketOf(7), marks(schemas.MarkOfSocket), ret(0))},
			[]string{"5 2 2.2.2.2:2 0 success", "5 2 1.1.1.1:1"}, 0},
		{"the same, and another socket", []step{of("connect", addr("syscall", "1.1.1.1:1"), socketOf(7)), of("connect", addr("syscall", "1.1.1.1:1"), socketOf(8), ret(-111))},
			[]string{"5 2 1.1.1.1:1 -111 error", "5 2 1.1.1.1:1"}, 0},
		{"a socket with a number, and one without", []step{of("connect", addr("syscall", "1.1.1.1:1"), socketOf(7)), of("connect", addr("syscall", "1.1.1.1:1"), marks(schemas.MarkOfSocket), ret(0))},
			[]string{"5 2 1.1.1.1:1 0 success", "5 2 1.1.1.1:1"}, 0},
		{"sockets without numbers, another peer", []step{call("connect", "1.1.1.1:1"), call("connect", "2.2.2.2:2", marks(schemas.MarkOfSocket), ret(0))},
			[]string{"5 2 2.2.2.2:2 0 success", "5 2 1.1.1.1:1"}, 0},
		{"sockets without numbers, one refused", []step{call("connect", "1.1.1.1:1"), call("connect", "1.1.1.1:1", ret(-111))},
			[]string{"5 2 1.1.1.1:1 -111 error", "5 2 1.1.1.1:1"}, 0},
		{"a connect that started over, in the socket's words", []step{of("connect", addr("syscall", "0.0.0.0:1"), socketOf(7)), of("connect", addr("syscall", "127.0.0.1:1"), socketOf(7), marks(schemas.MarkOfSocket), ret(0))},
			[]string{"5 2 127.0.0.1:1 0 success"}, 1},
		{"unknown address", []step{call("connect", ""), call("connect", "", ret(-14))}, []string{"5 2 null -14 error"}, 1},
		{"through io_uring", []step{fifo(marks(schemas.MarkIOUring)), fifo(ret(3))}, []string{"5 1 /w/f", "5 1 /w/f 3 success"}, 0},
		{"of another thread", []step{fifo(), func(r *raw) { r.add(5, 6, "openat", path("/w/f"), flags(0), ret(3)) }},
			[]string{"5 1 /w/f", "5 1 /w/f 3 success"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r raw
			for _, s := range c.steps {
				s(&r)
			}
			got := mustNormalize(t, r.bytes(t))
			wantLines(t, got, c.want...)
			if n := got.own().Filtered[schemas.FilterOver]; n != c.over {
				t.Errorf("%d filtered as started over, want %d", n, c.over)
			}
		})
	}
}

// TestUnfinishedIsBounded keeps far more unfinished calls than memory is meant for.
func TestUnfinishedIsBounded(t *testing.T) {
	n, err := newTestNormalizer()
	if err != nil {
		t.Fatal(err)
	}
	e := schemas.RawEvent{Op: "mkdir", UserPath: []byte("/some/folder/that/has/a/name")}
	for i := range uint32(100_000) {
		e.PID, e.TID = 1+i, 1+i
		if err := n.event(&e); err != nil {
			t.Fatal(err)
		}
		if n.unfinishedBytes > maxHeld+1000 {
			t.Fatalf("%d bytes kept", n.unfinishedBytes)
		}
	}
	if err := n.flushUnfinished(); err != nil {
		t.Fatal(err)
	}
	if n.store.lines != 100_000 || n.unfinishedBytes != 0 || len(n.unfinished) != 0 {
		t.Errorf("%d lines, %d bytes", n.store.lines, n.unfinishedBytes)
	}
}
