//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

var (
	maskTimes   = regexp.MustCompile(`"((?:start|end|ktime)_ns|proxy_pid|server_pid)":[0-9]+`)
	maskSpace   = regexp.MustCompile(`,"pid_ns":[0-9]+`) // only on Linux
	maskCwd     = regexp.MustCompile(`"cwd":"[^"]*"`)
	maskSession = regexp.MustCompile(`"(session|id)":"[0-9a-f]{16}`)
)

func masked(log string) string {
	log = maskSpace.ReplaceAllString(log, "")
	log = maskCwd.ReplaceAllString(log, `"cwd":"CWD"`)
	return maskSession.ReplaceAllString(maskTimes.ReplaceAllString(log, `"$1":0`), `"$1":"SESSION`)
}

// exchange sends lines one by one and notes the answers. The end of a call is recorded
// after its answer, so it waits for that record.
func exchange(p *proxy, lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		p.send(l)
		fmt.Fprintf(&b, "> %s\n< %s\n", l, p.receive())
		for n := 0; strings.Count(p.log(), `"decision":"allow"`) > strings.Count(p.log(), "call_finished")+strings.Count(p.log(), "request_finished"); n++ {
			if time.Sleep(time.Millisecond); n > 10000 {
				p.t.Fatalf("the end of %s is not recorded", l)
			}
		}
	}
	return b.String()
}

// TestLogGolden shows each form of each line of the log, in the old protocol.
func TestLogGolden(t *testing.T) {
	p := startProxy(t, readOnly, withFlags("--call-id-key", "org.example/call"), withEnv("FAKE_EXIT=3"))
	said := exchange(p,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		callLine("1", "read_x", `{"path":"/etc/../etc/hosts"}`),
		callLine("2", "read_fail", `{}`),
		callLine("3", "read_error", `{}`),
		callLine("4", "write_x", `{"path":"/etc/hosts"}`),
		callLine(`"four \"4\""`, "other", `{}`),
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"claudecode/toolUseId":"toolu_1","callId":"x"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"claudecode/toolUseId":7,"callId":"call_1"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"_codex_apps":{"call_id":"call_2"}},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"_meta":{"copilot/toolCallId":"call_3"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"_meta":{"tool_call_id":"call_4"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"_meta":{"tool_call_id":"","org.example/call":"call_5"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"read_x","arguments":{"_meta":{"tool_call_id":"call_6"}}}}`,
		`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"_meta":{"tool_call_id":"a\u0007b"},"name":"read_x"}}`,
		`{"jsonrpc":"2.0","id":13,"method":"ping","method":"ping"}`,
		`{"jsonrpc":"2.0","id":14,"method":"tools/list"}`,
	)
	if code, rest := p.end(); code != 3 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	testkit.Golden(t, "testdata/log.golden", []byte(masked(p.log())))
	testkit.Golden(t, "testdata/said.golden", []byte(said))
}

// TestModern uses the stateless protocol: a denial says that it is complete, and one
// call may consist of several requests.
func TestModern(t *testing.T) {
	p := startProxy(t, readOnly)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","callId":"c1"}`
	call := func(id, name, more string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{` + meta + `,"name":"` + name + `"` + more + `}}`
	}
	said := exchange(p,
		call("1", "write_x", ""),
		call("2", "read_round", ""),
		call("3", "read_round", `,"inputResponses":{},"requestState":"state \u00e9 1"`),
		strings.Replace(call("4", "read_round", `,"requestState":"s2"`), "c1", "forged", 1),
		call("5", "read_round", `,"requestState":"s2"`), // sent again
		call("6", "read_x", `,"requestState":"s2"`),     // another tool: another call
		call("7", "read_x", `,"requestState":"never said"`),
		call("8", "write_x", `,"requestState":"s2"`),
	)
	if code, rest := p.end(); code != 0 || rest != "" {
		t.Errorf("exit %d, %q", code, rest)
	}
	testkit.Golden(t, "testdata/modern-log.golden", []byte(masked(p.log())))
	testkit.Golden(t, "testdata/modern-said.golden", []byte(said))
}

func TestDenyAsError(t *testing.T) {
	p := startProxy(t, readOnly, withFlags("--deny-as", "error"))
	testkit.Golden(t, "testdata/deny-as-error.golden", []byte(exchange(p, callLine("1", "write_x", `{}`))))
	p.end()
}

// TestUntouched: if everything is allowed, both sides get each other's bytes unchanged.
func TestUntouched(t *testing.T) {
	p := startProxy(t, allowAll)
	lines := []string{
		` {"params":{"_meta":{"progressToken":0,"x":1e400}},"method":"initialize" , "id":0,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\r",
		`{"jsonrpc":"2.0","id":"a\u0062","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"tools/call","params":{"name":"read_x","arguments":{"n":1.0,"s":"\u00e9é\/"},"_meta":{"z":{},"a":[]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":0.5}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never there"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"null","method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"read_x","arguments":null}}`,
		`{"jsonrpc":"2.0","id":7,"method":"x/unknown","params":{"name":"n","Other":{"a":1,"A":2}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"read_lines\",\"arguments\":{\"lines\":[" +
			`"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}",` +
			`"{ \"method\":\"notifications/message\",\"jsonrpc\":\"2.0\",\"params\":{\"data\":\"\\ud800\"}}\r",` +
			`"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}",` +
			`"{\"id\":ID,\"result\":{\"x\":[1.50,1e5]},\"jsonrpc\":\"2.0\"}"]}}}`,
	}
	p.send(lines...)
	direct := runDirect(t, strings.Join(lines, "\n")+"\n")
	if code, rest := p.end(); code != 0 || rest != direct {
		t.Errorf("exit %d, the client saw\n%s\nwithout the proxy\n%s", code, rest, direct)
	}
	if got := p.seen(); got != strings.Join(lines, "\n")+"\n" {
		t.Errorf("the server saw %q", got)
	}
	if r := p.entries("runner.policy.message_refused"); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
}

// TestServerLines: lines of the server that are not messages do not reach the client,
// and a call whose answer was refused still ends.
func TestServerLines(t *testing.T) {
	for _, c := range []struct{ line, code, said string }{
		{`listening on port 1`, schemas.ReasonBadJSON, ""},
		{``, schemas.ReasonBadJSON, ""},
		{`[{"jsonrpc":"2.0","id":ID,"result":{}}]`, schemas.ReasonBatch, "refused"},
		{`{"jsonrpc":"2.0","id":ID,"result":{"x":[NaN,-Infinity,"\"NaN"]}}`, schemas.ReasonBadJSON, "refused"},
		{`{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`, schemas.ReasonNotJSONRPC, "refused"},
		{`{"id":ID,"result":{}}`, schemas.ReasonNotJSONRPC, "refused"},
		{`{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"isError":false}}`, schemas.ReasonDuplicateKey, "refused"},
		{`{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"iserror":false}}`, schemas.ReasonCaseKey, "refused"},
		{`{"jsonrpc":"2.0","id":ID,"id":2,"result":{}}`, schemas.ReasonDuplicateKey, ""},
		{`{"jsonrpc":"2.0","id":ID.0,"result":{}}`, schemas.ReasonBadID, ""},
		{`{"jsonrpc":"2.0","id":"ID","result":{}}`, schemas.ReasonBadID, "refused"},
		{`{"jsonrpc":"2.0","id":4711,"result":{}}`, schemas.ReasonBadID, ""},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, schemas.ReasonBadID, ""},
		{`{"jsonrpc":"2.0","id":ID,"result":{}} x`, schemas.ReasonBadJSON, ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, allowAll)
			end := `{"jsonrpc":"2.0","method":"notifications/end"}`
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_lines","arguments":{"lines":[%q,%q]}}}`, c.line, end))
			line := p.receive()
			if c.said != "" {
				if !strings.Contains(line, c.code) || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,"error"`) {
					t.Error(line)
				}
				line = p.receive()
			}
			if line != end {
				t.Error(line)
			}
			p.end()
			r, f := p.entries("runner.policy.message_refused"), p.entries("runner.policy.call_finished")
			if len(r) != 1 || r[0]["reason_code"] != c.code || r[0]["direction"] != "server" {
				t.Errorf("%v", r)
			}
			want := map[string]string{"": "client_gone", "refused": "error"}[c.said]
			if len(f) != 1 || f[0]["outcome"] != want {
				t.Errorf("%v, want %s", f, want)
			}
		})
	}
}
