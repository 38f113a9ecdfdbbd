//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// checkLog reads every line of the log as the correlator does.
func checkLog(t *testing.T, p *proxy) {
	t.Helper()
	for line := range strings.Lines(p.log()) {
		if _, err := schemas.ParseDecisionLine([]byte(strings.TrimSuffix(line, "\n"))); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// TestDecisionsSayWhatWasChecked: only what a condition of the rule read was looked at.
func TestDecisionsSayWhatWasChecked(t *testing.T) {
	p := startProxy(t, "schema: runner.policy.v0\nrules:\n  - {id: a, allow: read_a, args: [{at: $.path, under: /srv}], expects: /var/x}\n  - {id: b, allow: echo}\n")
	p.send(callLine("1", "read_a", `{"path":"/srv/../srv/a"}`), callLine("2", "echo", `{"message":"/etc/shadow"}`), callLine("3", "no", `{"z":1e2,"b":[true]}`))
	for range 3 {
		p.receive()
	}
	p.end()
	checkLog(t, p)
	got := fmt.Sprint(func() (out []string) {
		for _, d := range p.entries(schemas.LogDecision) {
			out = append(out, fmt.Sprint(d["targets"], " ", d["checked"]))
		}
		return out
	}())
	if want := "[[/srv/a /var/x] [/srv/a /var/x] [/etc/shadow] <nil> [] <nil>]"; got != want {
		t.Errorf("targets and checked are %s, expected %s", got, want)
	}
	// printf '{"b":[true],"z":100}' | sha256sum
	if got := p.entries(schemas.LogDecision)[2]["arguments_digest"]; got != "sha256:9110d8040b59f54ed74efde86099076c8193b731e60ea25c33221c54fe4afc24" {
		t.Errorf("the digest is %v", got)
	}
	if got := p.entries(schemas.LogSessionStarted)[0]["cwd"]; got == "" || got == nil {
		t.Error("the session does not say where it began")
	}
}

// TestRequestsAreRecorded: requests of both sides that are no tool calls have a decision
// and an end.
func TestRequestsAreRecorded(t *testing.T) {
	p := startProxy(t, allowAll, withEnv(`FAKE_FIRST={"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?"}}`+"\n"))
	p.receive()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/shadow"}}`)
	p.receive()
	p.send(`{"jsonrpc":"2.0","id":"7","result":{}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	p.receive()
	p.end()
	checkLog(t, p)
	got := map[string]int{} // the lines of two directions have no order
	for _, d := range p.entries(schemas.LogRequestDecided) {
		got[fmt.Sprintln(d["request"], d["direction"], d["method"], d["target"], d["decision"], d["targets"])]++
	}
	for _, d := range p.entries(schemas.LogRequestFinished) {
		got[fmt.Sprintln(d["request"], d["outcome"])]++
	}
	for _, d := range p.entries(schemas.LogMessageRefused) {
		got[fmt.Sprintln(d["direction"], d["reason_code"])]++
	}
	for _, want := range []string{
		"0 server elicitation/create <nil> allow []\n", "1 client resources/read file:///etc/shadow allow [/etc/shadow]\n", "2 client ping <nil> allow []\n",
		"0 completed\n", "1 completed\n", "2 completed\n", "client M_BAD_ID\n",
	} {
		if got[want] != 1 {
			t.Errorf("%d of %s in %v", got[want], want, got)
		}
	}
	if strings.Contains(p.seen(), `"7"`) {
		t.Error("the server saw an answer to no request")
	}
}

// TestRootsAreDecided: the server gets only roots that the policy names.
func TestRootsAreDecided(t *testing.T) {
	const file = "schema: runner.policy.v0\nrules:\n  - {id: a, allow: read_a, args: [{at: $.path, under: /srv/a}]}\n"
	for _, c := range []struct{ policy, result, want string }{
		{file, `{"roots":[{"uri":"file:///srv/a/x"}]}`, "allow P_ALLOW_ROOTS [file:///srv/a/x]"},
		{file, `{"roots":[{"uri":"file:///srv/a"},{"uri":"file:///etc"}]}`, "deny P_DENY_ROOTS [file:///srv/a file:///etc]"},
		{file, `{"roots":[{"uri":"file:///srv/a/../../etc"}]}`, "deny P_DENY_ROOTS [file:///srv/a/../../etc]"},
		{file, `{"roots":[{"uri":"file:///srv/a/%2e%2e/%2e%2e/etc"}]}`, "deny P_DENY_ROOTS [file:///srv/a/%2e%2e/%2e%2e/etc]"},
		{file, `{"Roots":[{"uri":"file:///etc"}]}`, "deny P_DENY_ROOTS []"},
		{file, `{"roots":[{"URI":"file:///etc"}]}`, "deny P_DENY_ROOTS []"},
		{file, `{"roots":[]}`, "allow P_ALLOW_ROOTS []"},
		{allowAll, `{"roots":[{"uri":"file:///etc"}]}`, "allow P_ALLOW_ROOTS [file:///etc]"},
	} {
		p := startProxy(t, c.policy, withEnv(`FAKE_FIRST={"jsonrpc":"2.0","id":"r","method":"roots/list"}`+"\n"))
		p.receive()
		p.send(`{"jsonrpc":"2.0","id":"r","result":` + c.result + `}`)
		p.send(callLine("9", "read_z", `{"path":"sub/x"}`)) // denied by the first of the policies
		p.receive()
		p.end()
		checkLog(t, p)
		if below := slices.Contains(p.entries(schemas.LogDecision)[0]["targets"].([]any), "/srv/a/x/sub/x"); below != strings.Contains(c.want, "allow P_ALLOW_ROOTS [file:///srv/a/x]") {
			t.Errorf("%s: the targets of a denied call are %v", c.result, p.entries(schemas.LogDecision)[0]["targets"])
		}
		d := p.entries(schemas.LogRootsDecided)
		if len(d) != 1 {
			t.Fatalf("%s: %d decisions", c.result, len(d))
		}
		if got := fmt.Sprint(d[0]["decision"], " ", d[0]["reason_code"], " ", d[0]["roots"]); got != c.want {
			t.Errorf("%s: %s, expected %s", c.result, got, c.want)
		}
		if forwarded := strings.Contains(p.seen(), `"roots"`); forwarded != strings.HasPrefix(c.want, "allow") || !strings.Contains(p.seen(), `"id":"r"`) {
			t.Errorf("%s: the server saw %s", c.result, p.seen())
		}
	}
}

// TestRootsOfTheModernProtocol: there the client gives its roots in the next request.
func TestRootsOfTheModernProtocol(t *testing.T) {
	p := startProxy(t, "schema: runner.policy.v0\nrules:\n  - {id: a, allow: read_a, args: [{at: $.path, under: /srv/a}]}\n  - {id: b, allow: read_x}\n")
	for _, roots := range []string{"file:///etc", "file:///srv/a"} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_x","inputResponses":{"x":{"roots":[{"uri":"` + roots + `"}]}},"requestState":"s"}}`)
		if got := p.receive(); strings.Contains(got, "P_DENY_ROOTS") != (roots == "file:///etc") {
			t.Errorf("%s: %s", roots, got)
		}
	}
	p.end()
	checkLog(t, p)
	if strings.Contains(p.seen(), "file:///etc") || len(p.entries(schemas.LogRootsDecided)) != 2 {
		t.Errorf("the server saw %s", p.seen())
	}
}

// TestSchemasOfTheServer: what tools/list says about arguments counts in decisions.
func TestSchemasOfTheServer(t *testing.T) {
	p := startProxy(t, "schema: runner.policy.v0\nrules:\n  - {id: a, allow: read_s, args: [{at: $.path, under: /srv/a}], also: [$.more]}\n")
	p.send(callLine("1", "read_s", `{"path":"/srv/a/x","more":1}`), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	p.receive()
	p.receive()
	p.send(callLine("3", "read_s", `{"path":"/srv/a/x","more":1}`))
	if got := p.receive(); !strings.Contains(got, "P_DENY_ARGUMENTS") {
		t.Error(got)
	}
	p.end()
	checkLog(t, p)
}

// TestRelativeTo: the server is started where relative paths are taken to start.
func TestRelativeTo(t *testing.T) {
	dir := t.TempDir()
	p := startProxy(t, "schema: runner.policy.v0\nrelative_to: "+dir+"\nrules:\n  - {id: a, allow: read_a, args: [{at: $.path, under: "+dir+"}]}\n", withEnv(`FAKE_FIRST={"jsonrpc":"2.0","id":"r","method":"roots/list"}`+"\n"))
	p.receive()
	p.send(callLine("1", "read_a", `{"path":"f"}`), `{"jsonrpc":"2.0","id":"r","result":{"roots":[{"uri":"file://`+dir+`/below"}]}}`)
	if got := p.receive(); strings.Contains(got, "isError") {
		t.Error(got)
	}
	p.end()
	if cwd := p.entries(schemas.LogSessionStarted)[0]["cwd"]; cwd != dir {
		t.Errorf("it began in %v", cwd)
	}
	if d := p.entries(schemas.LogRootsDecided); len(d) != 1 || d[0]["decision"] != "deny" {
		t.Errorf("roots %v: the server would take relative paths for others", d)
	}
}

// TestOtherRequestsAreDecided: the default deny reaches what is no tool call, in both
// directions, with and without an id.
func TestOtherRequestsAreDecided(t *testing.T) {
	p := startProxy(t, readOnly, withEnv(`FAKE_FIRST={"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`+"\n"))
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/shadow"}}`, `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"x"}}`} {
		p.send(line)
		if got := p.receive(); !strings.Contains(got, `"code":403`) || !strings.Contains(got, "P_DENY_DEFAULT") {
			t.Error(got)
		}
	}
	p.send(`{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"file:///etc/shadow"}}`, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	p.receive()
	p.end()
	checkLog(t, p)
	if seen := p.seen(); strings.Contains(seen, "shadow") || strings.Contains(seen, "prompts") || !strings.Contains(seen, `"id":7,"error":{"code":403`) {
		t.Errorf("the server saw %s", seen)
	}
	if n := strings.Count(fmt.Sprint(p.entries(schemas.LogRequestDecided)), "decision:deny"); n != 4 {
		t.Errorf("%d denials", n)
	}
}

// TestAudit: everything is forwarded, and the log says what the policy denies.
func TestAudit(t *testing.T) {
	p := startProxy(t, readOnly, withFlags("--audit"), withEnv(`FAKE_FIRST={"jsonrpc":"2.0","id":"r","method":"roots/list"}`+"\n"))
	p.receive()
	p.send(callLine("1", "write_x", `{}`), callLine("2", "other", `{}`), callLine("3", "read_x", `{}`),
		`{"jsonrpc":"2.0","id":4,"method":"prompts/get"}`, `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":"r","result":{"roots":[{"uri":"file:///etc"}]}}`)
	for range 5 {
		if got := p.receive(); strings.Contains(got, "P_DENY") {
			t.Error(got)
		}
	}
	p.end()
	checkLog(t, p)
	var got []string
	for _, kind := range []string{schemas.LogDecision, schemas.LogRequestDecided, schemas.LogRootsDecided} {
		for _, d := range p.entries(kind) {
			got = append(got, fmt.Sprintln(d["decision"], d["reason_code"], d["would_deny"]))
		}
	}
	slices.Sort(got)
	want := "allow P_ALLOW_AUDIT P_DENY_DEFAULT\nallow P_ALLOW_AUDIT P_DENY_DEFAULT\nallow P_ALLOW_AUDIT P_DENY_ROOTS\nallow P_ALLOW_AUDIT P_DENY_RULE\n" +
		"allow P_ALLOW_PROTOCOL <nil>\nallow P_ALLOW_PROTOCOL <nil>\nallow P_ALLOW_RULE <nil>\n"
	if strings.Join(got, "") != want || !strings.Contains(p.seen(), "file:///etc") || !strings.Contains(p.seen(), "write_x") {
		t.Errorf("%s", got)
	}
}

// TestSuggest: the policy for what an audited session did allows exactly those calls.
func TestSuggest(t *testing.T) {
	did := []string{callLine("1", "write_x", `{"path":"/srv/a","n":1}`), callLine("2", "write_x", `{"n":1.0,"path":"/srv/b"}`), callLine("3", `other\u007bx`, `{}`),
		`{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"x"}}`, `{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"docs://x*"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"file:///srv/c"}}`}
	others := []string{callLine("1", "write_x", `{"path":"/srv/c","n":1}`), callLine("2", "write_x", `{}`), callLine("3", "other", `{}`), callLine("4", `other\u007bx`, `{"a":1}`),
		`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"docs://xy"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///srv/d"}}`}
	p := startProxy(t, readOnly, withFlags("--audit"))
	for _, line := range did {
		p.send(line)
		p.receive()
	}
	p.end()
	var out, errs strings.Builder
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--suggest", p.logFile}); code != 0 {
		t.Fatalf("exit %d, %s", code, errs.String())
	}
	q := startProxy(t, out.String())
	for i, line := range append(did, others...) {
		q.send(line)
		if got := q.receive(); strings.Contains(got, "P_DENY") != (i >= len(did)) {
			t.Errorf("%s: %s\n%s", line, got, out.String())
		}
	}
	q.end()
	checkLog(t, q)
}

// TestRate: calls above the rate of the rule are denied, for each tool.
func TestRate(t *testing.T) {
	p := startProxy(t, "schema: runner.policy.v0\nrules:\n  - {id: few, allow: read_*, rate: 2/hour}\n")
	for i, tool := range []string{"read_a", "read_a", "read_b", "read_a", "read_b", "read_b"} {
		p.send(callLine(fmt.Sprint(i), tool, `{}`))
		if got := p.receive(); strings.Contains(got, "P_DENY_RATE") != (i == 3 || i == 5) {
			t.Errorf("%d: %s", i, got)
		}
	}
	p.end()
	checkLog(t, p)
}

// TestInputRequests: in the modern protocol a server asks in its answer.
func TestInputRequests(t *testing.T) {
	ask := func(method string) string {
		return `{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\",\"inputRequests\":{\"x\":{\"method\":\"` + method + `\"}}}}`
	}
	p := startProxy(t, readOnly+"methods: [{id: e, allow: elicitation/create}]\n")
	for method, allowed := range map[string]bool{"sampling/createMessage": false, "elicitation/create": true, "roots/list": true} {
		p.send(callLine("1", "read_lines", `{"lines":["`+ask(method)+`"]}`))
		if got := p.receive(); strings.Contains(got, method) != allowed || strings.Contains(got, "P_DENY_DEFAULT") == allowed {
			t.Errorf("%s: %s", method, got)
		}
	}
	p.end()
	checkLog(t, p)
}

// TestSuggestForProcesses: what runner-proc decided is no tool of a server.
func TestSuggestForProcesses(t *testing.T) {
	var out, errs strings.Builder
	log := "../../testdata/runs/process-api/policy.log.ndjson"
	file := filepath.Join(t.TempDir(), "log")
	var lines []string
	for line := range strings.Lines(string(testkit.Read(t, log))) {
		var l schemas.LogLine
		if schemas.Unmarshal([]byte(line), &l) == nil && l.Line != "" {
			lines = append(lines, l.Line+"\n")
		}
	}
	testkit.Must(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	if code := app().Call(t.Context(), strings.NewReader(""), &out, &errs, []string{"--suggest", file}); code != 3 || out.Len() > 0 || !strings.Contains(errs.String(), "runner-proc") {
		t.Errorf("%d lines, exit %d, %q, %q", len(lines), code, out.String(), errs.String())
	}
}
