//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/expect"
	"github.com/runner-evidence/runner/testdata/workload/made"
)

var ruleChecks = []check{
	{"network-rules", true, networkRules},
	{"files-lsm", true, func(m *machine) (string, error) { return fileRules(m, "lsm") }},
	{"files-fanotify", true, func(m *machine) (string, error) { return fileRules(m, "fanotify") }},
	{"files-landlock", true, func(m *machine) (string, error) { return fileRules(m, "landlock") }},
}

// attempt is a network call, and the number of the rule that must refuse it.
type attempt struct {
	op   string // connect, sendto or bind
	to   string // ADDR:PORT, or the name of a unix socket in the work folder
	rule uint32 // 0: allowed
}

var attempts = []attempt{
	{"connect", "203.0.113.7:443", 1},
	{"connect", "127.0.0.1:9", 0},
	{"connect", "[2001:db8::7]:443", 2},
	{"sendto", "203.0.113.9:53", 1},
	{"sendto", "127.0.0.1:9", 0},
	{"bind", "127.0.0.1:2323", 3},
	{"bind", "127.0.0.1:2399", 0},
	{"connect", "denied/s", 4},
	{"connect", "allowed", 0},
}

const networkPolicy = `schema: runner.policy.v0
network:
  default: allow
  rules:
    - {id: no-documentation, deny: [203.0.113.0/24]}
    - {id: no-documentation-v6, deny: ["2001:db8::/32"]}
    - {id: no-port, deny: [127.0.0.1], ports: [2323], on: [bind]}
`

// networkRules: what the rules refuse fails, is recorded with its rule, and is counted.
func networkRules(m *machine) (string, error) {
	said, err := probe(m)
	if err != nil {
		return "", needCapture(m)
	}
	dir := m.dir()
	if !strings.Contains(said, schemas.FactUnixHooks+": "+schemas.CaptureAttached) {
		n, err := networkRun(m, dir, networkPolicy, "ip")
		return fmt.Sprintf("%d refused, each recorded with its rule; this kernel has no hooks for unix sockets", n), err
	}
	n, err := networkRun(m, dir, networkPolicy+fmt.Sprintf("    - {id: no-unix, deny: [\"unix:%s/denied\"]}\n", dir), "unix")
	return fmt.Sprintf("%d refused, each recorded with its rule", n), err
}

func networkRun(m *machine, dir, policy, what string) (refused int, err error) {
	file := dir + "/policy.yaml"
	if err := os.WriteFile(file, []byte(policy), 0o644); err != nil {
		return 0, err
	}
	argv := []string{m.tool("check"), "_network", dir, what}
	r, err := m.measure([]string{"--policy", file}, argv...)
	if err != nil {
		return 0, err
	}
	events, _, err := expect.Parse(r.stdout)
	if err != nil {
		return 0, err
	}
	for _, e := range events {
		if e.Type == schemas.EventConnectBlocked {
			refused++
		}
	}
	if res := expect.Compare(append(events, expect.Exec(argv[0])), r.lines); !res.Same() {
		return 0, errors.New(strings.Join(res.Problems(5), "\n"))
	}
	if n := r.health.Counters[schemas.CounterBlocked]; n != uint64(refused) {
		return 0, fmt.Errorf("%d refused, %d counted", refused, n)
	}
	return refused, r.complete()
}

func init() { stages["_network"] = network }

// network makes the attempts and prints what the record must hold.
func network(args []string) {
	dir, withUnix := args[0], args[1] == "unix"
	for _, a := range attempts {
		if a.unix() && !withUnix {
			continue
		}
		family, sa, value := a.address(dir)
		typ := unix.SOCK_STREAM
		if a.op == "sendto" {
			typ = unix.SOCK_DGRAM
		}
		fd, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			made.Skipped(value, err)
			continue
		}
		ret := a.call(fd, sa)
		if a.rule != 0 {
			made.Must("a refused call must end with EPERM: "+value, -1-ret)
			made.Line("blocked-"+a.op, schemas.EventConnectBlocked, value, 0, made.NoRet(), made.Rule(a.rule))
		} else if ret == -int64(unix.EPERM) {
			made.Must("an allowed call was refused: "+value, ret)
		}
		made.Line(a.op, map[string]int{"connect": schemas.EventConnect, "sendto": schemas.EventSendto, "bind": schemas.EventBind}[a.op], value, ret)
		unix.Close(fd)
	}
}

func (a attempt) unix() bool { return !strings.Contains(a.to, ":") }

func (a attempt) address(dir string) (family int, sa []byte, value string) {
	if a.unix() {
		path := dir + "/" + a.to
		return unix.AF_UNIX, append(append([]byte{unix.AF_UNIX, 0}, path...), 0), "unix:" + path
	}
	to := netip.MustParseAddrPort(a.to)
	port := []byte{byte(to.Port() >> 8), byte(to.Port())}
	if to.Addr().Is4() {
		ip := to.Addr().As4()
		return unix.AF_INET, append(append(append([]byte{unix.AF_INET, 0}, port...), ip[:]...), make([]byte, 8)...), a.to
	}
	ip := to.Addr().As16()
	return unix.AF_INET6, append(append(append([]byte{unix.AF_INET6, 0}, append(port, 0, 0, 0, 0)...), ip[:]...), 0, 0, 0, 0), a.to
}

func (a attempt) call(fd int, sa []byte) int64 {
	addr, size := uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))
	switch a.op {
	case "connect":
		return made.Call(unix.SYS_CONNECT, uintptr(fd), addr, size)
	case "bind":
		return made.Call(unix.SYS_BIND, uintptr(fd), addr, size)
	}
	data := []byte("x")
	return made.Call(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), 1, 0, addr, size)
}
