package allow

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const head = "schema: runner.net_allow.v0\nrules:\n"

// TestDecide: what each rule allows, and what it does not.
func TestDecide(t *testing.T) {
	rules, err := Parse("f", []byte(head+`- {id: api, host: api.test, methods: [GET, POST], paths: [/v1/, /exact]}
- {id: below, host: "*.below.test", port: 8443}
- {id: all, host: all.test}
- {id: six, host: "2001:DB8::1"}
- {id: db, host: db.test, port: 5432, tcp: true}
`))
	testkit.Must(t, err)
	for _, x := range []struct {
		q    Request
		want string
	}{
		{Request{"api.test", 443, "GET", "/v1/x"}, "api"}, {Request{"api.test", 80, "POST", "/v1/"}, "api"}, {Request{"api.test", 443, "PUT", "/v1/x"}, ""},
		{Request{"api.test", 443, "GET", "/v1"}, ""}, {Request{"api.test", 443, "GET", "/exact"}, "api"}, {Request{"api.test", 443, "GET", "/exact/x"}, ""},
		{Request{"api.test", 443, "GET", "/v1/../admin"}, ""}, {Request{"api.test", 443, "GET", "/v1/%2e%2e/admin"}, ""}, {Request{"api.test", 443, "GET", "/v1/..%2Fadmin"}, ""},
		{Request{"api.test", 443, "GET", "/v1//x"}, ""}, {Request{"api.test", 443, "GET", "/v1/..;/x"}, ""}, {Request{"api.test", 443, "GET", `/v1/\..`}, ""}, {Request{"api.test", 443, "GET", "/v1/%252e"}, ""},
		{Request{"api.test", 8080, "GET", "/v1/x"}, ""}, {Request{"x.api.test", 443, "GET", "/v1/x"}, ""},
		{Request{"a.below.test", 8443, "GET", "/"}, "below"}, {Request{"a.b.below.test", 8443, "PATCH", "/.."}, "below"}, {Request{"below.test", 8443, "GET", "/"}, ""}, {Request{"xbelow.test", 8443, "GET", "/"}, ""},
		{Request{"all.test", 80, "DELETE", "/a/../b"}, "all"}, {Request{"2001:db8::1", 80, "GET", "/"}, "six"},
		{Request{"db.test", 5432, "", ""}, "db"}, {Request{"db.test", 5432, "GET", "/"}, ""}, {Request{"all.test", 80, "", ""}, ""},
	} {
		got := ""
		if u := rules.Decide(x.q); u != nil {
			got = u.ID
		}
		if got != x.want {
			t.Errorf("%+v: %q, expected %q", x.q, got, x.want)
		}
	}
	if (*Rules)(nil).Decide(Request{"a", 80, "GET", "/"}) != nil {
		t.Error("no rules allow something")
	}
}

// TestBad: each fault has its place, and what was expected.
func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		"": "f:1:1", "rules: [{host: a}]": "schema is missing", head + "- {hosts: a}": "host", head + "- {host: A.test}": "in lower case", head + "- {host: a:80}": "the port is a key",
		head + "- {host: a, port: 0}": "1 to 65535", head + "- {host: a, port: x}": "1 to 65535", head + "- {host: a, methods: [get]}": "upper-case", head + "- {host: a, paths: [v1]}": "begin with a slash",
		head + "- {host: a, paths: [/a/../b]}": "without . and ..", head + "- {host: a, tcp: true}": "a port", head + "- {host: a, port: 1, tcp: yes please}": "true or false",
		head + "- {id: x, host: a}\n- {id: x, host: b}": "twice", "schema: runner.net_allow.v0\nrules: []": "no rules", head + "- {id: 'a b', host: a}": "1 to 64",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}

// TestInward: which rules are for hosts that a command reaches in its own network.
func TestInward(t *testing.T) {
	rules, err := Parse("f", []byte(head+`- {id: out, host: api.test}
- {id: in-name, host: localhost}
- {id: in-name-bytes, host: localhost, port: 5432, tcp: true}
- {id: in-below, host: "*.localhost", port: 8080}
- {id: in-one-below, host: a.localhost}
- {id: in-four, host: 127.0.0.1, port: 8080}
- {id: in-another, host: 127.1.2.3}
- {id: out-bytes, host: 127.0.0.1, port: 5432, tcp: true}
- {id: in-six, host: "::1"}
- {id: in-mapped, host: "::ffff:127.0.0.1"}
- {id: in-any, host: 0.0.0.0}
- {id: in-any-bytes, host: "::", port: 1, tcp: true}
- {id: out-like-it, host: localhost.test}
- {id: out-ends-so, host: mylocalhost}
- {id: out-address, host: 10.0.0.1}
`))
	testkit.Must(t, err)
	in := map[string]bool{}
	for _, u := range rules.Inward() {
		in[u.ID] = true
	}
	for _, u := range rules.List {
		if in[u.ID] != strings.HasPrefix(u.ID, "in-") {
			t.Errorf("%s, a rule for %s: %v", u.ID, u.Host, in[u.ID])
		}
	}
	if (*Rules)(nil).Inward() != nil {
		t.Error("no rules have one")
	}
}

// FuzzParse: nothing makes it panic, and what is allowed is a request of the host that the rule names.
func FuzzParse(f *testing.F) {
	f.Add([]byte(head+"- {host: a.test, paths: [/x/]}"), "a.test", "/x/y")
	f.Fuzz(func(t *testing.T, b []byte, host, path string) {
		rules, err := Parse("f", b)
		if err != nil {
			return
		}
		if u := rules.Decide(Request{host, 80, "GET", path}); u != nil && u.Host != host && !(strings.HasPrefix(u.Host, "*.") && strings.HasSuffix(host, u.Host[1:])) {
			t.Errorf("%q is allowed by %+v", host, u)
		}
	})
}
