package gatepolicy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// all has an item of each class.
func all() *gate.Input {
	code := 0
	return &gate.Input{Context: gate.Context{Stage: gate.StagePlan}, RunID: "r", Evidence: gate.Evidence{Complete: true, ExitCode: &code},
		Files: []gate.File{file(0, "add", "a", "file", 1)}, Intents: []gate.Intent{request(0, "GET", "http://a/")},
		Network: []gate.Exchange{exchange(0, "allow", "GET", "a", "/")}, Calls: []gate.Call{call(0, "read", "allow")}}
}

// TestDefault: the default is about each item of each class that no rule matches.
func TestDefault(t *testing.T) {
	for text, want := range map[string]string{
		"":                            `{"allowed":false,"requiresApproval":false,"reasons":["denied_by_default"]}`,
		"default: deny\n":             `{"allowed":false,"requiresApproval":false,"reasons":["denied_by_default"]}`,
		"default: allow\n":            `{"allowed":true,"requiresApproval":false,"reasons":[]}`,
		"default: require_approval\n": `{"allowed":true,"requiresApproval":true,"reasons":[]}`,
	} {
		p := parse(t, head+text)
		d, needs := decide(t, p, all())
		if got := marshal(t, d.Bundle); got != want {
			t.Errorf("%q: %s", text, got)
		}
		for _, x := range []gate.ItemDecision{d.Files[0], d.Intents[0], d.Calls[0]} {
			if x.Allowed != d.Bundle.Allowed || x.RequiresApproval != d.Bundle.RequiresApproval || x.Rule != "" {
				t.Errorf("%q: %+v", text, x)
			}
		}
		if x := d.Network[0]; x.Allowed != d.Bundle.Allowed || x.RequiresApproval != d.Bundle.RequiresApproval {
			t.Errorf("%q: %+v", text, x)
		}
		if d.Bundle.RequiresApproval != (len(needs) == 1) || len(needs) == 1 && (needs[0].Why != "default" || needs[0].Count != 1 || needs[0].Keys == nil || len(needs[0].Keys) > 0) {
			t.Errorf("%q: %+v", text, needs)
		}
		if again, _ := decide(t, p, all()); marshal(t, again) != marshal(t, d) {
			t.Error("the same input has another decision")
		}
		if d, _ := decide(t, p, &gate.Input{}); !d.Bundle.Allowed || d.PolicyVersion != p.digest[7:19] {
			t.Errorf("nothing is not allowed: %+v", d)
		}
	}
}

// TestFirstMatch: the first rule that fits decides, and says its name.
func TestFirstMatch(t *testing.T) {
	p := parse(t, head+`default: allow
rules:
- {id: one, allow: file, path: "a/**"}
- {id: two, deny: file, path: ["a/b", "c/**"]}
- {id: three, require_approval: [file, intent], path: "**"}
`)
	in := &gate.Input{Files: []gate.File{file(0, "add", "a/b", "file", 1), file(1, "add", "c/x", "file", 1), file(2, "add", "d", "file", 1)}}
	d, needs := decide(t, p, in)
	if d.Files[0].Rule != "one" || !d.Files[0].Allowed || d.Files[1].Rule != "two" || d.Files[1].Allowed || d.Files[1].Reasons[0] != "denied_by_rule:two" ||
		d.Files[2].Rule != "three" || !d.Files[2].RequiresApproval || d.Files[2].ApprovalReasons[0] != "approval_by_rule:three" || needs[0].Why != "rule three" {
		t.Errorf("%+v %+v", d, needs)
	}
}

// TestNever: what cannot be done is not allowed, whatever rules say.
func TestNever(t *testing.T) {
	p := parse(t, head+"default: allow\nrules: [{id: a, allow: any, when: 'true'}]\n")
	for want, i := range map[string]gate.Intent{
		"unknown_intent_type:mail.send":  intent(0, "mail.send", `{"to":"a"}`),
		"unknown_intent_type:http.post":  intent(0, "http.post", `{"method":"GET","url":"http://a/"}`),
		"not_readable:files.write":       intent(0, intentFile, `{"path":"../a","text":""}`),
		"not_readable:files.write ":      intent(0, intentFile, `{"path":"/a","text":""}`),
		"not_readable:files.write  ":     intent(0, intentFile, `{"path":5}`),
		"not_readable:files.write   ":    intent(0, intentFile, `{"Path":"a"}`),
		"not_readable:files.write    ":   intent(0, intentFile, `{"path":"a\u0000"}`),
		"not_readable:files.write     ":  intent(0, intentFile, `{"path":"a","path":"b"}`),
		"not_readable:files.write      ": intent(0, intentFile, `[]`),
		"not_readable:http.request":      intent(0, intentHTTP, `{"method":"GET"}`),
		"not_readable:http.request ":     request(0, "GET", "http://user@a/"),
		"not_readable:http.request  ":    request(0, "GET", "//a/"),
		"not_readable:http.request   ":   request(0, "GET", "file:///a"),
		"not_readable:http.request    ":  request(0, "get", "http://a/"),
		"not_readable:http.request     ": request(0, "GET", "http://a:0/"),
	} {
		d, _ := decide(t, p, &gate.Input{Intents: []gate.Intent{i}})
		if x := d.Intents[0]; x.Allowed || !slices.Equal(x.Reasons, []string{strings.TrimSpace(want)}) || d.Bundle.Allowed {
			t.Errorf("%s: %+v", want, d)
		}
	}
	bad := file(0, "add", `a\b`, "file", 1) // no text form
	if d, _ := decide(t, p, &gate.Input{Files: []gate.File{bad}}); d.Files[0].Allowed || d.Files[0].Reasons[0] != "not_readable:file" {
		t.Errorf("%+v", d)
	}
}

// TestPlainPaths: a path that servers can read in two ways passes no rule that asks for it, and evades none.
func TestPlainPaths(t *testing.T) {
	p := parse(t, head+`default: allow
rules:
- {id: elsewhere, deny: [intent, network], host: b.example, url_path: "/admin/**"}
- {id: admin, deny: [intent, network], host: a.example, url_path: "/admin/**"}
`)
	for path, want := range map[string]string{
		"/admin/x": "denied_by_rule:admin", "/%61dmin/x": "denied_by_rule:admin", "/x": "", "/x/%41": "", "/administrator": "", "/admin%2Fx": reasonURLPath, "/x/../admin/y": reasonURLPath, "/x/%2e%2e/admin/y": reasonURLPath,
		"//admin/x": reasonURLPath, "/admin;a=b/x": reasonURLPath, "/admin%3Ba/x": reasonURLPath, "/%2561dmin/x": reasonURLPath, "/a%00": reasonURLPath, "/x/.": reasonURLPath,
	} {
		in := &gate.Input{Intents: []gate.Intent{request(0, "GET", "http://A.example."+path)}, Network: []gate.Exchange{exchange(0, "allow", "GET", "a.example", path)}}
		d, _ := decide(t, p, in)
		for _, have := range [][]string{d.Intents[0].Reasons, d.Network[0].Reasons} {
			if strings.Join(have, " ") != want {
				t.Errorf("%s: %q, expected %q", path, have, want)
			}
		}
	}
}

// TestErrors: a policy error denies, and names the rule, the item and the fault.
func TestErrors(t *testing.T) {
	for program, want := range map[string]string{
		`.path | error`:             `policy_error:rule x, file 7: the jq program failed: "error: a"`,
		`.index, .path`:             "policy_error:rule x, file 7: the jq program gave more than one result",
		`empty`:                     "policy_error:rule x, file 7: the jq program gave no result",
		`.index`:                    "policy_error:rule x, file 7: the jq program gave a value of the type number, not true or false",
		`.path`:                     "policy_error:rule x, file 7: the jq program gave a value of the type string, not true or false",
		`def f: f; f`:               "policy_error:rule x, file 7: the jq program takes longer than 5s",
		`[range(1e9)] | length > 0`: "policy_error:rule x, file 7: the jq program ",
	} {
		p := parse(t, head+"default: allow\nrules: [{id: x, deny: file, path: a, when: '"+program+"'}]\n")
		in := &gate.Input{Files: []gate.File{file(0, "add", "b", "file", 1), file(7, "add", "a", "file", 1), file(8, "add", "c", "file", 1)}}
		d, _ := decide(t, p, in)
		if d.Bundle.Allowed || !slices.ContainsFunc(d.Bundle.Reasons, func(s string) bool { return strings.HasPrefix(s, want) }) || d.Files[1].Allowed || !d.Files[0].Allowed {
			t.Errorf("%s: %+v", program, d)
		}
		// What is of the machine may be another thing the next time: nothing more is decided.
		if ended := strings.Contains(program, "f; f") || strings.Contains(program, "1e9"); d.Files[2].Allowed == ended {
			t.Errorf("%s: %+v", program, d)
		}
	}
}

// TestRequire: each requirement must be true of the whole input.
func TestRequire(t *testing.T) {
	for program, want := range map[string]string{
		".evidence.exit_code == 0": "", ".evidence.exit_code == 1": "required:x", "null": "required:x", ".files | length == 1": "",
		".files | length": "policy_error:requirement x: the jq program gave a value of the type number, not true or false", ".context.stage == \"plan\"": "",
		"error": "policy_error:requirement x: the jq program failed",
	} {
		d, _ := decide(t, parse(t, head+"default: allow\nrequire: [{id: x, that: '"+program+"'}, {id: y, that: 'true'}]\n"), all())
		if got := strings.Join(d.Bundle.Reasons, " "); d.Bundle.Allowed != (want == "") || !strings.HasPrefix(got, want) || !d.Files[0].Allowed {
			t.Errorf("%s: %+v", program, d)
		}
	}
}

// TestRequirements: who has to approve follows from the rules that ask.
func TestRequirements(t *testing.T) {
	p := parse(t, head+strings.Replace(people, "threshold: 1", "threshold: 2", 1)+`default: require_approval
rules:
- {id: one, require_approval: file, path: a, by: [alice], count: 1}
- {id: two, require_approval: file, path: b, count: 1}
- {id: three, require_approval: file, path: c}
- {id: unused, require_approval: call, by: [bob, alice]}
`)
	_, needs := decide(t, p, &gate.Input{Files: []gate.File{file(0, "add", "a", "file", 1), file(1, "add", "b", "file", 1), file(2, "add", "c", "file", 1), file(3, "add", "d", "file", 1), file(4, "delete", "a", "file", 1)}})
	keys := p.Keys()
	if len(keys) != 2 || keys[0].Name != "alice" || !strings.HasPrefix(keys[0].String(), "ed25519 sha256:") {
		t.Fatalf("%+v", keys)
	}
	both := []string{keys[0].String(), keys[1].String()}
	slices.Sort(both)
	want := []gate.Requirement{{Why: "default", Count: 2, Keys: both}, {Why: "rule one", Count: 1, Keys: []string{keys[0].String()}}, {Why: "rule three", Count: 2, Keys: both}, {Why: "rule two", Count: 1, Keys: both}}
	if marshal(t, needs) != marshal(t, want) {
		t.Errorf("%s", marshal(t, needs))
	}
}

// TestOrder: the order of items, and what other items there are, changes no decision about one.
func TestOrder(t *testing.T) {
	p := parse(t, head+`default: require_approval
rules:
- {id: docs, allow: file, path: "d1/**", when: '.after != null'}
- {id: big, deny: file, min_size: 50}
- {id: host, allow: [network, intent], host: "*.example"}
- {id: odd, deny: any, when: '.index % 2 == 1'}
- {id: bad, allow: call, when: '.tool | if . == "t3" then error else true end'}
`)
	r := rand.New(rand.NewPCG(1, 2))
	in := new(gate.Input)
	for i := range 40 {
		in.Files = append(in.Files, file(i, schemas.FileChanges[r.IntN(6)], fmt.Sprintf("d%d/%d", r.IntN(3), i), "file", uint64(r.IntN(100))))
		in.Intents = append(in.Intents, request(i, "GET", "http://"+[]string{"a.example", "b.test", "c.example"}[r.IntN(3)]+"/"), intent(100+i, "x.y", "{}"))
		in.Network = append(in.Network, exchange(i, "allow", "GET", []string{"a.example", "b.test"}[r.IntN(2)], "/"))
		in.Calls = append(in.Calls, call(i, fmt.Sprintf("t%d", r.IntN(5)), "allow"))
	}
	said := func(in *gate.Input) (map[string]string, string, string) {
		d, needs := decide(t, p, in)
		one := map[string]string{}
		for name, list := range map[string][]gate.ItemDecision{"file": d.Files, "intent": d.Intents, "call": d.Calls} {
			for _, x := range list {
				one[fmt.Sprint(name, x.Index)] = marshal(t, x)
			}
		}
		for _, x := range d.Network {
			one[fmt.Sprint("network", x.Index)] = marshal(t, x)
		}
		return one, marshal(t, d.Bundle), marshal(t, needs)
	}
	want, bundle, needs := said(in)
	for range 20 {
		r.Shuffle(len(in.Files), func(i, j int) { in.Files[i], in.Files[j] = in.Files[j], in.Files[i] })
		r.Shuffle(len(in.Intents), func(i, j int) { in.Intents[i], in.Intents[j] = in.Intents[j], in.Intents[i] })
		r.Shuffle(len(in.Network), func(i, j int) { in.Network[i], in.Network[j] = in.Network[j], in.Network[i] })
		r.Shuffle(len(in.Calls), func(i, j int) { in.Calls[i], in.Calls[j] = in.Calls[j], in.Calls[i] })
		got, b, n := said(in)
		for k := range want {
			if got[k] != want[k] {
				t.Fatalf("%s: %s, then %s", k, want[k], got[k])
			}
		}
		if b != bundle || n != needs {
			t.Fatalf("%s %s, then %s %s", bundle, needs, b, n)
		}
	}
}

// TestBounds: an input that is none is an error, an ended context is one, and reasons are bounded.
func TestBounds(t *testing.T) {
	p := parse(t, head+"default: allow\n")
	for _, in := range []*gate.Input{{Calls: []gate.Call{call(1, "a", "allow"), call(1, "b", "allow")}}, {Calls: []gate.Call{call(-1, "a", "allow")}}} {
		if _, _, err := p.Decide(t.Context(), in); err == nil {
			t.Error("indexes that are there twice are taken")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if d, _, err := p.Decide(ended, all()); err == nil || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	in := new(gate.Input)
	for i := range 500 {
		in.Intents = append(in.Intents, intent(i, fmt.Sprintf("x.%s%d", strings.Repeat("é", 300), i), "{}"))
	}
	d, _ := decide(t, p, in)
	if n := len(d.Bundle.Reasons); n > maxReasons+1 || len(d.Bundle.Reasons[0]) > maxReason+50 {
		t.Errorf("%d reasons: %q", n, d.Bundle.Reasons[0])
	}
	in.Intents = nil
	for i := range 500 {
		in.Intents = append(in.Intents, intent(i, fmt.Sprintf("x.%d", i), "{}"))
	}
	d, _ = decide(t, p, in)
	if n := len(d.Bundle.Reasons); n != maxReasons+1 || d.Bundle.Reasons[maxReasons] != "~ 436 more" {
		t.Errorf("%d reasons: %q", n, d.Bundle.Reasons[n-1])
	}
}

// TestSeed: what earlier gates could say: allowed domains, methods and paths, a cap, labels that need an approval.
func TestSeed(t *testing.T) {
	p := parse(t, head+`version: seed
default: deny
rules:
- {id: labels, require_approval: intent, label: [external_email, calendar], host: api.example}
- {id: cap, deny: intent, when: '(.amount // 0) > 1000'}
- {id: domains, allow: [intent, network], host: [api.example, "*.cdn.example"], method: [GET, POST], url_path: ["/v1/**", /health]}
`)
	amount := func(i gate.Intent, n uint64) gate.Intent { i.Amount = &n; return i }
	label := func(i gate.Intent, l ...string) gate.Intent { i.Labels = l; return i }
	post := request(0, "POST", "https://api.example/v1/pay")
	for _, x := range []struct {
		i       gate.Intent
		allowed bool
		asks    bool
		rule    string
	}{
		{post, true, false, "domains"}, {amount(post, 1000), true, false, "domains"}, {amount(post, 1001), false, false, "cap"}, {label(post, "calendar"), true, true, "labels"},
		{label(post, "other"), true, false, "domains"}, {request(0, "DELETE", "https://api.example/v1/pay"), false, false, ""}, {request(0, "GET", "https://api.example/v2"), false, false, ""},
		{request(0, "GET", "https://a.cdn.example/health"), true, false, "domains"}, {request(0, "GET", "https://cdn.example/health"), false, false, ""},
	} {
		d, _ := decide(t, p, &gate.Input{Intents: []gate.Intent{x.i}})
		if have := d.Intents[0]; have.Allowed != x.allowed || have.RequiresApproval != x.asks || have.Rule != x.rule || d.PolicyVersion != "seed" {
			t.Errorf("%s: %+v", x.i.Payload, have)
		}
	}
}
