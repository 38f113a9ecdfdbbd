//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// chains are wrappers before a command.
func chains() map[string][]string {
	box, network, clock := []string{tool("runner-box"), "--"}, []string{tool("runner-net"), "deny", "--"}, []string{tool("runner-clock"), "--only", "node", "--"}
	return map[string][]string{"box": box, "network": network, "clock": clock, "network, box": slices.Concat(network, box), "box, network": slices.Concat(box, network),
		"network, box, clock": slices.Concat(network, box, clock), "clock, network": slices.Concat(clock, network)}
}

// TestWrappedScope: with wrappers before it a command has the same kernel lines and the same processes as without, as root and as
// somebody else; the wrappers themselves are nowhere in the record.
func TestWrappedScope(t *testing.T) {
	requireBPF(t)
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	clear := func() { exec.Command("rm", "-rf", "/tmp/one", "/tmp/two").Run() }
	defer clear()
	script := `cd /; read x </etc/hostname; (echo one >/tmp/one; exec /bin/true) & wait; bash -c 'exec 3<>/dev/tcp/127.0.0.1/9' 2>/dev/null; mv /tmp/one /tmp/two; cat /none 2>/dev/null; exit 7`
	for _, user := range []string{"root", "4242:4242"} {
		flags := []string{"--run-id", "r", "--canonical-pids", "--user", user}
		clear()
		plain := measure(t, flags, "bash", "-c", script)
		want := openArchive(t, plain.path)
		for name, chain := range chains() {
			t.Run(user+" "+name, func(t *testing.T) {
				clear()
				m := measure(t, flags, slices.Concat(chain, []string{"bash", "-c", script})...)
				if m.code != plain.code || m.code != 7 {
					t.Fatal(m.outcome)
				}
				a := openArchive(t, m.path)
				for _, member := range []string{"layers/kernel.ndjson", "layers/process.ndjson", "layers/filtered.ndjson"} {
					got, want := a.members[member], want.members[member]
					if !bytes.Equal(got, want) {
						t.Errorf("%s:\n%s\nexpected\n%s", member, got, want)
					}
				}
				if bytes.Contains(a.members["layers/kernel.ndjson"], []byte("runner-")) {
					t.Error("a wrapper is in the record")
				}
			})
		}
	}
}

// TestWrappedEnds: how a wrapped command ended is known, a wrapper that fails leaves no archive, and signals, timeouts and survivors are as
// without wrappers.
func TestWrappedEnds(t *testing.T) {
	requireBPF(t)
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	for name, chain := range chains() {
		t.Run(name, func(t *testing.T) {
			for _, x := range []struct {
				want   int
				script string
				says   string
			}{
				{0, "true", `"exit_code":0,"signal":null`}, {137, "exit 137", `"exit_code":137,"signal":null`}, {137, "kill -9 $$", `"exit_code":null,"signal":9`}, {125, "exit 125", `"exit_code":125,"signal":null`},
			} {
				m := measure(t, nil, slices.Concat(chain, []string{"sh", "-c", x.script})...)
				if m.code != x.want {
					t.Fatal(m.outcome)
				}
				if a := openArchive(t, m.path); !bytes.Contains(a.members["events.ndjson"], []byte(x.says)) {
					t.Errorf("%s", a.members["events.ndjson"])
				}
			}
			for _, command := range [][]string{{"/none"}, {"/etc/passwd"}} {
				if m := measure(t, nil, slices.Concat(chain, command)...); m.code != 127 && m.code != 126 || testkit.Exists(m.path) {
					t.Errorf("%q: %v", command, m.outcome)
				}
			}
			var m *measured
			for limit := 300 * time.Millisecond; limit < 20*time.Second; limit *= 4 {
				m = measure(t, []string{"--timeout", limit.String(), "--grace", "200ms"}, slices.Concat(chain, []string{"sh", "-c", "trap '' TERM; sleep 100; sleep 100"})...)
				if m.code != 143 { // which says that the machine was busy: the limit came before the trap
					break
				}
			}
			if m.code != 137 || !testkit.Exists(m.path) {
				t.Error(m.outcome)
			}
			m = measure(t, []string{"--grace", "200ms"}, slices.Concat(chain, []string{"sh", "-c", "sleep 1000 & exit 0"})...)
			if m.code != 0 {
				t.Error(m.outcome)
			}
		})
	}
	for _, args := range [][]string{{"--harden"}, {"--no-new-privs"}} {
		if m := measure(t, args, tool("runner-box"), "--", "true"); m.code != 2 || !strings.Contains(m.stderr, "wrapper") || testkit.Exists(m.path) {
			t.Errorf("%q: %v", args, m.outcome)
		}
	}
}

// TestWrapperKilled: when a wrapper is killed, nothing of the command goes on, and there is no archive.
func TestWrapperKilled(t *testing.T) {
	requireBPF(t)
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	for name, chain := range chains() {
		begin := time.Now()
		c, m := measuring(t, nil, slices.Concat(chain, []string{"sh", "-c", "echo; exec sleep 4712"})...)
		r, err := c.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, c.Start())
		_, err = r.Read(make([]byte, 1))
		testkit.Must(t, err)
		var children []byte
		tasks, err := filepath.Glob("/proc/" + strconv.Itoa(c.Process.Pid) + "/task/*/children")
		testkit.Must(t, err)
		for _, task := range tasks {
			list, err := os.ReadFile(task)
			testkit.Must(t, err)
			children = append(children, list...)
		}
		killed := false
		for _, pid := range strings.Fields(string(children)) {
			text, err := os.ReadFile("/proc/" + pid + "/cmdline")
			if err == nil && bytes.HasPrefix(text, []byte(chain[0]+"\x00")) {
				n := 0
				for _, d := range pid {
					n = n*10 + int(d-'0')
				}
				testkit.Must(t, syscall.Kill(n, syscall.SIGKILL))
				killed = true
			}
		}
		if !killed {
			t.Fatalf("%s: no wrapper among %s", name, children)
		}
		gone := make(chan struct{})
		go func() { r.Read(make([]byte, 1)); close(gone) }()
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Errorf("%s: the command goes on", name)
		}
		if err := c.Wait(); err == nil || testkit.Exists(m.path) {
			t.Errorf("%s: %v, and an archive: %v", name, err, testkit.Exists(m.path))
		}
		t.Logf("%s: %v", name, time.Since(begin))
	}
}
