package policy

import (
	"context"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestDecoyArguments: an allow rule is about all arguments, not only about those that it
// looks at.
func TestDecoyArguments(t *testing.T) {
	p := rules(t, `
rules:
  - {id: r, allow: "read_*", args: [{at: $.path, under: /srv/a}]}
  - {id: e, allow: edit, args: [{at: $.path, under: /srv/a}], also: ["$.edits[*].text", $.dry]}
  - {id: l, allow: list, when: '.arguments.limit < 100 and .arguments["x"] == null'}
  - {id: o, allow: open, args: [{at: $.path, under: /srv/a}], only: false}
  - {id: f, allow: free}
`)
	for _, x := range []struct{ tool, args, reason string }{
		{"read_file", `{"path":"/srv/a/ok"}`, schemas.ReasonAllowRule},
		{"read_file", `{"path":"/srv/a/ok","head":null}`, schemas.ReasonAllowRule},
		{"read_file", `{"path":"/srv/a/ok","_meta":{"tool_call_id":"x"}}`, schemas.ReasonAllowRule},
		{"read_file", `{"path":"/srv/a/ok","_meta":{"tool_call_id":"x","path":"/etc/shadow"}}`, schemas.ReasonDenyArguments},
		{"read_multiple_files", `{"path":"/srv/a/ok","paths":["/etc/shadow"]}`, schemas.ReasonDenyArguments},
		{"read_multiple_files", `{"path":"/srv/a/ok","paths":[]}`, schemas.ReasonDenyArguments},
		{"read_file", `{"path":"/srv/a/ok","x":{}}`, schemas.ReasonDenyArguments},
		{"read_file", `{"path":"/etc/x","paths":[]}`, schemas.ReasonDenyDefault},
		{"edit", `{"path":"/srv/a/ok","edits":[{"text":"a"},{"text":{"any":1}}],"dry":true}`, schemas.ReasonAllowRule},
		{"edit", `{"path":"/srv/a/ok","edits":[]}`, schemas.ReasonAllowRule},
		{"edit", `{"path":"/srv/a/ok","edits":[{"text":"a","to":"/etc/x"}]}`, schemas.ReasonDenyArguments},
		{"edit", `{"path":"/srv/a/ok","edits":"/etc/x"}`, schemas.ReasonDenyArguments},
		{"list", `{"limit":1}`, schemas.ReasonAllowRule},
		{"list", `{"limit":1,"at":"/etc"}`, schemas.ReasonDenyArguments},
		{"open", `{"path":"/srv/a/ok","paths":["/etc/shadow"]}`, schemas.ReasonAllowRule},
		{"free", `{"path":"/srv/a/ok","paths":["/etc/shadow"]}`, schemas.ReasonAllowRule},
	} {
		d := decide(t, p, x.tool, x.args, "/")
		if d.Reason != x.reason {
			t.Errorf("%s %s: %s (%s), want %s", x.tool, x.args, d.Reason, d.Say, x.reason)
		}
	}
}

// TestInputSchema: arguments that the tool's own schema does not know are refused, if it
// says which there are.
func TestInputSchema(t *testing.T) {
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.path, under: /srv/a}], also: [$.head]}]")
	for _, x := range []struct{ schema, reason string }{
		{`{"type":"object","properties":{"path":{"type":"string"}}}`, schemas.ReasonDenyArguments},
		{`{"properties":{"path":{}},"additionalProperties":false}`, schemas.ReasonDenyArguments},
		{`{"properties":{"path":{},"head":{}}}`, schemas.ReasonAllowRule},
		{`{"properties":{"path":{}},"additionalProperties":true}`, schemas.ReasonAllowRule},
		{`{"properties":{"path":{}},"additionalProperties":{"type":"number"}}`, schemas.ReasonAllowRule},
		{`{"properties":{"path":{}},"allOf":[{}]}`, schemas.ReasonAllowRule},
		{`{"type":"object"}`, schemas.ReasonAllowRule},
		{`{"additionalProperties":false}`, schemas.ReasonDenyArguments},
		{`7`, schemas.ReasonAllowRule},
		{``, schemas.ReasonAllowRule},
	} {
		d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: args(t, `{"path":"/srv/a/x","head":1}`), Schema: ParseInputSchema([]byte(x.schema))})
		checkDecision(t, p, d)
		if d.Reason != x.reason {
			t.Errorf("%s: %s (%s), want %s", x.schema, d.Reason, d.Say, x.reason)
		}
	}
}

// TestRelativePaths: a relative path is clear only if the policy says what it is relative
// to, and the server was started there.
func TestRelativePaths(t *testing.T) {
	for _, x := range []struct{ head, verb, dir, reason string }{
		{"", "allow", "/srv/a", schemas.ReasonEvalError},
		{"", "deny", "/srv/a", schemas.ReasonEvalError},
		{"relative_to: /srv/a\n", "allow", "/srv/a", schemas.ReasonAllowRule},
		{"relative_to: /srv/a\n", "allow", "", schemas.ReasonEvalError},
		{"relative_to: /srv/a\n", "allow", "/srv/b", schemas.ReasonEvalError},
	} {
		p := rules(t, x.head+"rules: [{id: r, "+x.verb+": x, args: [{at: $.path, under: /srv/a}]}]")
		d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: args(t, `{"path":"shadow"}`), Dir: x.dir})
		if d.Reason != x.reason {
			t.Errorf("%s%s in %q: %s (%s), want %s", x.head, x.verb, x.dir, d.Reason, d.Say, x.reason)
		}
		if x.dir != "" && (len(d.Targets) != 1 || d.Targets[0] != x.dir+"/shadow") {
			t.Errorf("targets %q", d.Targets)
		}
	}
}
