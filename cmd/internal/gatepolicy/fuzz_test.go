package gatepolicy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// FuzzParse: nothing makes it panic, and a policy that is read and has no programs gives a decision in which what can never
// be done is not allowed, the same each time.
func FuzzParse(f *testing.F) {
	for _, text := range good {
		f.Add([]byte(head+text), "docs/a", "http://a.example/orders?x")
	}
	for _, x := range problems {
		f.Add([]byte(head+x.text), `a\xff`, "https://[::1]:8080/%2e%2e/")
	}
	f.Add([]byte(registry), ".", "http://A.example./orders")
	f.Fuzz(func(t *testing.T, b []byte, path, address string) {
		p, err := Parse("p.yaml", b)
		if err != nil {
			return
		}
		for _, x := range p.rules {
			if x.when != nil {
				return // its process would make this slow
			}
		}
		p.require = nil
		quoted := schemas.AppendQuote(nil, strings.ToValidUTF8(address, ""))
		in := &gate.Input{Files: []gate.File{file(0, "add", path, "file", 1)}, Network: []gate.Exchange{exchange(0, "allow", "GET", "a.example", address)},
			Intents: []gate.Intent{intent(0, intentHTTP, `{"method":"POST","url":`+string(quoted)+`}`), intent(1, "x.y", "{}")}, Calls: []gate.Call{call(0, address, "allow")}}
		d, needs, err := p.Decide(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		again, more, _ := p.Decide(t.Context(), in)
		if d.Bundle.Allowed || d.Intents[1].Allowed || len(needs) != len(more) || len(d.Bundle.Reasons) != len(again.Bundle.Reasons) {
			t.Errorf("%+v", d)
		}
		if back, found := p.Rollback(&in.Intents[0]); found {
			id, err := back.IDFrom(http.Header{"Location": {address}, "X-Id": {path}}, b)
			if err != nil {
				return
			}
			_, to, _, err := back.Request(id)
			u, bad := url.Parse(to)
			if err != nil || bad != nil || strings.Count(u.EscapedPath(), "/") != strings.Count(back.rule.path, "/") {
				t.Errorf("%q: %s, %v, %v", id, to, err, bad)
			}
		}
	})
}

// FuzzGlob: a pattern without wildcards matches itself and nothing else, and no pattern takes long.
func FuzzGlob(f *testing.F) {
	f.Add("docs/**", "docs/a/b")
	f.Add(`a\xff\*?`, "a*/x")
	f.Add("**/*a*a*a*a/**/b", strings.Repeat("a/", 200))
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := parseGlob(pattern, true)
		if err != nil {
			return
		}
		is := g.match(path)
		if raw, err := schemas.Untext(pattern); err == nil && !strings.ContainsAny(pattern, "*?") && is != (string(raw) == path) {
			t.Errorf("%q matches %q: %v", pattern, path, is)
		}
	})
}

// FuzzAnswer: nothing makes it panic, and an answer that denies the whole, or does not name an item, allows nothing of it.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(good1))
	f.Add([]byte(strings.Replace(good1, `"intents"`, `"files":[],"intents"`, 1)))
	f.Add([]byte(strings.ReplaceAll(good1, "true", "false")))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := all()
		d, needs, err := NewWasm(nil, nil, says(b)).Decide(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := schemas.Marshal(d); err != nil {
			t.Fatal(err)
		}
		every := d.Files[0].Allowed && d.Intents[0].Allowed && d.Network[0].Allowed && d.Calls[0].Allowed
		if d.Bundle.Allowed && !every || d.Bundle.Allowed == (len(d.Bundle.Reasons) > 0) || d.Bundle.RequiresApproval != (len(needs) == 1) {
			t.Errorf("%s: %+v", b, d)
		}
		if d.Bundle.Allowed && (!strings.Contains(string(b), `true`) || !strings.Contains(string(b), `intents`)) {
			t.Errorf("%s is allowed", b)
		}
	})
}
