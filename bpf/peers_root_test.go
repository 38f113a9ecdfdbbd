//go:build linux && (amd64 || arm64)

package bpf

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The address of a call is the one that the kernel used, and what it did not use is none.
func TestPeers(t *testing.T) {
	p := newCaller(t)
	s, err := Attach(Options{Cgroup: p.dir, RingSize: 1 << 20})
	if err != nil {
		testkit.Missing(t, "the probes", err)
	}
	t.Cleanup(s.Close)
	var want []string
	for _, c := range []struct {
		call
		errno syscall.Errno
		want  []string // op source addr ret
	}{
		{call{Do: "connect", Net: "udp4", To: "0.0.0.0:7"}, 0, []string{"connect cgroup 0.0.0.0:7", "connect syscall 127.0.0.1:7 0"}},
		{call{Do: "connect", Net: "udp6", To: "[::]:7"}, 0, []string{"connect cgroup [::]:7", "connect syscall [::1]:7 0"}},
		{call{Do: "connect", Net: "udp6", To: "[::ffff:127.0.0.1]:7"}, 0, []string{"connect cgroup [::ffff:127.0.0.1]:7", "connect syscall [::ffff:127.0.0.1]:7 0"}},
		{call{Do: "connect", Net: "udp6", To: "127.0.0.1:7"}, 0, []string{"connect cgroup 127.0.0.1:7", "connect syscall [::ffff:127.0.0.1]:7 0"}},
		{call{Do: "disconnect", Net: "udp4", Via: "127.0.0.1:7"}, 0, []string{"connect cgroup 127.0.0.1:7", "connect syscall 127.0.0.1:7 0", "connect syscall  0"}},
		{call{Do: "bind", Net: "udp4", To: "127.0.0.3:77"}, 0, []string{"bind syscall 127.0.0.3:77 0"}},
		{call{Do: "bind", Net: "udp4", To: "192.0.2.1:77"}, syscall.EADDRNOTAVAIL, []string{"bind syscall 192.0.2.1:77 -99"}},
		{call{Do: "bind", Net: "dgram", To: "made"}, 0, []string{"bind syscall unix:DIR/made 0"}},
		{call{Do: "connect", Net: "dgram", To: "made"}, syscall.ECONNREFUSED, []string{"connect cgroup unix:made", "connect syscall unix:DIR/made -111"}},
		{call{Do: "sendto", Net: "udp4", To: "0.0.0.0:7"}, 0, []string{"sendmsg cgroup 127.0.0.1:7", "sendto syscall 127.0.0.1:7 1"}},
		{call{Do: "bound send", Net: "udp4", Via: "127.0.0.4:0", To: "0.0.0.0:7"}, 0, []string{"bind", "sendmsg cgroup 127.0.0.4:7", "sendto syscall 127.0.0.4:7 1"}},
		{call{Do: "sendto", Net: "udp6", To: "[::]:7"}, 0, []string{"sendmsg cgroup [::1]:7", "sendto syscall [::1]:7 1"}},
		{call{Do: "unspec sendto", Net: "udp4", To: "127.0.0.5:7"}, 0, []string{"sendmsg cgroup 127.0.0.5:7", "sendto syscall 127.0.0.5:7 1"}},
		{call{Do: "connected control", Net: "udp4", Via: "127.0.0.1:7"}, 0, []string{"connect cgroup 127.0.0.1:7", "connect syscall 127.0.0.1:7 0"}},
		{call{Do: "connected sendto", Net: "udp4", Via: "127.0.0.1:7", To: "127.0.0.6:7"}, 0,
			[]string{"connect cgroup 127.0.0.1:7", "connect syscall 127.0.0.1:7 0", "sendmsg cgroup 127.0.0.6:7", "sendto syscall 127.0.0.6:7 1"}},
		{call{Do: "sendto", Net: "raw4", To: "127.0.0.7:99"}, 0, []string{"sendto syscall 127.0.0.7:0 1"}},
		{call{Do: "unspec sendto", Net: "raw4", To: "127.0.0.8:99"}, 0, []string{"sendto syscall 127.0.0.8:0 1"}},
		{call{Do: "sendto", Net: "raw4", To: "0.0.0.0:0"}, 0, []string{"sendto syscall 127.0.0.1:0 1"}},
	} {
		if e := p.try(c.call); e != c.errno {
			t.Errorf("%s: errno %v", c.call, e)
		}
		want = append(want, c.want...)
	}
	got := records(t, s, p.home)
	for i, line := range got {
		if strings.HasPrefix(line, "bind syscall 127.0.0.4:") { // the kernel chose the port
			if strings.Contains(line, ":0 ") {
				t.Errorf("%s: not the socket's port", line)
			}
			got[i] = "bind"
		}
	}
	if !unixHooks(s) {
		want = slices.DeleteFunc(want, func(l string) bool { return strings.Contains(l, "cgroup unix:") })
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if st, err := s.Stats(); err != nil || st.Foreign != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

func unixHooks(s *Session) bool { return s.Unix == "attached" }
