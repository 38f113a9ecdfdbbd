//go:build linux

package cmd_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// dials connects in every way that there is, and asks for names in two.
const dials = `
import os, socket, struct, time
ask = b"GET / HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n"
def get(s):
    s.setblocking(True)
    s.settimeout(5)
    try:
        s.sendall(ask)
        s.recv(100)
    except ConnectionResetError:
        pass
    s.close()
def dial(to, family=socket.AF_INET, protocol=0, option=None, wait=True):
    try:
        s = socket.socket(family, socket.SOCK_STREAM, protocol)
    except OSError:
        return
    if option:
        s.setsockopt(socket.IPPROTO_TCP, option, 1)
    s.setblocking(wait)
    try:
        s.connect(to)
    except BlockingIOError:
        time.sleep(0.1)
    get(s)
dial(("10.0.0.1", 80))
dial(("10.0.0.2", 80), wait=False)
dial(("10.0.0.3", 80), option=30)
dial(("10.0.0.4", 80), protocol=262)
dial(("::ffff:10.0.0.5", 80), socket.AF_INET6)
dial(("fe80::6", 80, 0, 1), socket.AF_INET6)
dial(("2001:db8::7", 80), socket.AF_INET6)
dial(("0.0.0.0", 80))
dial(("::", 443), socket.AF_INET6)
for send in (lambda s: s.sendto(ask, socket.MSG_FASTOPEN, ("10.0.0.8", 80)), lambda s: s.sendmsg([ask], [], socket.MSG_FASTOPEN, ("10.0.0.9", 80))):
    s = socket.socket()
    send(s)
    s.recv(100)
    s.close()
child = os.fork()
if not child:
    s = socket.socket()
    s.connect(("10.0.0.10", 80))
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
question = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x01q\x04test\0\0\x01\0\x01"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(question, ("9.9.9.9", 53))
s.recv(500)
s = socket.socket()
s.connect(("9.9.9.8", 53))
s.sendall(struct.pack(">H", len(question)) + question)
s.recv(500)
`

// TestNetConnects: however a command connects and asks for names, the kernel layer has what the exchanges and names are compared with,
// so that the report has no code; without a kernel layer nothing is compared.
func TestNetConnects(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "connects of many kinds", "python3")
	for _, flags := range [][]string{nil, {"--no-kernel"}, {"--drop", `.kind == "connect"`}} {
		m := measure(t, flags, tool("runner-net"), "deny", "--", "python3", "-c", dials)
		if m.code != 0 {
			t.Fatal(m.outcome)
		}
		a := openArchive(t, m.path)
		if n := bytes.Count(a.members["layers/network.ndjson"], []byte("\n")); n < 10 {
			t.Errorf("%q: %d exchanges", flags, n)
		}
		if report := string(a.members["correlation-report.json"]); !strings.Contains(report, `"ambiguities":[]`) {
			t.Errorf("%q: %s", flags, report)
		}
		if o := call(t, command(t, "runner-verify", m.path)); o.code != 0 {
			t.Errorf("%q: %v", flags, o)
		}
	}
}

// TestNetConnectsOutside: a program outside connects a socket that the command gave it. The archive is valid, and its report says so.
func TestNetConnectsOutside(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "a socket that is given away", "python3")
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	testkit.Must(t, err)
	defer l.Close()
	connected := make(chan error, 1)
	go func() { connected <- connectGiven(l) }()
	m := measure(t, nil, tool("runner-net"), "deny", "--", "python3", "-c", `import socket, sys
s = socket.socket()
c = socket.socket(socket.AF_UNIX)
c.connect(sys.argv[1])
socket.send_fds(c, [b"x"], [s.fileno()])
s.close()
c.recv(1)`, name)
	if m.code != 0 {
		t.Fatal(m.outcome)
	}
	testkit.Must(t, <-connected)
	if report := string(openArchive(t, m.path).members["correlation-report.json"]); !strings.Contains(report, `"ambiguities":["exchange_without_connect:10.3.3.3:80"]`) {
		t.Error(report)
	}
	if o := call(t, command(t, "runner-verify", m.path)); o.code != 0 {
		t.Error(o)
	}
}

// connectGiven takes a socket from a program, and connects it.
func connectGiven(l *net.UnixListener) error {
	c, err := l.AcceptUnix()
	if err != nil {
		return err
	}
	defer c.Close()
	control := make([]byte, 64)
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return os.ErrInvalid
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	return unix.Connect(fds[0], &unix.SockaddrInet4{Port: 80, Addr: [4]byte{10, 3, 3, 3}})
}
