//go:build linux && (amd64 || arm64)

package bpf

import (
	"bufio"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// A call is one thing that a program in the cgroup tries.
type call struct {
	Do   string
	Net  string // tcp4, tcp6, udp4, udp6, mptcp4, mptcp6, stream, dgram, seqpacket
	To   string // ADDR:PORT or a unix name
	Via  string // where the socket is bound or connected first
	Name string // of a cgroup
}

func (c call) String() string {
	return strings.TrimSpace(c.Do + " " + c.Net + " " + c.Via + " " + c.To)
}

// callerEnv makes the test binary a process that carries out the calls it is sent.
const callerEnv = "RUNNER_TEST_CALLER"

func TestMain(m *testing.M) {
	if os.Getenv(testCopies) != "" {
		copiesOfSets = CopiesOn
	}
	if words := os.Getenv(shareEnv); words != "" {
		shareMain(words)
		return
	}
	if path := os.Getenv(touchEnv); path != "" {
		touchMain(path)
		return
	}
	if words := os.Getenv(actEnv); words != "" {
		actMain(words)
		return
	}
	switch os.Getenv(callerEnv) {
	case "":
	case filesCaller:
		filesCallerMain()
		return
	case numbersCaller:
		numbersCallerMain()
		return
	case spacesCaller:
		spacesCallerMain()
		return
	default:
		callerMain()
		return
	}
	os.Exit(m.Run())
}

// callerMain does one call a line, in a separate network namespace, and answers with the errno.
func callerMain() {
	runtime.LockOSThread()
	if err := ownNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, "a separate network namespace:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	answer(call.make)
}

// answer makes the calls that come in and says how each one ended.
func answer(do func(call) error) {
	in := gob.NewDecoder(os.Stdin)
	for {
		var c call
		if in.Decode(&c) != nil {
			return
		}
		var no syscall.Errno
		if err := do(c); err != nil && !errors.As(err, &no) {
			fmt.Println(-1, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println(int(no), no.Error())
	}
}

// localAddr is an address of this machine that is not a loopback one.
const localAddr = "10.9.8.7"

func ownNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	alias, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(netip.MustParseAddr(localAddr).AsSlice()); err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	// who may make ICMP sockets
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias)
}

// sockets are the kinds of sockets that calls name.
var sockets = map[string][3]int{
	"tcp4": {unix.AF_INET, unix.SOCK_STREAM, 0}, "tcp6": {unix.AF_INET6, unix.SOCK_STREAM, 0},
	"udp4": {unix.AF_INET, unix.SOCK_DGRAM, 0}, "udp6": {unix.AF_INET6, unix.SOCK_DGRAM, 0},
	"mptcp4": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, "mptcp6": {unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	"stream": {unix.AF_UNIX, unix.SOCK_STREAM, 0}, "dgram": {unix.AF_UNIX, unix.SOCK_DGRAM, 0}, "seqpacket": {unix.AF_UNIX, unix.SOCK_SEQPACKET, 0},
	"raw4": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP}, "raw6": {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP},
	"ping4": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, "ping6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6},
	"udplite4": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, "udplite6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
	"sctp4": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "sctp4many": {unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
}

func (c call) socket() (int, error) {
	k, ok := sockets[c.Net]
	if !ok {
		return 0, fmt.Errorf("no socket %q", c.Net)
	}
	return unix.Socket(k[0], k[1]|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, k[2])
}

// sockaddr is the address as memory holds it. An IPv4 address on an IPv6 socket is
// written as one unless it is spelled as IPv6.
func sockaddr(s string) []byte {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		b := make([]byte, 16)
		binary.BigEndian.PutUint16(b[2:], ap.Port())
		if ap.Addr().Is4() {
			b[0] = unix.AF_INET
			copy(b[4:], ap.Addr().AsSlice())
			return b
		}
		b = append(b, make([]byte, 12)...)
		b[0] = unix.AF_INET6
		copy(b[8:], ap.Addr().AsSlice())
		return b
	}
	b := []byte{unix.AF_UNIX, 0}
	if name, ok := strings.CutPrefix(s, "@"); ok {
		return append(append(b, 0), name...)
	}
	return append(b, s...)
}

func errno(r, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func connectTo(fd int, sa []byte) error {
	return errno(syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))))
}

func bindTo(fd int, sa []byte) error {
	return errno(syscall.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))))
}

func sendTo(fd int, sa []byte, flags int) error {
	return errno(syscall.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), 1, uintptr(flags),
		uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))))
}

// message is a msghdr with one byte of data.
func message(sa, control []byte) *unix.Msghdr {
	one := byte('x')
	v := &unix.Iovec{Base: &one}
	v.SetLen(1)
	h := &unix.Msghdr{Iov: v, Iovlen: 1}
	if len(sa) > 0 {
		h.Name, h.Namelen = &sa[0], uint32(len(sa))
	}
	if len(control) > 0 {
		h.Control = &control[0]
		h.SetControllen(len(control))
	}
	return h
}

func sendMsg(fd int, h *unix.Msghdr) error {
	return errno(syscall.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(h)), 0))
}

// make does the call. All steps before the last must succeed.
func (c call) make() error {
	if c.Do == "cgroup" { // from here on in a child of the cgroup
		if err := os.Mkdir(c.Name, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(c.Name, "cgroup.procs"), []byte("0"), 0)
	}
	if c.Do == "socketpair" {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	}
	if c.Do == "uring socket" {
		u, err := newUring()
		if err != nil {
			return err
		}
		defer u.close()
		k := sockets[c.Net]
		return u.do(uringEntry{opcode: 45, fd: int32(k[0]), off: uint64(k[1]), len: uint32(k[2])})
	}
	fd, err := c.socket()
	if err != nil || c.Do == "socket" {
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	defer unix.Close(fd)
	before := func(err error, what string) error {
		return fmt.Errorf("%s before: %w", what, err)
	}
	to := sockaddr(c.To)
	switch c.Do {
	case "connect":
		return connectTo(fd, to)
	case "bind":
		return bindTo(fd, to)
	case "bound connect", "bound send":
		if err := bindTo(fd, sockaddr(c.Via)); err != nil {
			return before(err, "bind")
		}
		if c.Do == "bound send" {
			return sendTo(fd, to, 0)
		}
		return connectTo(fd, to)
	case "peer": // connects and says whose address it reached
		if err := connectTo(fd, to); err != nil && err != unix.EINPROGRESS {
			return err
		}
		sa, err := unix.Getpeername(fd)
		if err != nil && c.Net[:3] == "udp" {
			return err
		}
		if got := fmt.Sprint(sa); err == nil && !strings.Contains(got, strings.Trim(strings.ReplaceAll(fmt.Sprint(netip.MustParseAddr(c.Via).AsSlice()), ",", ""), "[]")) {
			return fmt.Errorf("reached %s", got)
		}
		return nil
	case "sendto":
		return sendTo(fd, to, 0)
	case "fastopen":
		return sendTo(fd, to, unix.MSG_FASTOPEN)
	case "fastopen connect":
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, 30, 1); err != nil { // TCP_FASTOPEN_CONNECT
			return before(err, "setsockopt")
		}
		return connectTo(fd, to)
	case "unspec sendto": // the family that says nothing is IPv4 here
		to[0] = unix.AF_UNSPEC
		return sendTo(fd, to, 0)
	case "sendmsg":
		return sendMsg(fd, message(to, nil))
	case "pktinfo sendmsg": // with a source address that it chose
		return sendMsg(fd, message(to, pktinfo(netip.MustParseAddr(c.Via).As4())))
	case "sendmmsg":
		h := [2]struct {
			unix.Msghdr
			n uint32
			_ uint32
		}{{Msghdr: *message(sockaddr(c.Via), nil)}, {Msghdr: *message(to, nil)}}
		n, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), 2, 0, 0, 0)
		if e == 0 && n < 2 { // it reports that the second one was not sent, not why
			e = unix.EPERM
		}
		return errno(n, 0, e)
	case "connected sendto", "connected control", "disconnect":
		if err := connectTo(fd, sockaddr(c.Via)); err != nil {
			return before(err, "connect")
		}
		switch c.Do {
		case "disconnect":
			return connectTo(fd, make([]byte, 16))
		case "connected control": // no address, but control data
			return sendMsg(fd, message(nil, ttl()))
		}
		return sendTo(fd, to, 0)
	}
	return c.uring(fd, to)
}

func pktinfo(src [4]byte) []byte {
	b := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
	h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
	copy(b[unix.CmsgLen(4):], src[:]) // ipi_spec_dst
	return b
}

// ttl is control data that any UDP socket takes.
func ttl() []byte {
	b := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.IPPROTO_IP, unix.IP_TTL
	h.SetLen(unix.CmsgLen(4))
	b[unix.CmsgLen(0)] = 9
	return b
}

// caller is a process in a fresh cgroup.
type caller struct {
	t    *testing.T
	dir  string // the cgroup
	home string // the working directory
	in   *gob.Encoder
	out  *bufio.Scanner
}

func newCaller(t *testing.T) *caller { return startCaller(t, "1") }

func startCaller(t *testing.T, kind string) *caller {
	t.Helper()
	dir, err := os.MkdirTemp(ownCgroup(t), "rules-test-")
	if err != nil {
		testkit.Missing(t, "a separate cgroup", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), callerEnv+"="+kind)
	cmd.Dir = t.TempDir()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && p != dir {
				os.Remove(p)
			}
			return nil
		})
		for range 50 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s could not be removed", dir)
	})
	c := &caller{t: t, dir: dir, home: cmd.Dir, in: gob.NewEncoder(stdin), out: bufio.NewScanner(stdout)}
	if !c.out.Scan() || c.out.Text() != "ready" {
		testkit.Missing(t, "a process in a separate cgroup and network namespace", "it did not start: ", c.out.Text())
	}
	return c
}

// try makes the call in the other process.
func (c *caller) try(what call) syscall.Errno {
	c.t.Helper()
	if err := c.in.Encode(what); err != nil {
		c.t.Fatal(err)
	}
	if !c.out.Scan() {
		c.t.Fatalf("%s: the caller is gone", what)
	}
	var no int
	fmt.Sscan(c.out.Text(), &no)
	if no < 0 {
		c.t.Errorf("%s: %s", what, c.out.Text())
	}
	return syscall.Errno(no)
}
