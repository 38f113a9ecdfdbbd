//go:build linux

package cmd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBlindSpots: where an earlier design of record and replay was blind, one test each. That a signature is one is shown by
// TestSignatureByHand.
func TestBlindSpots(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	program := python(t)
	for _, x := range []struct {
		name, script string
		code         int
		stdout       string   // what it has to say, in the record
		member       string   // of the archive
		has          []string // what is in it
	}{
		{"a program that ignores proxies", `import socket
s = socket.create_connection(("count.test", 80)); s.sendall(b"GET /n HTTP/1.1\r\nHost: count.test\r\nConnection: close\r\n\r\n"); print(s.makefile().read().splitlines()[-1])`,
			0, "call 1\n", schemas.MemberExchanges, []string{`"host":"count.test"`, `"path":"/n"`}},
		{"deletions, and directories that were replaced", `import os, shutil
os.remove("gone"); shutil.rmtree("d"); os.mkdir("d"); open("d/new", "w").write("n"); shutil.rmtree("e")
print(sorted(os.listdir("d")), os.path.exists("e"))`,
			0, "['new'] False\n", schemas.MemberChanges, []string{`"op":"delete","path":"gone"`, `"op":"delete","path":"d/in"`, `"op":"add","path":"d/new"`, `"op":"delete","path":"e","`, `"op":"delete","path":"e/in"`}},
		{"a replay from the base, not from what was made of it", `import os
print(os.path.exists("log")); open("log", "a").write("x"); open("gone", "a").write("more"); print(open("gone").read(), len(open("log").read()))`,
			0, "False\nbasemore 1\n", schemas.MemberChanges, []string{`"op":"add","path":"log"`, `"op":"modify","path":"gone"`}},
		{"clock and random numbers of the replay", `import time, random, uuid, os
print(time.time(), random.random(), uuid.uuid4(), os.environ["AGENT_DETERMINISTIC"]); time.sleep(0.01); print(time.time())`,
			0, "", schemas.MemberClock, []string{`"op":"sleep"`}},
		{"a run that fails", `import sys; print("said"); open("kept", "w"); sys.exit(7)`, 7, "said\n", schemas.MemberEvents, []string{`"exit_code":7`}},
		{"requests that are equal", `import urllib.request as u
for n in range(3): print(u.urlopen("http://count.test/same").read().decode())`,
			0, "call 1\ncall 2\ncall 3\n", schemas.MemberExchanges, []string{`"seq":2,"decision":"allow"`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			file, o := blindRun(t, program, x.script)
			if o.code != x.code || x.stdout != "" && o.stdout != x.stdout {
				t.Fatal(o)
			}
			text := string(openArchive(t, file).members[x.member])
			for _, want := range x.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s has no %s:\n%s", x.member, want, text)
				}
			}
			if r, o := replay(t, file); o.code != 0 || r.Verdict != "equal" {
				t.Error(o)
			}
		})
	}
	t.Run("no time of the machine in the record of the clock", func(t *testing.T) {
		script := `import time; time.sleep(0.01); print(time.time())`
		a, _ := blindRun(t, program, script)
		b, _ := blindRun(t, program, script)
		x, y := openArchive(t, a).members, openArchive(t, b).members
		for _, member := range []string{schemas.MemberClock, schemas.MemberRunClock} {
			if len(x[member]) == 0 || string(x[member]) != string(y[member]) {
				t.Errorf("%s: %s\nand %s", member, x[member], y[member])
			}
		}
	})
	t.Run("a boundary without a record is not covered", func(t *testing.T) {
		dir := t.TempDir()
		file, metrics := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "metrics.json")
		if o := call(t, command(t, "runner-exec", "--no-kernel", "--replayable", "--archive", file, "--", tool("runner-net"), "deny", "--", tool("runner-box"), "--", "true")); o.code != 0 {
			t.Fatal(o)
		}
		if r, o := replay(t, file, "--metrics", metrics); o.code != 0 || r.Verdict != "equal" {
			t.Fatal(o)
		}
		if said := string(testkit.Read(t, metrics)); !strings.Contains(said, `{"name":"clock","covered":false,"why":"not recorded"}`) || !strings.Contains(said, `"boundary_coverage":0.6`) {
			t.Error(said)
		}
		if table := string(testkit.Read(t, metrics+".md")); !strings.Contains(table, "| replay_fidelity | 1.000 of 1 replays |\n| boundary_coverage | 0.600 |\n| mean_revert_time_ms | ") || !strings.Contains(table, "| clock | no: not recorded |\n") {
			t.Error(table)
		}
	})
	t.Run("where no box can be made nothing is run", func(t *testing.T) {
		base := t.TempDir()
		testkit.Must(t, exec.Command("cp", tool("runner-box"), base).Run())
		if o := call(t, command(t, "runner-box", "--base", base, "--fallback", "copy", "--", "sh", "-c", "exec ./runner-box -- echo ran")); o.code != 125 || o.stdout != "" || !strings.Contains(o.stderr, "box_no_namespaces") {
			t.Error(o)
		}
	})
}

// blindRun records a Python script behind all wrappers, with a service that counts its calls. The service is gone when it returns.
func blindRun(t *testing.T, program, script string) (file string, o outcome) {
	t.Helper()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "call %d", calls.Add(1)) }))
	defer s.Close()
	dir := t.TempDir()
	testkit.Must(t, os.MkdirAll(dir+"/base/d", 0o755))
	testkit.Must(t, os.MkdirAll(dir+"/base/e", 0o755))
	for name, text := range map[string]string{"gone": "base", "d/in": "in", "e/in": "in", "a.py": script} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "base", name), []byte(text), 0o644))
	}
	testkit.Must(t, os.WriteFile(dir+"/allow.yaml", []byte("schema: runner.net_allow.v0\nrules: [{id: count, host: count.test}]\n"), 0o644))
	file = filepath.Join(dir, "run.tar.gz")
	cmd := command(t, "runner-exec", slices.Concat([]string{"--no-kernel", "--replayable", "--run-id", "r", "--archive", file, "--", tool("runner-net"), "record", "--allow", dir + "/allow.yaml", "--upstream", "count.test:80=" + s.Listener.Addr().String(), "--"},
		[]string{tool("runner-box"), "--base", dir + "/base", "--fallback", "copy", "--", tool("runner-clock"), "--seed", "5", "--start", "2026-01-01T00:00:00Z", "--", program, "a.py"})...)
	cmd.Env = append(os.Environ(), "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1")
	return file, call(t, cmd)
}
