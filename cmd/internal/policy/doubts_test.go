package policy

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestForeignPatterns: a regular expression or a shell's list is no pattern of tools.
func TestForeignPatterns(t *testing.T) {
	for _, s := range []string{"read_(a|b)", "{read,list}_x", "^read$", "read+", "read[ab]", `read\d`, "a|b", "$x"} {
		if _, err := Parse("p.yaml", []byte("schema: runner.policy.v0\nrules:\n  - {id: a, allow: '"+s+"'}\n")); err == nil || !strings.Contains(err.Error(), "p.yaml:3:") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestWarnings: what a file says and hardly means.
func TestWarnings(t *testing.T) {
	for _, x := range []struct{ rules, want string }{
		{"- {id: a, allow: 'read.*'}", "needs a dot"},
		{"- {id: a, deny: '*'}\n- {id: b, allow: x}", "rule b: no call reaches it: rule a"},
		{"- {id: a, allow: ['re*', y]}\n- {id: b, allow: ['read_*', y]}", "rule b: no call reaches it"},
		{"- {id: a, allow: ['re?d_*']}\n- {id: b, allow: ['read_*', y]}", ""},
		{"- {id: a, allow: 'r*', when: 'true'}\n- {id: b, allow: read}", ""},
		{"- {id: a, allow: x, args: [{at: $.p, under: /no/such/dir}]}", "there is no /no/such/dir"},
		{"- {id: a, allow: x, args: [{at: $.p, under: /}]}", ""},
		{"- {id: a, allow: x, when: '.arguments | length'}", "neither true nor false"},
		{"- {id: a, allow: x, when: '.arguments.a + 1'}", "neither true nor false"},
		{"- {id: a, allow: x, when: 'if .tool == \"x\" then 1 else \"y\" end'}", "neither true nor false"},
		{"- {id: a, allow: x, when: '.arguments.a | test(\"x\")'}", ""},
		{"- {id: a, allow: x, when: '.arguments.limit < 100'}", "at: $.limit, number"},
		{"- {id: a, allow: x, when: 'true and (100 >= .arguments.limit)'}", ".arguments.limit is less"},
		{"- {id: a, allow: x, when: '.arguments.limit > 100'}", ""},
		{"- {id: a, allow: x, when: '.tool == \"x\"', only: false}", "only: false"},
	} {
		p := rules(t, "rules:\n"+x.rules)
		if got := strings.Join(p.Warnings(), "\n"); (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, expected %q", x.rules, got, x.want)
		}
	}
}

// TestTypedConditions: a value that is not there, null or of another type is not a small
// number.
func TestTypedConditions(t *testing.T) {
	const yes, no, bad = schemas.ReasonAllowRule, schemas.ReasonDenyDefault, schemas.ReasonEvalError
	for _, x := range []struct{ condition, args, want string }{
		{"number: {max: 100}", `{"a":99.5}`, yes},
		{"number: {max: 100}", `{"a":100}`, yes},
		{"number: {max: 100}", `{"a":1e3}`, no},
		{"number: {max: 100}", `{"a":null}`, bad},
		{"number: {max: 100}", `{}`, no},
		{"number: {max: 100}", `{"a":"5"}`, bad},
		{"number: {max: 100}", `{"a":-1e9}`, yes},
		{"number: {min: -2, max: 100}", `{"a":-3}`, no},
		{"number: {min: -2, max: 100}", `{"a":-1.99}`, yes},
		{"number: {min: 0}", `{"a":-0.1}`, no},
		{"number: {max: 100}", `{"a":100.000000000000000000001}`, bad},
		{"number: {}", `{"a":1e400}`, yes},
		{"integer: {max: 10}", `{"a":1.0}`, yes},
		{"integer: {max: 10}", `{"a":1.5}`, bad},
		{"integer: {}", `{"a":true}`, bad},
		{"boolean: {}", `{"a":false}`, yes},
		{"boolean: {}", `{"a":"false"}`, bad},
		{"string: {like: 'v?.*', max: 4}", `{"a":"v1.2"}`, yes},
		{"string: {like: 'v?.*', max: 4}", `{"a":"v1.23"}`, no},
		{"string: {like: [x, y]}", `{"a":"z"}`, no},
		{"string: {}", `{"a":1}`, bad},
	} {
		d := decide(t, rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, "+x.condition+"}]}]"), "x", x.args, "/")
		if d.Reason != x.want {
			t.Errorf("%s of %s: %s (%s), want %s", x.condition, x.args, d.Reason, d.Say, x.want)
		}
	}
	for _, s := range []string{"number: {min: 2, max: 1}", "number: {min: x}", "boolean: {max: 1}", "string: {like: 'a|b'}", "number: 5"} {
		if _, err := Parse("p", []byte("schema: runner.policy.v0\nrules: [{id: r, allow: x, args: [{at: $.a, "+s+"}]}]")); err == nil {
			t.Errorf("%s is accepted", s)
		}
	}
}

// TestUnclearNames: what some readers make other paths of.
func TestUnclearNames(t *testing.T) {
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: /srv}]}]")
	for path, want := range map[string]string{
		`/srv/{a,../../etc/shadow}`: schemas.ReasonEvalError, `/srv/{a..b}`: schemas.ReasonEvalError, `/srv/a\u0007b`: schemas.ReasonEvalError,
		`/srv/a\nb`: schemas.ReasonEvalError, `/srv/a%0ab`: schemas.ReasonEvalError, `/srv/{id}.ts`: schemas.ReasonAllowRule, `/srv/a,b`: schemas.ReasonAllowRule,
	} {
		if d := decide(t, p, "x", `{"a":"`+path+`"}`, "/"); d.Reason != want {
			t.Errorf("%s: %s (%s)", path, d.Reason, d.Say)
		}
	}
}

// TestURLInTo: a URL where a destination is expected is told what to type.
func TestURLInTo(t *testing.T) {
	_, err := Parse("p", []byte("schema: runner.policy.v0\nrules: [{id: r, allow: x, args: [{at: $.a, to: 'https://example.com/x'}]}]"))
	if err == nil || !strings.Contains(err.Error(), "type example.com:443") {
		t.Error(err)
	}
}
