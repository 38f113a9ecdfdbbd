package parties

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	allowAll = "schema: runner.policy.v0\ndefault: allow\n"
	noSecret = "schema: runner.policy.v0\ndefault: allow\nrules:\n  - id: no-secret\n    deny: sec*\n    reason: not for agents\n"
)

// saw is what a client sees of its server when nothing is denied.
func saw(p party) []string {
	tools := "tools ask echo secret slow"
	if strings.Contains(p.name, "js-server") {
		tools = "tools echo secret slow"
	}
	return []string{
		tools, "echo ok é\u2028\"\\\t😀", "secret ok not for agents", "slow ok slow", "progress", "cancelled", "after ok still here",
	}
}

// TestTransparent: with a policy that allows all, neither side can notice the proxy. Each
// side receives, byte for byte, what the other sends, and both send what they send
// without a proxy.
func TestTransparent(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			with, direct := p.converse(t, allowAll), p.converse(t, "")
			for _, v := range []conversation{with, direct} {
				if want := saw(p); !slices.Equal(v.said, want) {
					t.Errorf("the client saw\n%q, not\n%q", v.said, want)
				}
			}
			for _, way := range []string{".in", ".out"} {
				client, server := heard(t, filepath.Join(with.dir, "client"+way)), heard(t, filepath.Join(with.dir, "server"+way))
				if string(client) != string(server) {
					t.Errorf("%s is not the same on both sides:\n%s\n%s", way, client, server)
				}
				if other := settled(t, direct, way); !slices.Equal(other, settled(t, with, way)) {
					t.Errorf("%s is not the same without the proxy:\n%s\n%s", way, server, strings.Join(other, ""))
				}
			}
		})
	}
}

var cancelled = regexp.MustCompile(`"requestId":([0-9]+)`)

// settled are the lines that the server received or sent and that are the same in every
// session: sorted, because a cancellation may cross the next call, and without the answer
// to the cancelled call, which is optional.
func settled(t *testing.T, v conversation, way string) (out []string) {
	t.Helper()
	lines := slices.Sorted(strings.Lines(string(heard(t, filepath.Join(v.dir, "server"+way)))))
	if way == ".in" {
		return lines
	}
	id := cancelled.FindSubmatch(heard(t, filepath.Join(v.dir, "server.in")))
	if id == nil {
		t.Fatal("nothing was cancelled")
	}
	answer := regexp.MustCompile(`"id":` + string(id[1]) + `[,}]`)
	return slices.DeleteFunc(lines, answer.MatchString)
}

// sawDenied checks what a client says where the policy denies the tool secret.
func sawDenied(t *testing.T, p party, said []string) {
	t.Helper()
	want := saw(p)
	want[0] = strings.Replace(want[0], " secret", "", 1)
	want[2] = "secret error P_DENY_RULE"
	if !slices.Equal(said, want) {
		t.Errorf("the client saw\n%q, not\n%q", said, want)
	}
}

// TestDenied: the client does not see the tool and gets the reason of a denial, and the
// server gets nothing of the call. Everything else passes unchanged.
func TestDenied(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			v := p.converse(t, noSecret)
			sawDenied(t, p, v.said)
			at := func(name string) []byte { return heard(t, filepath.Join(v.dir, name)) }
			if left := without(t, at("client.in"), at("server.in")); len(left) != 1 || !strings.Contains(left[0], `"name":"secret"`) {
				t.Errorf("not forwarded: %q", left)
			}
			var list, denial int
			for _, line := range without(t, at("client.out"), passed(t, at("client.out"), at("server.out"))) {
				switch {
				case strings.Contains(line, `"tools":[`):
					list++
				case strings.Contains(line, denialKey):
					denial++
				default:
					t.Errorf("the proxy's own: %s", line)
				}
			}
			if list != 1 || denial != 1 {
				t.Errorf("%d lists and %d denials are the proxy's own", list, denial)
			}
			decided(t, at("log"))
		})
	}
}

// passed are the lines of the server that the client received unchanged.
func passed(t *testing.T, client, server []byte) (out []byte) {
	t.Helper()
	for line := range strings.Lines(string(server)) {
		if strings.Contains(string(client), line) {
			out = append(out, line...)
		} else if !strings.Contains(line, `"tools":[`) {
			t.Errorf("the client did not hear %s", line)
		}
	}
	return out
}

// decided: the log has each call once, with the id of its _meta, and its end.
func decided(t *testing.T, log []byte) {
	t.Helper()
	decidedAs(t, log, "deny")
}

// decidedAs is decided with what was decided about the tool secret.
func decidedAs(t *testing.T, log []byte, secret string) {
	t.Helper()
	decisions, ends := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(log)) {
		var e struct {
			Type string
			Data struct {
				ToolCallID       string `json:"tool_call_id"`
				ToolCallIDSource string `json:"tool_call_id_source"`
				Decision         string
				Outcome          string
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch id := e.Data.ToolCallID; e.Type {
		case "assay.tool.decision":
			decisions[id] += e.Data.Decision
			if e.Data.ToolCallIDSource == "jsonrpc_id" {
				t.Errorf("%s was declared: %s", id, line)
			}
		case "runner.policy.call_finished":
			ends[id] += e.Data.Outcome
		}
	}
	for id, want := range map[string]string{"tc_echo": "allow", "tc_secret": secret, "tc_slow": "allow", "tc_cut": "allow", "tc_after": "allow"} {
		if decisions[id] != want {
			t.Errorf("decision of %s: %q, not %q", id, decisions[id], want)
		}
		if want == "allow" && id != "tc_cut" && ends[id] != "completed" {
			t.Errorf("outcome of %s: %q", id, ends[id])
		}
	}
	if ends["tc_cut"] == "" {
		t.Error("the cancelled call has no end")
	}
}
