//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

// outcomes are the outcomes of the calls, in the log's order.
func (p *proxy) outcomes() string {
	p.t.Helper()
	var out []string
	for _, e := range p.entries("runner.policy.call_finished") {
		out = append(out, e["outcome"].(string))
	}
	return strings.Join(out, " ")
}

// finished is the last line of the log.
func (p *proxy) finished() map[string]any {
	p.t.Helper()
	f := p.entries("runner.policy.session_finished")
	if len(f) != 1 {
		p.t.Fatalf("%d lines session_finished in\n%s", len(f), p.log())
	}
	return f[0]
}

// serverPID is the server's process.
func (p *proxy) serverPID() int {
	p.t.Helper()
	for range 1000 {
		if e := p.entries("runner.policy.session_started"); len(e) == 1 {
			return int(e[0]["server_pid"].(float64))
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Fatal("the session does not start")
	return 0
}

// gone fails the test if the process still exists.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 400 {
		if syscall.Kill(pid, 0) == syscall.ESRCH || zombie(pid) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d still exists", pid)
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

// await waits until the server has got so many lines.
func (p *proxy) await(lines int) {
	p.t.Helper()
	for range 1000 {
		if strings.Count(p.seen(), "\n") >= lines {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Fatalf("the server has got %q", p.seen())
}

// TestServerDies: every request that is in flight gets an answer, and the exit status
// is the server's.
func TestServerDies(t *testing.T) {
	for _, c := range []struct {
		tool   string
		code   int
		exit   any
		signal any
	}{
		{"read_exit", 7, 7., nil},
		{"read_kill", 137, nil, 9.},
		{"read_half", 0, 0., nil}, // a message without its LF is not complete
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, allowAll)
			p.send(callLine("1", "read_hang", `{}`), callLine(`"two"`, "read_hang", `{}`), callLine("3", c.tool, `{}`))
			for _, id := range []string{"1", `"two"`, "3"} {
				if line := p.receive(); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32603,`) {
					t.Error(line)
				}
			}
			// The client's input stays open: the end of the server ends the session.
			if code, rest := p.wait(); code != c.code || rest != "" {
				t.Errorf("exit %d, %q", code, rest)
			}
			if got := p.outcomes(); got != "server_gone server_gone server_gone" {
				t.Error(got)
			}
			if f := p.finished(); f["server_exit"] != c.exit || f["server_signal"] != c.signal || f["unfinished"] != 0. || f["finished"] != 3. {
				t.Errorf("%v", f)
			}
		})
	}
}

// TestServerCloses: a server that closes its output is terminated.
func TestServerCloses(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll, withFlags("--grace", "100ms"))
	p.send(callLine("1", "read_close", `{}`))
	if line := p.receive(); !strings.Contains(line, `"id":1,"error"`) {
		t.Error(line)
	}
	if code, _ := p.wait(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
	if got := p.outcomes(); got != "server_gone" {
		t.Error(got)
	}
}

// TestClientLeaves: when the client ends, calls without an answer are recorded as such,
// and a server that does not end gets TERM, then KILL.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll, withFlags("--grace", "100ms"), withEnv("FAKE_DEAF=1"))
	p.send(callLine("0", "read_x", `{}`))
	p.receive() // so the server is deaf by now
	p.send(callLine("1", "read_hang", `{}`))
	pid := p.serverPID()
	if code, rest := p.end(); code != 137 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	gone(t, pid)
	if got := p.outcomes(); got != "completed client_gone" {
		t.Error(got)
	}
	if f := p.finished(); f["server_signal"] != 9. {
		t.Errorf("%v", f)
	}
}

// TestClientHalfCloses: a client that only closes its output still gets later answers.
func TestClientHalfCloses(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll)
	var lines []string
	for i := range 50 {
		lines = append(lines, callLine(fmt.Sprint(i), "read_x", `{}`))
	}
	p.send(lines...)
	code, rest := p.end()
	if code != 0 || strings.Count(rest, "\n") != 50 {
		t.Errorf("exit %d, %q", code, rest)
	}
	if got := p.outcomes(); got != strings.TrimSpace(strings.Repeat("completed ", 50)) {
		t.Error(got)
	}
}

// TestClientDies: the client no longer reads.
func TestClientDies(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll)
	p.send(callLine("1", "read_hang", `{}`))
	p.await(1)
	p.outFile.Close()
	p.send(callLine("2", "read_x", `{}`))
	if code, _ := p.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := p.outcomes(); got != "client_gone client_gone" {
		t.Error(got)
	}
}

// TestClientStalls: a client that reads nothing and then ends blocks neither the server
// nor the proxy.
func TestClientStalls(t *testing.T) {
	for _, line := range []string{callLine("1", "read_big", `{"size":20000000}`), strings.Repeat(callLine("1", "write_x", `{}`)+"\n", 20000)} {
		t.Run(line[45:60], func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, readOnly, withFlags("--grace", "200ms"))
			pid := p.serverPID()
			go p.in.Write([]byte(line + "\n")) // this write may block too
			time.Sleep(300 * time.Millisecond)
			p.cmd.Process.Signal(syscall.SIGTERM)
			p.cmd.Process.Wait()
			p.waited = true
			gone(t, pid)
			p.finished()
		})
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, allowAll)
			p.send(callLine("1", "read_hang", `{}`))
			p.await(1)
			pid := p.serverPID()
			p.cmd.Process.Signal(sig)
			code, _ := p.wait()
			if f := p.finished(); code != 143 && code != 0 || f["server_signal"] != 15. && f["server_exit"] != 0. {
				t.Errorf("exit %d, %v", code, f)
			}
			if got := p.outcomes(); got != "client_gone" {
				t.Error(got)
			}
			gone(t, pid)
		})
	}
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		p := startProxy(t, allowAll, withEnv("FAKE_DEAF=1"), withFlags("--grace", "1m"))
		p.send(callLine("0", "read_x", `{}`))
		p.receive() // so the server is deaf by now
		p.send(callLine("1", "read_hang", `{}`))
		p.await(2)
		pid := p.serverPID()
		p.cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
		p.cmd.Process.Signal(syscall.SIGTERM)
		if code, _ := p.wait(); code != 137 {
			t.Errorf("exit %d", code)
		}
		gone(t, pid)
	})
}

// TestProxyKilled: the server is killed too, and the log shows that the session was
// interrupted.
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll, withEnv("FAKE_DEAF=1"))
	p.send(callLine("1", "read_hang", `{}`))
	p.await(1)
	pid := p.serverPID()
	p.cmd.Process.Kill()
	p.wait()
	gone(t, pid)
	if n := len(p.entries("runner.policy.session_finished")); n != 0 {
		t.Errorf("%d lines session_finished", n)
	}
}

// TestGroup: processes that the server started are ended with it.
func TestGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := proxyCommand(t, dir, allowAll)
	c.Args = append(c.Args[:len(c.Args)-1], "/bin/sh", "-c", "sleep 300 & echo $! >pid; exec cat >/dev/null")
	c.Stdin = strings.NewReader("")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/pid")
	var pid int
	if fmt.Sscan(string(b), &pid); err != nil || pid == 0 {
		t.Fatal(err, string(b))
	}
	gone(t, pid)
}

// TestLogFails: once the log cannot be written, nothing is forwarded any more.
func TestLogFails(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, allowAll, func(c *exec.Cmd) {
		c.ExtraFiles = []*os.File{w}
		c.Args[4] = "fd:3"
	})
	w.Close()
	lines := json.NewDecoder(r)
	var e struct{ Type string }
	if err := lines.Decode(&e); err != nil || e.Type != "runner.policy.session_started" {
		t.Fatal(e, err)
	}
	p.send(callLine("1", "read_x", `{}`))
	p.receive()
	p.await(1)
	for range 2 {
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	for i, line := range []string{
		callLine("2", "read_x", `{}`), callLine("3", "read_x", `{}`), `{"jsonrpc":"2.0","id":4,"method":"ping"}`,
	} {
		p.send(line)
		if got := p.receive(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"error"`, i+2)) || !strings.Contains(got, schemas.ReasonLogFailed) {
			t.Error(got)
		}
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	if code, rest := p.end(); code != 125 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	if got := p.seen(); strings.Count(got, "\n") != 1 {
		t.Errorf("the server saw %s", got)
	}
}

// TestLogFull: a line that was written only in part counts as not written.
func TestLogFull(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll, func(c *exec.Cmd) {
		// The limit of the file size, in blocks of 512 bytes, cuts off the first decision.
		c.Args = append([]string{"/bin/sh", "-c", `ulimit -f 1; exec "$@"`, "sh"}, c.Args...)
		c.Path = "/bin/sh"
	})
	p.send(callLine("1", "read_x", `{"path":"/`+strings.Repeat("a", 600)+`"}`))
	if got := p.receive(); !strings.Contains(got, schemas.ReasonLogFailed) {
		t.Error(got)
	}
	if code, _ := p.end(); code != 125 {
		t.Errorf("exit %d", code)
	}
	if p.seen() != "" {
		t.Errorf("the server saw %s", p.seen())
	}
}

// TestFIFO: the log may be a FIFO; one without a reader is refused.
func TestFIFO(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := dir + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := proxyCommand(t, dir, allowAll)
	c.Args[4] = fifo
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "no process has this FIFO open") {
		t.Errorf("%v %s", err, out)
	}
	r, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c = proxyCommand(t, dir, allowAll)
	c.Args[4] = fifo
	c.Stdin = strings.NewReader(callLine("1", "read_x", `{}`) + "\n")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(r)
	for _, want := range []string{"runner.policy.session_started", "assay.tool.decision", "runner.policy.call_finished", "runner.policy.session_finished"} {
		var e struct{ Type string }
		if err := lines.Decode(&e); err != nil || e.Type != want {
			t.Errorf("%v, %s, want %s", err, e.Type, want)
		}
	}
}

// TestLogStalls: a log that nobody reads delays calls, but not the end of the session.
func TestLogStalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := dir + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := startProxy(t, allowAll, withFlags("--grace", "200ms"), func(c *exec.Cmd) {
		for i, a := range c.Args {
			if a == "--log" {
				c.Args[i+1] = fifo
			}
		}
	})
	if _, err := json.NewDecoder(r).Token(); err != nil { // the session has started
		t.Fatal(err)
	}
	fill, err := syscall.Open(fifo, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fill)
	for _, n := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = syscall.Write(fill, make([]byte, n))
		}
	}
	p.send(callLine("1", "read_x", `{}`))
	time.Sleep(100 * time.Millisecond)
	if p.seen() != "" {
		t.Errorf("the server saw %s", p.seen())
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code, _ := p.wait(); code != 125 || !strings.Contains(p.stderr.String(), "accepts no more lines") {
		t.Errorf("exit %d, %s", code, p.stderr.String())
	}
}
