//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// TestIDs: numbers and strings are different ids, and an id that is in flight cannot be
// used again.
func TestIDs(t *testing.T) {
	t.Parallel()
	p := startProxy(t, readOnly)
	p.send(callLine("1", "read_hang", `{}`), callLine(`"1"`, "read_hang", `{}`), `{"jsonrpc":"2.0","id":0,"method":"ping"}`)
	p.receive()
	for _, line := range []string{callLine("1", "read_x", `{}`), callLine(`"\u0031"`, "write_x", `{}`), `{"jsonrpc":"2.0","id":1,"method":"ping"}`} {
		p.send(line)
		if got := p.receive(); !strings.Contains(got, schemas.ReasonIDInUse) {
			t.Error(got)
		}
	}
	p.await(3)
	p.send(callLine("0", "read_x", `{}`)) // its first use has been answered
	if got := p.receive(); !strings.Contains(got, `"ok"`) {
		t.Error(got)
	}
	p.end()
	if got := p.outcomes(); got != "completed client_gone client_gone" {
		t.Error(got)
	}
	if n := strings.Count(p.seen(), "\n"); n != 4 {
		t.Errorf("the server saw %s", p.seen())
	}
}

// TestCancel: a cancelled request keeps its id until it is answered; a cancellation of
// a denied call is not forwarded.
func TestCancel(t *testing.T) {
	t.Parallel()
	p := startProxy(t, readOnly)
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	p.send(callLine("1", "read_hang", `{}`), cancel("1"), cancel("1"), cancel(`"1"`), callLine("2", "write_x", `{}`), cancel("2"), callLine("1", "read_x", `{}`))
	for _, want := range []string{"P_DENY_RULE", schemas.ReasonIDInUse} {
		if got := p.receive(); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
	if code, rest := p.end(); code != 0 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	if want := strings.Join([]string{callLine("1", "read_hang", `{}`), cancel("1"), cancel("1"), cancel(`"1"`)}, "\n") + "\n"; p.seen() != want {
		t.Errorf("the server saw %s", p.seen())
	}
	// The call ends when the cancellation is forwarded, once.
	if got := p.outcomes(); got != schemas.OutcomeCancelled {
		t.Error(got)
	}
}

// TestSilentCall: a call without an id is decided and recorded too, as the server may
// execute it.
func TestSilentCall(t *testing.T) {
	t.Parallel()
	p := startProxy(t, readOnly)
	p.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_hang"}}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write_x"}}`)
	if code, rest := p.end(); code != 0 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	d := p.entries("assay.tool.decision")
	if len(d) != 2 || d[0]["tool_call_id"] != "mcp:fake:notification:0" || d[1]["tool_call_id"] != "mcp:fake:notification:1" || d[1]["outcome"] != "denied" {
		t.Errorf("%v", d)
	}
	if strings.Contains(p.seen(), "write_x") || p.outcomes() != "client_gone" {
		t.Errorf("%s %s", p.seen(), p.outcomes())
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	p := startProxy(t, allowAll)
	var b strings.Builder
	for i := range maxInFlight {
		fmt.Fprintln(&b, callLine(fmt.Sprint(i), "read_hang", `{}`))
	}
	p.send(b.String() + callLine(`"more"`, "read_x", `{}`))
	if got := p.receive(); !strings.Contains(got, schemas.ReasonTooManyCalls) || !strings.Contains(got, `"id":"more"`) {
		t.Error(got)
	}
	// A cancelled request makes room for another.
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`, callLine(`"more"`, "read_x", `{}`))
	if got := p.receive(); !strings.Contains(got, `"ok"`) {
		t.Error(got)
	}
	p.end()
	if p.finished()["unfinished"] != 0. {
		t.Errorf("%v", p.finished())
	}
}

// TestInFlight: the memory for cancelled requests and for states is bounded.
func TestInFlight(t *testing.T) {
	tab := newInFlight()
	for i := range 2 * maxForgotten {
		e := otherRequest(fmt.Sprint(i))
		if code := tab.room(jsonrpc.Message{Kind: jsonrpc.Request, ID: e.id}); code != "" {
			t.Fatal(i, code)
		}
		tab.add(e)
		tab.cancel(e.id.Key)
		tab.resumable([]byte(fmt.Sprint(i)), e.call)
	}
	if len(tab.byID) != maxForgotten || len(tab.cancelled) != maxForgotten || len(tab.rounds) != maxRounds || len(tab.states) != maxRounds {
		t.Error(len(tab.byID), len(tab.cancelled), len(tab.rounds), len(tab.states))
	}
	if r, n := tab.resumed([]byte("0"), ""); r != nil || n != 1 {
		t.Error("the oldest state is still known")
	}
	if r, n := tab.resumed([]byte("2000"), ""); r == nil || n != 1 {
		t.Error(r, n)
	}
}

// TestWrongCalls: a wrong call gets an explanation and a hint before anything is started.
func TestWrongCalls(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir + "/" + name
	}
	good, bad := file("good.yaml", allowAll), file("bad.yaml", "schema: runner.policy.v0\nruels: []\n")
	cut, log := file("cut", `{"x":1`), dir+"/log"
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"--log " + log + " -- true", 2, "--policy FILE is missing"},
		{"--policy " + good + " --log= -- true", 2, "--log FILE is missing"},
		{"--policy " + good + " --log " + log, 2, "SERVER is missing"},
		{"--policy " + good + " --log fd:1 -- true", 2, "descriptor above 1"},
		{"--policy " + good + " --log - -- true", 2, "for a file with this name write ./-"},
		{"--policy " + good + " --log /dev/stdout -- true", 125, "carries the protocol"},
		{"--policy " + good + " --log fd:x -- true", 2, "descriptor above 1"},
		{"--policy " + good + " --log " + log + " --deny-as x -- true", 2, "expected result or error"},
		{"--policy " + good + " --log " + log + " --name a/b -- true", 2, "--name"},
		{"--policy " + good + " --log " + log + " --max-line 1 -- true", 2, "--max-line"},
		{"--policy " + good + " --log " + log + " --max-line 9G -- true", 2, "--max-line"},
		{"--policy " + good + " --log " + log + " --grace 5 -- true", 2, "write a duration with its unit"},
		{"--policy " + good + " --log " + log + " --colour -- true", 2, "--help"},
		{"--policy " + good + " --log fd:99 -- true", 125, "descriptor 99 is not open"},
		{"--policy " + good + " --log " + dir + " -- true", 125, "is a directory"},
		{"--policy " + good + " --log " + cut + " -- true", 125, "its last line is incomplete"},
		{"--policy " + bad + " --log " + log + " -- true", 3, "bad.yaml:2:"},
		{"--policy " + dir + "/none --log " + log + " -- true", 5, "there is no policy file"},
		{"--policy " + good + " --log " + log + " -- no-such-server-" + "here", 127, "command not found; nothing was run"},
		{"--policy " + good + " --log " + log + " -- " + good, 126, ": cannot run: "},
		{"--check " + bad, 3, "bad.yaml:2:"},
		{"--check " + dir + "/none", 5, "there is no policy file"},
		{"--check " + good + " x", 2, "--check takes one file"},
	} {
		cmd := exec.Command(os.Args[0], strings.Fields(c.args)...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, logVariable+"=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, "RUNNER_POLICY_TEST_AS=proxy")
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || out.Len() > 0 || !strings.Contains(errs.String(), c.say) || !strings.HasPrefix(errs.String(), "runner-policy: error: ") {
			t.Errorf("%s\nexit %d, want %d\nstdout %s\nstderr %s", c.args, code, c.code, out.String(), errs.String())
		}
	}
	if b, err := os.ReadFile(log); err == nil && len(b) > 0 {
		t.Errorf("the log holds %s", b)
	}
}

// TestCheck: --check explains a policy on standard output.
func TestCheck(t *testing.T) {
	file := t.TempDir() + "/p.yaml"
	if err := os.WriteFile(file, []byte(readOnly), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--check", file}); code != tool.ExitOK || errs.Len() > 0 || !strings.Contains(out.String(), "no-writes") {
		t.Errorf("exit %d, %s %s", code, out.String(), errs.String())
	}
	const open = "schema: runner.policy.v0\nrules:\n  - {id: o, allow: read_x, args: [{at: $.path, under: /}], only: false}\n"
	if err := os.WriteFile(file, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--check", file}); code != tool.ExitOK || !strings.Contains(errs.String(), "p.yaml:3: rule o: only: false") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

// TestEnvironment: the log's name may come from the environment, and is not passed on.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := proxyCommand(t, dir, allowAll, withEnv(logVariable+"="+dir+"/log", "OTHER=1"))
	c.Args = []string{c.Args[0], "--policy", c.Args[2], "--", "/bin/sh", "-c", `env >seen`}
	c.Stdin = strings.NewReader("")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	b, _ := os.ReadFile(dir + "/seen")
	if strings.Contains(string(b), logVariable) || !strings.Contains(string(b), "OTHER=1") {
		t.Errorf("%s", b)
	}
	if b, _ := os.ReadFile(dir + "/log"); strings.Count(string(b), "\n") != 2 || !strings.Contains(string(b), `"name":"sh"`) {
		t.Errorf("%s", b)
	}
}

// TestSharedLog: several proxies append to one file, only whole lines.
func TestSharedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var proxies []*exec.Cmd
	for range 4 {
		c := proxyCommand(t, dir, allowAll)
		var in strings.Builder
		for i := range 100 {
			fmt.Fprintln(&in, callLine(fmt.Sprint(i), "read_x", `{"path":"/`+strings.Repeat("p", 3000)+`"}`))
		}
		c.Stdin = strings.NewReader(in.String())
		proxies = append(proxies, c)
	}
	for _, c := range proxies {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range proxies {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	p := &proxy{t: t, logFile: dir + "/log"}
	if d, f := p.entries("assay.tool.decision"), p.entries("runner.policy.call_finished"); len(d) != 400 || len(f) != 400 {
		t.Error(len(d), len(f))
	}
}

// TestCheckCall: --call shows rule by rule how one call is decided.
func TestCheckCall(t *testing.T) {
	file := t.TempDir() + "/p.yaml"
	const text = "schema: runner.policy.v0\nrules:\n  - {id: w, deny: write_*}\n  - {id: a, allow: read_*, args: [{at: $.path, under: /srv/a}]}\n  - {id: b, allow: read_*, args: [{at: $.path, under: /srv/b}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		`{"name":"read_x","arguments":{"path":"/srv/b/x"}}`: "  1. w: not about this tool\n  2. a: does not match: not $.path is, or lies below, /srv/a\n  3. b: matches, and allows\n" +
			"decision: allow (P_ALLOW_RULE, rule b)\ntargets: /srv/b/x\nlooked at: /srv/b/x\n",
		`{"method":"tools/call","params":{"name":"read_x","arguments":{"path":"/srv/a/x","paths":[]}}}`: "  2. a: matches, but denies: it does not name the argument \"$.paths\"\ndecision: deny (P_DENY_ARGUMENTS, rule a)\n",
		`{"name":"read_x","arguments":{"path":"x"}}`:                                                    "cannot be evaluated: the argument at $.path: it is relative",
		`{"method":"sampling/createMessage"}`:                                                           "decision: deny (P_DENY_DEFAULT)\n",
	} {
		var out, errs strings.Builder
		if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--check", file, "--call", call}); code != tool.ExitOK || !strings.Contains(out.String(), want) {
			t.Errorf("exit %d, %s\n%s%s", code, call, out.String(), errs.String())
		}
	}
	var out, errs strings.Builder
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--check", file, "--call", `[]`}); code != tool.ExitUsage {
		t.Errorf("exit %d", code)
	}
}

// TestHeld: over HTTP no server is held to a directory, so relative paths cannot be clear.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/p.yaml"
	if err := os.WriteFile(file, []byte("schema: runner.policy.v0\nrelative_to: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--policy", file, "--log", dir + "/log", "--http", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9/mcp"}); code != tool.ExitUsage || !strings.Contains(errs.String(), "relative_to") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}
