package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestNonblocking: the client's end may be a non-blocking socket, as some runtimes make
// it, and its flags do not change.
func TestNonblocking(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	dir := t.TempDir()
	c := proxyCommand(t, dir, allowAll)
	c.Stdin, c.Stdout = theirs, theirs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	if err := unix.SetNonblock(fds[1], true); err != nil { // the proxy shares the open file description
		t.Fatal(err)
	}
	lines := bufio.NewReader(ours)
	for range 3 {
		ours.WriteString(callLine("1", "read_big", `{"size":3000000}`) + "\n")
		time.Sleep(50 * time.Millisecond) // let it fill
		line, err := lines.ReadString('\n')
		if err != nil || len(line) < 3000000 || !strings.HasSuffix(line, "\"id\":1}\n") {
			t.Fatal(len(line), err)
		}
	}
	if flags, err := unix.FcntlInt(uintptr(fds[1]), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %o, %v", flags, err)
	}
	unix.Shutdown(fds[0], unix.SHUT_WR)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestServerEndless: an endless line of the server uses little memory, and the client
// gets no message from it.
func TestServerEndless(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll, func(c *exec.Cmd) {
		c.Args = append(c.Args[:len(c.Args)-1], "/bin/sh", "-c", "head -c 100000000 /dev/zero; sleep 0.2")
	})
	pid := p.cmd.Process.Pid
	p.watchMemory(t, pid)
	if code, rest := p.wait(); code != 0 || rest != "" {
		t.Errorf("exit %d, %q", code, testkit.Clip(rest))
	}
	if r := p.entries("runner.policy.message_refused"); len(r) != 1 || r[0]["reason_code"] != schemas.ReasonBadJSON {
		t.Errorf("%v", r)
	}
}

// watchMemory checks the proxy's memory while it reads.
func (p *proxy) watchMemory(t *testing.T, pid int) {
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		if rss := status(t, pid, "VmHWM"); rss > 64<<10 {
			t.Fatalf("the proxy took %d KiB", rss)
		}
	}
}
