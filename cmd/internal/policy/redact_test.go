package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestRedact: what is taken out, and that nothing of it is in the rest.
func TestRedact(t *testing.T) {
	for _, x := range []struct{ at, arguments, rest, out string }{
		{"$.token", `{"token":"s","path":"/a"}`, `{"path":"/a"}`, `[{$.token s}]`},
		{"$.token", `{"path":"/a"}`, `{"path":"/a"}`, `[]`},
		{"$.token", `{"token":null}`, `{"token":null}`, `[]`},
		{"$.token", `{"token":false}`, `{}`, `[{$.token false}]`},
		{"$.token", `{"token":{"a":["s",1.0]}}`, `{}`, `[{$.token map[a:[s 1.0]]}]`},
		{`$["a b"].c`, `{"a b":{"c":"s","d":2}}`, `{"a b":{"d":2}}`, `[{$["a b"].c s}]`},
		{"$.a.b.c", `{"a":{"b":"s"},"x":1}`, `{"a":{},"x":1}`, `[{$.a.b.c s}]`},
		{"$.a.b", `{"a":["s"],"x":1}`, `{"x":1}`, `[{$.a.b [s]}]`},
		{"[$.a.b, $.a]", `{"a":{"b":1,"c":2}}`, `{}`, `[{$.a.b 1} {$.a map[c:2]}]`},
	} {
		at := "[" + quoteAt(x.at) + "]"
		if strings.HasPrefix(x.at, "[") {
			at = x.at
		}
		p := rules(t, "redact: "+at+"\ndefault: allow\n")
		v := args(t, x.arguments)
		rest, out := p.Redact(v)
		if b, _ := json.Marshal(rest); string(b) != x.rest || fmt.Sprint(out) != x.out {
			t.Errorf("%s of %s: %s %v, expected %s %s", x.at, x.arguments, b, out, x.rest, x.out)
		}
		if !reflect.DeepEqual(v, args(t, x.arguments)) {
			t.Errorf("%s: the arguments are now %v", x.at, v)
		}
	}
}

func quoteAt(s string) string { return "'" + s + "'" }

// TestRedactedTargets: no part of a redacted value is a target, in calls of either decision, and that one named
// something is told. Conditions read it as before.
func TestRedactedTargets(t *testing.T) {
	p := rules(t, `redact: [$.path, $.command]
rules:
  - {id: work, allow: "*", args: [{at: $.path, under: /srv}], also: [$.command, $.to]}
`)
	for _, x := range []struct {
		arguments string
		allow     bool
		targets   []string
		cut       bool
	}{
		{`{"path":"/srv/secret","to":"/srv/b"}`, true, []string{"/srv/b"}, true},
		{`{"path":"/etc/secret","to":"/srv/b"}`, false, []string{"/srv/b"}, true},
		{`{"path":"/srv/b","to":"/srv/b"}`, true, []string{"/srv/b"}, false},
		{`{"command":"cat /etc/secret","to":"/srv/b"}`, false, []string{"/srv/b"}, true},
		{`{"path":"/srv/b","command":"no name","to":"/srv/b"}`, true, []string{"/srv/b"}, false},
	} {
		d := p.Decide(context.Background(), &Call{Tool: "t", Arguments: args(t, x.arguments), Dir: "/"})
		if d.Allow != x.allow || !slices.Equal(d.Targets, x.targets) || d.TargetsCut != x.cut {
			t.Errorf("%s: %v %q %v", x.arguments, d.Allow, d.Targets, d.TargetsCut)
		}
	}
}
