package policy

import (
	"context"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestRequests: the default reaches requests that are no tool calls, and rules for them
// are about URIs and methods.
func TestRequests(t *testing.T) {
	const allow, deny, none, bad, protocol = schemas.ReasonAllowRule, schemas.ReasonDenyRule, schemas.ReasonDenyDefault, schemas.ReasonEvalError, schemas.ReasonAllowProtocol
	p := rules(t, `
rules: [{id: t, allow: "*"}]
resources:
  - {id: no, deny: [/srv/a/secret, "docs://secret*"], reason: not this}
  - {id: docs, allow: [/srv/a, "docs://*"]}
methods:
  - {id: p, allow: ["prompts/*", completion/complete]}
`)
	for _, x := range []struct{ method, params, want string }{
		{"initialize", `{}`, protocol},
		{"ping", `null`, protocol},
		{"resources/list", `{}`, protocol},
		{"roots/list", `{}`, protocol},
		{"resources/read", `{"uri":"file:///srv/a/x"}`, allow},
		{"resources/read", `{"uri":"file://localhost/srv/a/x"}`, allow},
		{"resources/subscribe", `{"uri":"file:///srv/a/secret/x"}`, deny},
		{"resources/read", `{"uri":"file:///srv/a/../../etc/shadow"}`, none},
		{"resources/read", `{"uri":"file:///srv/a/%2e%2e/%2e%2e/etc/shadow"}`, none},
		{"resources/read", `{"uri":"file:///etc/shadow"}`, none},
		{"resources/read", `{"uri":"file:/srv/a/x"}`, bad},
		{"resources/read", `{"uri":"FILE:///srv/a/x"}`, bad},
		{"resources/read", `{"uri":"docs://x/y"}`, allow},
		{"resources/read", `{"uri":"docs://secrets"}`, deny},
		{"resources/read", `{"uri":"docs://x/../secrets"}`, bad},
		{"resources/read", `{"uri":"docs://x/%2E%2e/secrets"}`, bad},
		{"resources/read", `{"uri":"docs://x y"}`, bad},
		{"resources/read", `{"uri":7}`, bad},
		{"resources/new", `{"uri":"http://x"}`, none},
		{"prompts/get", `{"name":"x"}`, allow},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"x"}}`, allow},
		{"sampling/createMessage", `{}`, none},
		{"elicitation/create", `{}`, none},
		{"x/unknown", `{}`, none},
	} {
		d := p.DecideRequest(context.Background(), &Request{Method: x.method, Params: args(t, x.params)})
		if d.Reason != x.want || d.Allow != strings.HasPrefix(d.Reason, "P_ALLOW") || d.Allow != (d.Say == "") {
			t.Errorf("%s %s: %s (%s), want %s", x.method, x.params, d.Reason, d.Say, x.want)
		}
	}
	if d := rules(t, "default: allow").DecideRequest(context.Background(), &Request{Method: "sampling/createMessage"}); d.Reason != schemas.ReasonAllowDefault {
		t.Error(d.Reason)
	}
	for _, s := range []string{"resources: [{id: a, allow: 'file:///srv/*'}]", "methods: [{id: a, allow: tools/call}]", "methods: [{id: a, deny: ping}]", "methods: [{id: a, allow: 'prompts/(get|list)'}]", "resources: {}"} {
		if _, err := Parse("p", []byte("schema: runner.policy.v0\n"+s)); err == nil {
			t.Errorf("%s is accepted", s)
		}
	}
}
