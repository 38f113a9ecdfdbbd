package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// hookRecord is the result of a record that has none.
const hookRecord = -9999

func TestPendingHooks(t *testing.T) {
	hook := func(op, a string) func(*raw) { return func(r *raw) { r.add(5, 5, op, addr("cgroup", a)) } }
	ring := func(a string) func(*raw) {
		return func(r *raw) { r.add(5, 5, "connect", addr("cgroup", a), marks(schemas.MarkIOUring)) }
	}
	withMarks := func(op, a string, v int64, socket uint64, m schemas.Marks) func(*raw) {
		return func(r *raw) {
			source := "syscall"
			if m&schemas.MarkIOUring != 0 || v == hookRecord {
				source = "cgroup"
			}
			r.add(5, 5, op, addr(source, a), marks(m), func(e *schemas.RawEvent) {
				if v != hookRecord {
					e.Ret = v
					e.Has |= schemas.HasRet
				}
				if socket != 0 {
					e.Socket = socket
					e.Has |= schemas.HasSocket
				}
			})
		}
	}
	done := func(op, a string, v int64) func(*raw) {
		return func(r *raw) { r.add(5, 5, op, addr("syscall", a), ret(v)) }
	}
	denied := func(hook, a string) func(*raw) {
		return func(r *raw) {
			r.add(5, 5, "connect_blocked", addr("cgroup", a), func(e *schemas.RawEvent) { e.Hook = hook })
		}
	}
	blocked := func(a string) func(*raw) { return denied("connect", a) }
	lost := func(op string, v int64) func(*raw) {
		return func(r *raw) { r.add(5, 5, op, addr("syscall", ""), marks(schemas.MarkAddrFault), ret(v)) }
	}
	noFamily := func(op string) func(*raw) {
		return func(r *raw) {
			r.add(5, 5, op, addr("syscall", ""), ret(1), func(e *schemas.RawEvent) { e.Has |= schemas.HasFamily })
		}
	}
	other := func(r *raw) { r.add(5, 5, "openat", opened("/w")) }
	for _, c := range []struct {
		name  string
		steps []func(*raw)
		want  []string
		twice uint64
	}{
		{"connect", []func(*raw){hook("connect", "1.1.1.1:1"), done("connect", "1.1.1.1:1", -111)},
			[]string{"5 2 1.1.1.1:1 -111 error"}, 1},
		{"sendto", []func(*raw){hook("sendmsg", "1.1.1.1:1"), done("sendto", "1.1.1.1:1", 3)},
			[]string{"5 6 1.1.1.1:1 3 success"}, 1},
		{"bind", []func(*raw){hook("bind", "[::1]:1"), done("bind", "[::1]:1", 0)}, []string{"5 203 [::1]:1 0 success"}, 1},
		{"mapped address", []func(*raw){hook("sendmsg", "1.1.1.1:1"), done("sendmsg", "[::ffff:1.1.1.1]:1", 3)},
			[]string{"5 7 [::ffff:1.1.1.1]:1 3 success"}, 1},
		{"only the hook", []func(*raw){hook("connect", "1.1.1.1:1"), other},
			[]string{"5 1 /w 3 success", "5 2 1.1.1.1:1"}, 0},
		{"at the end", []func(*raw){other, hook("connect", "1.1.1.1:1")},
			[]string{"5 1 /w 3 success", "5 2 1.1.1.1:1"}, 0},
		{"at exit", []func(*raw){hook("connect", "1.1.1.1:1"), func(r *raw) { r.add(5, 5, "exit") }},
			[]string{"5 2 1.1.1.1:1"}, 0},
		{"memory changed in between", []func(*raw){hook("connect", "1.1.1.1:1"), done("connect", "2.2.2.2:2", 0)},
			[]string{"5 2 1.1.1.1:1 0 success"}, 1},
		{"a unix name changed in between", []func(*raw){hook("connect", "unix:/a/s"), done("connect", "unix:/w/s", -2)},
			[]string{"5 2 unix:/a/s -2 error"}, 1},
		{"the socket says it", []func(*raw){hook("connect", "0.0.0.0:1"), withMarks("connect", "127.0.0.1:1", 0, 0, schemas.MarkOfSocket)},
			[]string{"5 2 127.0.0.1:1 0 success"}, 1},
		{"another socket took the descriptor", []func(*raw){withMarks("connect", "1.1.1.1:1", hookRecord, 7, 0), withMarks("connect", "2.2.2.2:2", 0, 8, schemas.MarkOfSocket)},
			[]string{"5 2 1.1.1.1:1 0 success"}, 1},
		{"to no address in particular, refused", []func(*raw){hook("sendmsg", "127.0.0.1:1"), denied("send", "0.0.0.0:1"), done("sendto", "0.0.0.0:1", -1)},
			[]string{"5 20 0.0.0.0:1", "5 6 0.0.0.0:1 -1 error"}, 1},
		{"an address that was not used", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, 0), withMarks("sendto", "1.1.1.1:1", 3, 7, schemas.MarkHooked),
			withMarks("sendto", "2.2.2.2:2", 3, 7, schemas.MarkHooked)}, []string{"5 6 1.1.1.1:1 3 success"}, 1},
		{"messages that were not used", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, 0), withMarks("sendmmsg", "1.1.1.1:1", 2, 7, schemas.MarkHooked),
			withMarks("sendmmsg", "2.2.2.2:2", 2, 7, schemas.MarkHooked)}, []string{"5 202 1.1.1.1:1 2 success"}, 1},
		{"an address that was not used, of a call that failed", []func(*raw){withMarks("sendto", "2.2.2.2:2", -1, 7, schemas.MarkHooked)},
			[]string{"5 6 2.2.2.2:2 -1 error"}, 0},
		{"a message without a name, then a socket that no hook saw", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, 0), withMarks("sendmsg", "[::1]:2", -97, 0, 0)},
			[]string{"5 7 1.1.1.1:1", "5 7 [::1]:2 -97 error"}, 0},
		{"a message, its socket not known at the end", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, 0), withMarks("sendmsg", "[::1]:2", 1, 0, schemas.MarkChanged)},
			[]string{"5 7 1.1.1.1:1 1 success"}, 1},
		{"a message without a name, then one of its socket", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, schemas.MarkUnpaired), withMarks("sendto", "[::1]:2", -22, 7, 0)},
			[]string{"5 7 1.1.1.1:1", "5 6 [::1]:2 -22 error"}, 0},
		{"a message without a name, then some to its peer", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, schemas.MarkUnpaired), withMarks("sendmmsg", "1.1.1.1:1", -22, 7, 0)},
			[]string{"5 202 1.1.1.1:1 -22 error", "5 7 1.1.1.1:1"}, 0},
		{"a message that failed, then another socket", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, 0), withMarks("sendto", "2.2.2.2:2", 3, 8, 0)},
			[]string{"5 7 1.1.1.1:1", "5 6 2.2.2.2:2 3 success"}, 0},
		{"other operation", []func(*raw){hook("connect", "1.1.1.1:1"), done("bind", "1.1.1.1:1", 0)},
			[]string{"5 2 1.1.1.1:1", "5 203 1.1.1.1:1 0 success"}, 0},
		{"ring then call", []func(*raw){ring("9.9.9.9:9"), hook("connect", "1.1.1.1:1"), done("connect", "1.1.1.1:1", 0)},
			[]string{"5 2 1.1.1.1:1 0 success", "5 2 9.9.9.9:9"}, 1},
		{"through io_uring", []func(*raw){ring("1.1.1.1:1"), func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(-111)) }},
			[]string{"5 2 1.1.1.1:1 -111 error"}, 1},
		{"through io_uring, while the task goes on", []func(*raw){ring("1.1.1.1:1"), other, hook("connect", "2.2.2.2:2"), done("connect", "2.2.2.2:2", 0), other,
			func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(0)) }},
			[]string{"5 1 /w 3 success", "5 2 2.2.2.2:2 0 success", "5 1 /w 3 success", "5 2 1.1.1.1:1 0 success"}, 2},
		{"through io_uring, by a worker", []func(*raw){func(r *raw) { r.add(5, 9, "connect", addr("cgroup", "1.1.1.1:1"), marks(schemas.MarkIOUring)) },
			func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(0)) }},
			[]string{"5 2 1.1.1.1:1 0 success"}, 1},
		{"through io_uring, another address", []func(*raw){ring("2.2.2.2:2"), func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(0)) }},
			[]string{"5 2 1.1.1.1:1 0 success", "5 2 2.2.2.2:2"}, 0},
		{"relative unix name that ends with slashes", []func(*raw){hook("sendmsg", "unix:d/s/.//"), done("sendmmsg", "unix:/w/d/s", -2)},
			[]string{"5 202 unix:/w/d/s -2 error"}, 1},
		{"relative unix name of another file", []func(*raw){hook("sendmsg", "unix:s"), done("sendmmsg", "unix:/w/as", -2)},
			[]string{"5 202 unix:/w/as -2 error", "5 7 unix:s"}, 0},
		{"relative unix name", []func(*raw){hook("connect", "unix:../s"), done("connect", "unix:/w/s", 0)},
			[]string{"5 2 unix:/w/s 0 success"}, 1},
		{"unix name in a chroot", []func(*raw){hook("connect", "unix:/s"), done("connect", "unix:/jail/s", 0)},
			[]string{"5 2 unix:/jail/s 0 success"}, 1},
		{"the equal unix name first", []func(*raw){ring("unix:/s"), ring("unix:/a/s"), func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "unix:/a/s"), ret(0)) }},
			[]string{"5 2 unix:/a/s 0 success"}, 2},
		{"a message to a name in an unmounted tree", []func(*raw){hook("sendmsg", "unix:s"), done("sendmmsg", "unix:detached:/d/s", -2)},
			[]string{"5 202 unix:detached:/d/s -2 error"}, 1},
		{"messages of which the first has no name", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, schemas.MarkUnpaired), withMarks("sendmsg", "2.2.2.2:2", hookRecord, 7, schemas.MarkUnpaired),
			withMarks("sendmmsg", "2.2.2.2:2", 2, 7, schemas.MarkHooked), withMarks("sendto", "3.3.3.3:3", 1, 8, 0)},
			[]string{"5 202 2.2.2.2:2 2 success", "5 7 1.1.1.1:1", "5 6 3.3.3.3:3 1 success"}, 1},
		{"messages that were not used, after a send without a name of another socket", []func(*raw){withMarks("sendmsg", "1.1.1.1:1", hookRecord, 7, schemas.MarkUnpaired),
			withMarks("sendmmsg", "1.1.1.1:1", 2, 8, schemas.MarkHooked)}, []string{"5 7 1.1.1.1:1"}, 0},
		{"many messages", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "2.2.2.2:2"), hook("sendmsg", "1.1.1.1:1"),
			done("sendmmsg", "1.1.1.1:1", 1), done("sendmmsg", "2.2.2.2:2", 1), done("sendmmsg", "1.1.1.1:1", 1), other},
			[]string{"5 202 1.1.1.1:1 1 success", "5 202 2.2.2.2:2 1 success", "5 202 1.1.1.1:1 1 success", "5 1 /w 3 success"}, 3},
		{"a message without address", []func(*raw){hook("sendmsg", "2.2.2.2:2"), done("sendmmsg", "", 1), done("sendmmsg", "2.2.2.2:2", 1)},
			[]string{"5 202 null 1 success", "5 202 2.2.2.2:2 1 success"}, 1},
		{"a message that was left, then its socket", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "2.2.2.2:2"), done("sendmmsg", "1.1.1.1:1", 1), done("sendto", "3.3.3.3:0", -22)},
			[]string{"5 202 1.1.1.1:1 1 success", "5 7 2.2.2.2:2", "5 6 3.3.3.3:0 -22 error"}, 1},
		{"a message that was left, then the same call", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "2.2.2.2:2"), done("sendmmsg", "1.1.1.1:1", 1), other,
			hook("sendmsg", "2.2.2.2:2"), done("sendmmsg", "2.2.2.2:2", 1)},
			[]string{"5 202 1.1.1.1:1 1 success", "5 1 /w 3 success", "5 7 2.2.2.2:2", "5 202 2.2.2.2:2 1 success"}, 2},
		{"the last message denied", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "2.2.2.2:2"), done("sendmmsg", "1.1.1.1:1", 1), other},
			[]string{"5 202 1.1.1.1:1 1 success", "5 1 /w 3 success", "5 7 2.2.2.2:2"}, 1},
		{"denied", []func(*raw){hook("connect", "1.1.1.1:1"), blocked("1.1.1.1:1"), done("connect", "1.1.1.1:1", -1)},
			[]string{"5 20 1.1.1.1:1", "5 2 1.1.1.1:1 -1 error"}, 1},
		{"denied before the hook is recorded", []func(*raw){blocked("1.1.1.1:1"), hook("connect", "1.1.1.1:1"), done("connect", "1.1.1.1:1", -1)},
			[]string{"5 20 1.1.1.1:1", "5 2 1.1.1.1:1 -1 error"}, 1},
		{"denied, its hook lost", []func(*raw){blocked("1.1.1.1:1"), done("connect", "1.1.1.1:1", -1)},
			[]string{"5 20 1.1.1.1:1", "5 2 1.1.1.1:1 -1 error"}, 0},
		{"denied, its call lost", []func(*raw){hook("connect", "1.1.1.1:1"), blocked("1.1.1.1:1"), other},
			[]string{"5 20 1.1.1.1:1", "5 1 /w 3 success"}, 1},
		{"denied, of another address", []func(*raw){hook("connect", "2.2.2.2:2"), blocked("1.1.1.1:1"), other},
			[]string{"5 20 1.1.1.1:1", "5 1 /w 3 success", "5 2 2.2.2.2:2"}, 0},
		{"denied by fast open", []func(*raw){hook("connect", "1.1.1.1:1"), blocked("1.1.1.1:1"), done("sendto", "1.1.1.1:1", -1)},
			[]string{"5 20 1.1.1.1:1", "5 6 1.1.1.1:1 -1 error"}, 1},
		{"denied message of several", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "2.2.2.2:2"), denied("send", "2.2.2.2:2"),
			done("sendmmsg", "1.1.1.1:1", 1), other},
			[]string{"5 20 2.2.2.2:2", "5 202 1.1.1.1:1 1 success", "5 1 /w 3 success"}, 2},
		{"denied second time", []func(*raw){hook("sendmsg", "1.1.1.1:1"), hook("sendmsg", "1.1.1.1:1"), denied("send", "1.1.1.1:1"),
			done("sendmmsg", "1.1.1.1:1", 1), other},
			[]string{"5 20 1.1.1.1:1", "5 202 1.1.1.1:1 1 success", "5 1 /w 3 success"}, 2},
		{"denied bind", []func(*raw){denied("bind", "0.0.0.0:1"), done("bind", "0.0.0.0:1", -1)},
			[]string{"5 20 0.0.0.0:1", "5 203 0.0.0.0:1 -1 error"}, 0},
		{"denied through io_uring", []func(*raw){ring("1.1.1.1:1"), blocked("1.1.1.1:1"),
			func(r *raw) { r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(-1)) }},
			[]string{"5 20 1.1.1.1:1", "5 2 1.1.1.1:1 -1 error"}, 1},
		{"address not readable at the end", []func(*raw){hook("connect", "1.1.1.1:1"), lost("connect", 0)}, []string{"5 2 1.1.1.1:1 0 success"}, 1},
		{"address not readable at all", []func(*raw){hook("connect", "1.1.1.1:1"), lost("connect", -14)},
			[]string{"5 2 1.1.1.1:1", "5 2 null -14 error"}, 0},
		{"address without family", []func(*raw){hook("sendmsg", "1.1.1.1:1"), noFamily("sendto")}, []string{"5 6 1.1.1.1:1 1 success"}, 1},
		{"the end of a connection", []func(*raw){hook("connect", "1.1.1.1:1"), noFamily("connect")},
			[]string{"5 2 1.1.1.1:1", "5 2 null 1 success"}, 0},
		{"unknown address", []func(*raw){hook("connect", ""), done("connect", "", -14)},
			[]string{"5 2 null -14 error"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r raw
			for _, s := range c.steps {
				s(&r)
				// Another task in between changes nothing.
				r.add(6, 6, "connect", addr("syscall", "1.1.1.1:1"), ret(0))
			}
			got := mustNormalize(t, r.bytes(t))
			want := c.want
			for range c.steps {
				want = append(want, "6 2 1.1.1.1:1 0 success")
			}
			wantLines(t, got, want...)
			if n := got.own().Filtered[schemas.FilterTwin]; n != c.twice {
				t.Errorf("%d filtered as reported twice, want %d", n, c.twice)
			}
		})
	}
}

// TestRingTakesAllRecords: a request of io_uring that is tried again passes the hook each
// time, in several threads of the process. Another process has its own records.
func TestRingTakesAllRecords(t *testing.T) {
	var r raw
	for _, id := range [][2]uint32{{5, 5}, {5, 7}, {5, 7}, {5, 8}, {6, 6}} {
		r.add(id[0], id[1], "connect", addr("cgroup", "1.1.1.1:1"), marks(schemas.MarkIOUring))
		r.add(id[0], id[1], "connect", addr("cgroup", "2.2.2.2:2"), marks(schemas.MarkIOUring))
	}
	r.add(5, 8, "connect", addr("io_uring", "1.1.1.1:1"), ret(0))
	r.add(5, 8, "connect", addr("io_uring", "1.1.1.1:1"), ret(1)) // a second request
	r.add(5, 5, "connect", addr("io_uring", "2.2.2.2:2"), ret(0))
	wantLines(t, mustNormalize(t, r.bytes(t)), "5 2 2.2.2.2:2 0 success", "5 2 1.1.1.1:1 0 success", "5 2 1.1.1.1:1 1 success",
		"6 2 1.1.1.1:1", "6 2 2.2.2.2:2")
}

// TestHeldOfOneTask: more tries than are held do not become lines, unless they are of others.
func TestHeldOfOneTask(t *testing.T) {
	var r raw
	r.add(5, 5, "connect", addr("cgroup", "2.2.2.2:2"), marks(schemas.MarkIOUring))
	for range 3 * maxHeldOfTask {
		r.add(5, 5, "connect", addr("cgroup", "1.1.1.1:1"), marks(schemas.MarkIOUring))
	}
	r.add(5, 5, "connect", addr("io_uring", "1.1.1.1:1"), ret(0))
	wantLines(t, mustNormalize(t, r.bytes(t)), "5 2 2.2.2.2:2", "5 2 1.1.1.1:1 0 success")
}

// TestHeldIsBounded holds far more hook records than memory is meant for.
func TestHeldIsBounded(t *testing.T) {
	n, err := newTestNormalizer()
	if err != nil {
		t.Fatal(err)
	}
	e := schemas.RawEvent{Op: "connect", Source: "cgroup", Addr: []byte("127.0.0.1:80")}
	for i := range uint32(300_000) {
		e.PID, e.TID = 1+i, 1+i
		if err := n.event(&e); err != nil {
			t.Fatal(err)
		}
		if n.hooks.bytes > maxHeld+1000 {
			t.Fatalf("%d bytes held", n.hooks.bytes)
		}
	}
	if err := n.flushHeld(); err != nil {
		t.Fatal(err)
	}
	if n.store.lines != 300_000 || n.hooks.bytes != 0 || !n.hooks.empty() {
		t.Errorf("%d lines, %d bytes", n.store.lines, n.hooks.bytes)
	}
}
