//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// A refused call has its own record between that of the hook and that of the call, in
// whatever way the call was made.
func TestRulesRecords(t *testing.T) {
	p := newCaller(t)
	s, err := Attach(Options{Cgroup: p.dir, RingSize: 1 << 20, Rules: ruleSet("allow",
		ruleOf(1, "deny", "inet", "10.0.0.0/8"), ruleOf(2, "deny", "unix", "/run/d"), ruleOf(3, "deny", "inet", "127.0.0.9/32", on("bind")))})
	if err != nil {
		testkit.Missing(t, "network rules in the kernel", err)
	}
	t.Cleanup(s.Close)
	var want []string
	for _, c := range []struct {
		call
		want []string // op source addr ret or rule
	}{
		{call{Do: "connect", Net: "udp4", To: "10.0.0.1:1"}, []string{"connect cgroup 10.0.0.1:1", "connect_blocked cgroup 10.0.0.1:1 connect by 1", "connect syscall 10.0.0.1:1 -1"}},
		{call{Do: "connect", Net: "tcp6", To: "[::ffff:10.0.0.2]:1"}, []string{"connect cgroup [::ffff:10.0.0.2]:1",
			"connect_blocked cgroup [::ffff:10.0.0.2]:1 connect by 1", "connect syscall [::ffff:10.0.0.2]:1 -1"}},
		{call{Do: "sendto", Net: "udp6", To: "[::ffff:10.0.0.3]:1"}, []string{"sendmsg cgroup 10.0.0.3:1",
			"connect_blocked cgroup 10.0.0.3:1 send by 1", "sendto syscall [::ffff:10.0.0.3]:1 -1"}},
		{call{Do: "sendmmsg", Net: "udp4", Via: "127.0.0.1:2", To: "10.0.0.4:1"}, []string{"sendmsg cgroup 127.0.0.1:2", "sendmsg cgroup 10.0.0.4:1",
			"connect_blocked cgroup 10.0.0.4:1 send by 1", "sendmmsg syscall 127.0.0.1:2 1"}},
		{call{Do: "fastopen", Net: "tcp4", To: "10.0.0.5:1"}, []string{"connect cgroup 10.0.0.5:1", "connect_blocked cgroup 10.0.0.5:1 connect by 1", "sendto syscall 10.0.0.5:1 -1"}},
		{call{Do: "uring connect", Net: "tcp4", To: "10.0.0.6:1"}, []string{"connect cgroup 10.0.0.6:1", "connect_blocked cgroup 10.0.0.6:1 connect by 1", "connect io_uring 10.0.0.6:1 -1"}},
		{call{Do: "uring async connect", Net: "tcp4", To: "10.0.0.7:1"}, []string{"connect cgroup 10.0.0.7:1", "connect_blocked cgroup 10.0.0.7:1 connect by 1", "connect io_uring 10.0.0.7:1 -1"}},
		{call{Do: "connect", Net: "stream", To: "/run/d/x"}, []string{"connect cgroup unix:/run/d/x", "connect_blocked cgroup unix:/run/d/x connect by 2", "connect syscall unix:/run/d/x -1"}},
		{call{Do: "sendto", Net: "dgram", To: "x"}, []string{"sendmsg cgroup unix:x", "connect_blocked cgroup unix:x send by 2", "sendto syscall unix:DIR/x -1"}},
		{call{Do: "bind", Net: "udp4", To: "0.0.0.0:0"}, []string{"connect_blocked cgroup 0.0.0.0:0 bind by 3", "bind syscall 0.0.0.0:0 -1"}},
		{call{Do: "socket", Net: "raw6"}, []string{"connect_blocked cgroup  socket by 1"}},
	} {
		if e := p.try(c.call); e != syscall.EPERM {
			t.Errorf("%s: errno %v", c.call, e)
		}
		want = append(want, c.want...)
	}
	// allowed, and changed to where it leads: the hook has what the program asked for, the socket where it went
	if e := p.try(call{Do: "connect", Net: "udp4", To: "0.0.0.0:7"}); e != 0 {
		t.Errorf("errno %v", e)
	}
	want = append(want, "connect cgroup 0.0.0.0:7", "connect syscall 127.0.0.1:7 0")
	if got := records(t, s, p.home); !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	st, err := s.Stats()
	if err != nil || st.Seen != st.Emitted+st.Dropped || st.Dropped != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if by, err := s.Blocked(); err != nil || fmt.Sprint(by) != "map[1:8 2:2 3:1]" {
		t.Errorf("refusals %v, %v", by, err)
	}
}

// records are the network records of a session, which ends; dir is written as DIR.
func records(t *testing.T, s *Session, dir string) (out []string) {
	t.Helper()
	if err := s.Quiet(); err != nil {
		t.Fatal(err)
	}
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		if err := s.Ring.ReadInto(&rec); err != nil {
			return out
		}
		if _, err := d.Decode(rec.RawSample, &e); err != nil {
			t.Fatalf("%v: %x", err, rec.RawSample)
		}
		if e.Source == "" {
			continue
		}
		line := fmt.Sprintf("%s %s %s", e.Op, e.Source, strings.ReplaceAll(string(e.Addr), dir, "DIR"))
		if e.Has&schemas.HasRet != 0 {
			line += fmt.Sprint(" ", e.Ret)
		}
		if e.Has&schemas.HasRule != 0 {
			line += fmt.Sprintf(" %s by %d", e.Hook, e.Rule)
		}
		out = append(out, line)
	}
}
