//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const (
	allowAll = "schema: runner.policy.v0\ndefault: allow\n"
	readOnly = "schema: runner.policy.v0\nrules:\n  - id: reads\n    allow: read_*\n  - id: no-writes\n    deny: write_*\n    reason: read only here\n"
)

// proxy is one running proxy with a fake server.
type proxy struct {
	t        *testing.T
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	outFile  *os.File
	stderr   sharedBuffer
	dir      string
	seenFile string
	logFile  string
	waited   bool
}

// sharedBuffer can be read while a program writes to it.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

type proxyOption func(*exec.Cmd)

func withEnv(v ...string) proxyOption { return func(c *exec.Cmd) { c.Env = append(c.Env, v...) } }

func withFlags(v ...string) proxyOption {
	return func(c *exec.Cmd) { c.Args = append(c.Args[:1], append(v, c.Args[1:]...)...) }
}

// proxyCommand is the proxy's command line; this binary is also the server.
func proxyCommand(t *testing.T, dir, policy string, more ...proxyOption) *exec.Cmd {
	t.Helper()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "--policy", file, "--log", filepath.Join(dir, "log"), "--name", "fake", "--", os.Args[0])
	c.Env = append(os.Environ(), "RUNNER_POLICY_TEST_AS=proxy", "FAKE_SEEN="+filepath.Join(dir, "seen"))
	c.Dir = dir
	for _, m := range more {
		m(c)
	}
	return c
}

func startProxy(t *testing.T, policy string, more ...proxyOption) *proxy {
	t.Helper()
	p := &proxy{t: t, dir: t.TempDir()}
	p.seenFile, p.logFile = filepath.Join(p.dir, "seen"), filepath.Join(p.dir, "log")
	p.cmd = proxyCommand(t, p.dir, policy, more...)
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.outFile, p.out = w, r, bufio.NewReaderSize(r, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	watchdog := time.AfterFunc(time.Minute, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		p.cmd.Process.Kill()
		if !p.waited {
			p.cmd.Wait()
		}
		r.Close()
		if t.Failed() {
			t.Logf("stderr: %s\nlog:\n%s", p.stderr.String(), testkit.Clip(p.log()))
		}
	})
	return p
}

func (p *proxy) send(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proxy) receive() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("after %q: %v", testkit.Clip(line), err)
	}
	return strings.TrimSuffix(line, "\n")
}

// end closes the client's side and returns the exit status and the output that was left.
func (p *proxy) end() (int, string) {
	p.t.Helper()
	p.in.Close()
	return p.wait()
}

func (p *proxy) wait() (int, string) {
	p.t.Helper()
	rest, _ := io.ReadAll(p.out)
	p.cmd.Wait()
	p.waited = true
	if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return -int(ws.Signal()), string(rest)
	}
	return p.cmd.ProcessState.ExitCode(), string(rest)
}

func (p *proxy) seen() string { b, _ := os.ReadFile(p.seenFile); return string(b) }
func (p *proxy) log() string  { b, _ := os.ReadFile(p.logFile); return string(b) }

// entries are the log's lines of one type.
func (p *proxy) entries(kind string) (out []map[string]any) {
	p.t.Helper()
	for line := range strings.Lines(p.log()) {
		var e struct {
			Type string         `json:"type"`
			Data map[string]any `json:"data"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		if e.Type == kind {
			out = append(out, e.Data)
		}
	}
	return out
}

func fakeClient() {}

func callLine(id, name, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// runDirect is the server's output without a proxy.
func runDirect(t *testing.T, input string) string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "RUNNER_POLICY_TEST_AS=server")
	c.Stdin = strings.NewReader(input)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
