//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// ruleOf reads a rule as a test writes it.
func ruleOf(number uint32, action, family, address string, edits ...func(*schemas.NetworkRule)) schemas.NetworkRule {
	r := schemas.NetworkRule{Number: number, ID: fmt.Sprintf("r%d", number), Action: action, Family: family, On: []string{"connect", "send"}}
	if family == "unix" {
		r.Path = address
	} else {
		r.Prefix = address
	}
	for _, f := range edits {
		f(&r)
	}
	return r
}

func on(words ...string) func(*schemas.NetworkRule) {
	return func(r *schemas.NetworkRule) { r.On = words }
}
func ports(p ...[2]uint16) func(*schemas.NetworkRule) {
	return func(r *schemas.NetworkRule) { r.Ports = p }
}
func protocols(p ...string) func(*schemas.NetworkRule) {
	return func(r *schemas.NetworkRule) { r.Protocols = p }
}

func ruleSet(def string, rules ...schemas.NetworkRule) *schemas.NetworkRules {
	return &schemas.NetworkRules{Schema: schemas.SchemaNetworkRules, PolicyDigest: "sha256:" + strings.Repeat("0", 64), Default: def, Rules: rules}
}

var kernelTypes = new(kernelBTF)

// enforce attaches only the rules, without the probes.
func enforce(t *testing.T, dir string, rules *schemas.NetworkRules) *Session {
	t.Helper()
	return enforceWithout(t, dir, rules, 0)
}

func enforceWithout(t *testing.T, dir string, rules *schemas.NetworkRules, without Part) *Session {
	t.Helper()
	table, err := compileRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &Session{types: kernelTypes, without: without}
	t.Cleanup(s.Close)
	if err := s.attachRules(f, map[string]*ebpf.Map{}, table); err != nil {
		testkit.Missing(t, "network rules in the kernel", err)
	}
	return s
}

// attempt is a call and the number of the rule that refuses it, or nobody.
type attempt struct {
	call
	by int
}

const nobody = -1

func c(do, net, to string, by int) attempt { return attempt{call{Do: do, Net: net, To: to}, by} }
func via(do, net, via, to string, by int) attempt {
	return attempt{call{Do: do, Net: net, Via: via, To: to}, by}
}

// absent are kinds of sockets that a kernel may have been built without, and the fast open of
// multipath TCP, which came with Linux 6.2.
func absent(a attempt, e syscall.Errno) bool {
	if strings.HasPrefix(a.Net, "mptcp") && strings.HasPrefix(a.Do, "fastopen") && e == syscall.EOPNOTSUPP {
		return true
	}
	return e == syscall.EPROTONOSUPPORT || e == syscall.ESOCKTNOSUPPORT || e == syscall.EAFNOSUPPORT
}

// attempts makes the calls in both ways in which the rules can be loaded.
func attempts(t *testing.T, rules *schemas.NetworkRules, all []attempt) {
	t.Helper()
	attemptsWithout(t, rules, all, 0)
	attemptsWithout(t, rules, all, Loop)
}

func attemptsWithout(t *testing.T, rules *schemas.NetworkRules, all []attempt, without Part) {
	t.Helper()
	p := newCaller(t)
	s := enforceWithout(t, p.dir, rules, without)
	want := map[uint32]uint64{}
	for _, a := range all {
		got := p.try(a.call)
		if absent(a, got) {
			testkit.Note(t, fmt.Sprint(a), "this kernel has no such socket: ", got)
			continue
		}
		if (got == syscall.EPERM) != (a.by != nobody) {
			t.Errorf("%s: errno %d (%v), expected refusal by %d", a, int(got), got, a.by)
		}
		if a.by != nobody {
			want[uint32(a.by)]++
		}
		by, err := s.Blocked()
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(by) != fmt.Sprint(want) {
			t.Errorf("%s: refusals by rule %v, expected %v", a, by, want)
			want = by
		}
	}
}

func TestRulesAddresses(t *testing.T) {
	attempts(t, ruleSet("allow",
		ruleOf(1, "allow", "inet", "10.1.0.0/24"),
		ruleOf(2, "deny", "inet", "10.1.0.0/16"),
		ruleOf(3, "deny", "inet6", "fd00::/64"),
		ruleOf(4, "deny", "inet", "10.2.0.0/16", ports([2]uint16{80, 80}, [2]uint16{8000, 8999})),
		ruleOf(5, "deny", "inet", "10.3.0.0/16", protocols("tcp")),
		ruleOf(6, "deny", "inet", "10.4.0.0/16", protocols("udp"), on("send")),
		ruleOf(7, "deny", "any", "", ports([2]uint16{9, 9})),
		ruleOf(8, "deny", "inet6", "::ffff:0:0/96"), // all that is left of IPv4
	), []attempt{
		c("connect", "udp4", "10.1.0.9:53", nobody), c("connect", "udp4", "10.1.1.9:53", 2), c("connect", "tcp4", "10.1.255.255:1", 2),
		c("connect", "udp6", "[::ffff:10.1.0.9]:53", nobody), c("connect", "udp6", "[::ffff:10.1.1.9]:53", 2),
		c("connect", "tcp6", "[::ffff:10.1.1.9]:53", 2), c("connect", "udp6", "10.1.1.9:53", 2),
		c("sendto", "udp6", "[::ffff:10.1.1.9]:53", 2), c("sendto", "udp6", "10.1.1.9:53", 2), c("sendto", "udp6", "10.1.0.9:53", nobody),
		c("connect", "udp6", "[fd00::1]:1", 3), c("connect", "udp6", "[fd00:0:0:1::1]:1", nobody), c("connect", "tcp6", "[fd00::ffff]:1", 3),
		c("sendto", "udp6", "[fd00::1]:1", 3), c("sendmsg", "udp6", "[fd00::1]:1", 3), c("sendto", "udp6", "[fd01::1]:1", nobody),
		c("connect", "udp4", "10.2.0.1:80", 4), c("connect", "udp4", "10.2.0.1:7999", 8), c("connect", "udp4", "10.2.0.1:8000", 4),
		c("connect", "udp4", "10.2.0.1:8999", 4), c("connect", "udp4", "10.2.0.1:9000", 8),
		c("connect", "tcp4", "10.3.0.1:1", 5), c("connect", "udp4", "10.3.0.1:1", 8),
		c("connect", "udp4", "10.4.0.1:1", 8), c("sendto", "udp4", "10.4.0.1:1", 6), c("connect", "tcp4", "10.4.0.1:1", 8),
		c("connect", "udp6", "[2001::1]:9", 7), c("sendto", "udp6", "[::1]:9", 7), c("connect", "stream", "@nobody", nobody),
		c("connect", "mptcp4", "10.1.1.9:53", 2), c("connect", "mptcp6", "[fd00::1]:53", 3), c("connect", "mptcp4", "10.3.0.1:1", 5),
	})
}

// Every known way to bypass a check of a destination.
func TestRulesCannotBeAvoided(t *testing.T) {
	attempts(t, ruleSet("allow",
		ruleOf(1, "deny", "inet", "127.0.0.0/8", ports([2]uint16{1, 99})),
		ruleOf(2, "deny", "inet6", "::1/128", ports([2]uint16{1, 99})),
		ruleOf(3, "deny", "inet", localAddr+"/32"),
	), []attempt{
		c("connect", "udp4", "127.0.0.1:100", nobody), c("sendto", "udp4", "127.0.0.1:9", 1), c("sendmsg", "udp4", "127.0.0.1:9", 1),
		via("sendmmsg", "udp4", "127.0.0.1:100", "127.0.0.1:9", 1),
		via("connected sendto", "udp4", "127.0.0.1:100", "127.0.0.1:9", 1), via("connected sendto", "udp6", "[::1]:100", "[::1]:9", 2),
		via("connected sendto", "udp6", "[::1]:100", "[::ffff:127.0.0.1]:9", 1),
		via("connected control", "udp4", "127.0.0.1:100", "127.0.0.1:100", nobody), via("connected control", "udp6", "[::ffff:127.0.0.1]:100", "127.0.0.1:100", nobody),
		c("unspec sendto", "udp4", "127.0.0.1:9", 1), c("unspec sendto", "udp4", "127.0.0.1:100", nobody),
		via("disconnect", "udp4", "127.0.0.1:100", "127.0.0.1:100", nobody), via("disconnect", "udp6", "[::1]:100", "[::1]:1", nobody),
		// 0.0.0.0 and :: lead to this machine
		c("connect", "udp4", "0.0.0.0:9", 1), c("connect", "tcp4", "0.0.0.0:9", 1), c("sendto", "udp4", "0.0.0.0:9", 1), c("connect", "mptcp4", "0.0.0.0:9", 1),
		c("connect", "udp4", "0.0.0.0:100", nobody), c("sendto", "udp4", "0.0.0.0:100", nobody),
		c("connect", "udp6", "[::]:9", 2), c("connect", "tcp6", "[::]:9", 2), c("sendto", "udp6", "[::]:9", 2),
		c("connect", "udp6", "[::ffff:0.0.0.0]:9", 1), c("connect", "tcp6", "[::ffff:0.0.0.0]:9", 1), c("sendto", "udp6", "[::ffff:0.0.0.0]:9", 1),
		via("bound connect", "udp6", "[::ffff:127.0.0.1]:0", "[::]:9", 1), via("bound connect", "tcp6", "[::ffff:127.0.0.1]:0", "[::]:9", 1),
		via("bound send", "udp6", "[::ffff:127.0.0.1]:0", "[::]:9", 1),
		via("bound connect", "udp4", localAddr+":0", "0.0.0.0:100", 3), via("bound connect", "tcp4", localAddr+":0", "0.0.0.0:100", 3),
		via("bound send", "udp4", localAddr+":0", "0.0.0.0:100", 3), via("bound connect", "tcp6", "[::ffff:"+localAddr+"]:0", "[::ffff:0.0.0.0]:100", 3),
		via("bound connect", "udp4", "127.0.0.2:0", "0.0.0.0:100", nobody), via("bound connect", "udp4", "224.0.0.9:0", "0.0.0.0:9", 1),
		via("pktinfo sendmsg", "udp4", localAddr, "0.0.0.0:100", 3), via("pktinfo sendmsg", "udp4", "127.0.0.1", "0.0.0.0:100", nobody),
		via("peer", "udp4", "127.0.0.1", "0.0.0.0:100", nobody), via("peer", "udp6", "::1", "[::]:100", nobody),
		// TCP fast open connects by sending
		c("fastopen", "tcp4", "127.0.0.1:9", 1), c("fastopen", "tcp6", "[::1]:9", 2), c("fastopen", "tcp4", "127.0.0.1:100", nobody),
		c("fastopen connect", "tcp4", "127.0.0.1:9", 1), c("fastopen", "mptcp4", "127.0.0.1:9", 1),
		c("connect", "mptcp4", "127.0.0.1:9", 1), c("connect", "mptcp6", "[::ffff:127.0.0.1]:9", 1), c("connect", "mptcp6", "[::1]:9", 2),
		c("uring connect", "tcp4", "127.0.0.1:9", 1), c("uring async connect", "tcp4", "127.0.0.1:9", 1), c("uring connect", "udp6", "[::ffff:127.0.0.1]:9", 1),
		c("uring sendmsg", "udp4", "127.0.0.1:9", 1), c("uring connect", "udp4", "127.0.0.1:100", nobody),
		// sockets whose destinations no hook checks
		c("socket", "raw4", "", 1), c("socket", "raw6", "", 1), c("socket", "ping4", "", 1), c("socket", "ping6", "", 1),
		c("socket", "udplite4", "", 1), c("socket", "udplite6", "", 1), c("socket", "sctp4", "", 1), c("socket", "sctp4many", "", 1),
		c("uring socket", "raw4", "", 1), c("uring socket", "udp4", "", nobody), c("socketpair", "", "", nobody),
	})
}

func TestRulesDefaultDeny(t *testing.T) {
	attempts(t, ruleSet("deny",
		ruleOf(1, "allow", "inet", "127.0.0.0/8"),
		ruleOf(2, "allow", "inet6", "::1/128", on("connect")),
		ruleOf(3, "allow", "unix", "@ours"),
	), []attempt{
		c("connect", "udp4", "127.0.0.1:1", nobody), c("connect", "udp4", "10.0.0.1:1", 0), c("sendto", "udp4", "10.0.0.1:1", 0),
		c("connect", "udp6", "[::1]:1", nobody), c("sendto", "udp6", "[::1]:1", 0), c("connect", "tcp6", "[2001::1]:443", 0),
		c("connect", "tcp4", "0.0.0.0:1", nobody), c("connect", "udp4", "0.0.0.0:1", nobody), c("connect", "udp6", "[::]:1", nobody),
		c("sendto", "udp6", "[::]:1", 0), via("bound connect", "udp4", localAddr+":0", "0.0.0.0:1", 0),
		via("disconnect", "udp4", "127.0.0.1:1", "127.0.0.1:1", nobody), via("connected control", "udp4", "127.0.0.1:1", "127.0.0.1:1", nobody),
		c("socket", "raw4", "", 0), c("socket", "ping4", "", 0), c("socketpair", "", "", nobody),
		c("connect", "stream", "@ours", nobody), c("connect", "stream", "@other", 0), c("connect", "dgram", "/run/x", 0), c("sendto", "dgram", "@other", 0),
		c("bind", "udp4", "0.0.0.0:0", nobody), c("bind", "stream", "@mine", nobody), // no rule applies to bind
	})
}

func TestRulesUnix(t *testing.T) {
	attempts(t, ruleSet("allow",
		ruleOf(1, "allow", "unix", "/run/d/ok"),
		ruleOf(2, "deny", "unix", "/run/d"),
		ruleOf(3, "deny", "unix", "@hidden"),
		ruleOf(4, "deny", "unix", `/run/\xff`),
	), []attempt{
		c("connect", "stream", "/run/d", 2), c("connect", "stream", "/run/d/x", 2), c("connect", "stream", "/run/dx", nobody), c("connect", "stream", "/run", nobody),
		c("connect", "stream", "/run/d/ok", nobody), c("connect", "stream", "/run/d/ok/x", nobody), c("connect", "stream", "/run/d/okay", 2),
		c("connect", "dgram", "/run/d/x", 2), c("connect", "seqpacket", "/run/d/x", 2), c("sendto", "dgram", "/run/d/x", 2), c("sendmsg", "dgram", "/run/d/x", 2),
		c("uring connect", "stream", "/run/d/x", 2), c("uring sendmsg", "dgram", "/run/d/x", 2), c("connect", "stream", "/run/d/x\x00tail", 2),
		// one socket has many spellings: what is not plain might be it
		c("connect", "stream", "/run//d/x", 2), c("connect", "stream", "/run/./d/x", 2), c("connect", "stream", "/run/y/../d/x", 2), c("connect", "stream", "//run/d", 2),
		c("connect", "stream", "x", 2), c("connect", "stream", "./x", 2), c("connect", "stream", "/x/..", 2), c("connect", "stream", "/x/.", 2), c("connect", "stream", "/x/", nobody),
		c("connect", "stream", "/proc/self/root/run/d", 2), c("connect", "stream", "/x/...", nobody), c("connect", "stream", "/x/..y/.z", nobody),
		c("connect", "stream", "/run/\xff", 4), c("connect", "stream", "/run/\xfe", nobody),
		c("connect", "stream", "/run/d/ok/../x", 2), c("connect", "stream", "/"+long(106), nobody), c("connect", "stream", "/run/d/"+long(101), 2),
		c("connect", "stream", "@hidden", 3), c("connect", "stream", "@hidden\x00", nobody), c("connect", "stream", "@hidde", nobody), c("connect", "stream", "@hiddenx", nobody),
		c("sendto", "dgram", "@hidden", 3), c("connect", "stream", "@/run/d", nobody),
	})
	attempts(t, ruleSet("allow", ruleOf(1, "allow", "unix", "/run"), ruleOf(2, "deny", "unix", "/"), ruleOf(3, "deny", "unix", "")), []attempt{
		c("connect", "stream", "/run/x", nobody), c("connect", "stream", "/tmp/x", 2), c("connect", "stream", "x", 2), c("connect", "stream", "@x", 3),
		c("connect", "udp4", "127.0.0.1:1", nobody), c("socket", "raw4", "", nobody),
	})
	// a denial of everything is one of unix sockets too, but not if it names ports
	attempts(t, ruleSet("allow", ruleOf(1, "deny", "any", "", protocols("tcp")), ruleOf(2, "deny", "any", "")), []attempt{
		c("connect", "stream", "@x", 2), c("connect", "tcp4", "127.0.0.1:1", 1), c("connect", "udp4", "127.0.0.1:1", 2),
	})
}

func long(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a'
	}
	return string(b)
}

func TestRulesBind(t *testing.T) {
	attempts(t, ruleSet("allow",
		ruleOf(1, "deny", "inet", "127.0.0.2/32", on("bind")),
		ruleOf(2, "deny", "inet6", "::1/128", on("bind"), ports([2]uint16{2000, 2999}), protocols("tcp")),
		ruleOf(3, "allow", "inet6", "::/128", on("bind"), ports([2]uint16{4000, 4000})),
	), []attempt{
		c("bind", "udp4", "127.0.0.2:0", 1), c("bind", "tcp4", "127.0.0.1:0", nobody), c("bind", "udp6", "[::ffff:127.0.0.2]:0", 1),
		c("bind", "tcp6", "[::1]:2000", 2), c("bind", "udp6", "[::1]:2000", nobody), c("bind", "tcp6", "[::1]:3000", nobody),
		// all addresses are these too
		c("bind", "udp4", "0.0.0.0:0", 1), c("bind", "tcp6", "[::]:2500", 2), c("bind", "udp6", "[::]:2500", 1), c("bind", "udp6", "[::ffff:0.0.0.0]:1", 1),
		c("bind", "mptcp4", "127.0.0.2:0", 1), c("uring bind", "tcp4", "127.0.0.2:0", 1), c("bind", "tcp6", "[::]:4000", 1),
		c("connect", "udp4", "127.0.0.2:1", nobody), c("socket", "raw4", "", nobody), c("bind", "stream", "@x", nobody),
	})
	attempts(t, ruleSet("deny", ruleOf(1, "allow", "inet", "0.0.0.0/32", on("bind")), ruleOf(2, "allow", "inet6", "::/128", on("bind"))), []attempt{
		c("bind", "udp4", "0.0.0.0:0", nobody), c("bind", "udp6", "[::]:0", nobody), c("bind", "udp4", "127.0.0.1:0", 0), c("connect", "udp4", "127.0.0.1:1", 0),
	})
}

// A cgroup that the command makes below its own is still under the rules.
func TestRulesChildCgroup(t *testing.T) {
	p := newCaller(t)
	enforce(t, p.dir, ruleSet("allow", ruleOf(1, "deny", "inet", "10.0.0.0/8")))
	if e := p.try(call{Do: "cgroup", Name: p.dir + "/child"}); e != 0 {
		t.Fatal(e)
	}
	if e := p.try(call{Do: "connect", Net: "udp4", To: "10.0.0.1:1"}); e != syscall.EPERM {
		t.Errorf("errno %v in a child cgroup", e)
	}
	if e := p.try(call{Do: "connect", Net: "udp4", To: "127.0.0.1:1"}); e != 0 {
		t.Errorf("errno %v in a child cgroup", e)
	}
}

const program32 = `package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	to := &syscall.SockaddrInet4{Port: 9, Addr: [4]byte{10, 0, 0, 1}}
	a, b := syscall.Connect(fd, to), syscall.Sendto(fd, []byte("x"), 0, to)
	fmt.Println(a == syscall.EPERM, b == syscall.EPERM, syscall.Connect(fd, &syscall.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}))
}
`

// Calls through the 32-bit entry of the kernel pass the same hooks.
func TestRules32Bit(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testkit.Skip(t, "32-bit callers", "only amd64 runs programs of 386")
	}
	p := newCaller(t)
	enforce(t, p.dir, ruleSet("allow", ruleOf(1, "deny", "inet", "10.0.0.0/8")))
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "program32")
	if err := os.WriteFile(src, []byte(program32), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", bin, src)
	build.Dir, build.Env = dir, append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	out, err := cmd.Output()
	testkit.SkipNo32Bit(t, bin, err)
	if err != nil || string(out) != "true true <nil>\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// Only what rules need is attached, and without rules nothing.
func TestRulesAttachWhatTheyNeed(t *testing.T) {
	programs := func(s *Session) (out []string) {
		for _, p := range s.progs {
			if name, ok := strings.CutPrefix(p.String(), "CGroupSockAddr(rule_"); ok {
				out = append(out, name[:strings.IndexByte(name, ')')])
			} else if strings.HasPrefix(p.String(), "CGroupSock(rule_") {
				out = append(out, "socket")
			}
		}
		return out
	}
	if s := attachOwn(t, false); len(programs(s)) > 0 || s.table != nil {
		t.Errorf("without rules there is %v", programs(s))
	}
	p := newCaller(t)
	for _, c := range []struct {
		rules *schemas.NetworkRules
		want  string
	}{
		{ruleSet("allow"), "[connect4 connect6 sendmsg4 sendmsg6]"},
		{ruleSet("allow", ruleOf(1, "allow", "any", "")), "[connect4 connect6 sendmsg4 sendmsg6]"},
		{ruleSet("allow", ruleOf(1, "deny", "any", "", ports([2]uint16{1, 2}))), "[connect4 connect6 sendmsg4 sendmsg6 socket]"},
		{ruleSet("allow", ruleOf(1, "deny", "inet", "10.0.0.0/8", on("bind"))), "[bind4 bind6 connect4 connect6 sendmsg4 sendmsg6]"},
		{ruleSet("allow", ruleOf(1, "allow", "unix", "")), "[connect4 connect6 sendmsg4 sendmsg6 connect_unix sendmsg_unix]"},
		{ruleSet("allow", ruleOf(1, "deny", "any", "")), "[connect4 connect6 sendmsg4 sendmsg6 socket connect_unix sendmsg_unix]"},
		{ruleSet("deny"), "[connect4 connect6 sendmsg4 sendmsg6 socket connect_unix sendmsg_unix]"},
	} {
		s := enforce(t, p.dir, c.rules)
		if got := fmt.Sprint(programs(s)); got != c.want {
			t.Errorf("%+v: attached %s, expected %s", c.rules, got, c.want)
		}
		s.Close()
	}
}

// Rules that cannot be enforced attach nothing and say why.
func TestRulesRefused(t *testing.T) {
	p := newCaller(t)
	bad := ruleSet("allow", ruleOf(1, "deny", "unix", "/run", on("bind")))
	s, err := Attach(Options{Cgroup: p.dir, RingSize: 1 << 16, Rules: bad})
	if rules := new(*RulesError); s != nil || !errors.As(err, rules) {
		t.Errorf("%v, %v", s, err)
	}
	if e := p.try(call{Do: "connect", Net: "stream", To: "/run/x"}); e != syscall.ENOENT {
		t.Errorf("errno %v", e)
	}
	// a kernel without the unix hooks, for which IPv4 is not enough
	loadUnixRules = func() (*ebpf.CollectionSpec, error) {
		spec, err := objects.LoadRulesUnix()
		if err == nil {
			spec.Programs[objects.RulesUnixProgRuleConnectUnix].AttachType = ebpf.AttachCGroupInet4Connect // has no such context
		}
		return spec, err
	}
	defer func() { loadUnixRules = objects.LoadRulesUnix }()
	s, err = Attach(Options{Cgroup: p.dir, RingSize: 1 << 16, Rules: ruleSet("deny")})
	if rules := new(*RulesError); s != nil || !errors.As(err, rules) || !strings.Contains(err.Error(), "unix sockets") {
		t.Errorf("%v, %v", s, err)
	}
	if e := p.try(call{Do: "connect", Net: "udp4", To: "127.0.0.1:1"}); e != 0 {
		t.Errorf("errno %v", e)
	}
}
