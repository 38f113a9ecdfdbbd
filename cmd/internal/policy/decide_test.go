package policy

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/schemas"
)

// rules makes a policy from rules as a file has them.
func rules(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("test.yaml", []byte("schema: runner.policy.v0\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func args(t testing.TB, text string) any {
	t.Helper()
	v, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func decide(t testing.TB, p *Policy, tool, arguments, dir string) Decision {
	t.Helper()
	held := *p // the tests say where relative paths start, as relative_to does
	held.RelativeTo = dir
	d := held.Decide(context.Background(), &Call{Tool: tool, Arguments: args(t, arguments), Dir: dir})
	checkDecision(t, p, d)
	return d
}

// checkDecision checks what holds for every decision.
func checkDecision(t testing.TB, p *Policy, d Decision) {
	t.Helper()
	if d.Allow != (d.Reason == schemas.ReasonAllowRule || d.Reason == schemas.ReasonAllowDefault) || d.Allow != (d.Say == "") {
		t.Errorf("contradiction: %+v", d)
	}
	if (d.Reason == schemas.ReasonAllowRule || d.Reason == schemas.ReasonDenyRule) == (d.RuleID == "") &&
		d.Reason != schemas.ReasonEvalError && d.Reason != schemas.ReasonEvalTimeout && d.Reason != schemas.ReasonDenyArguments {
		t.Errorf("rule id %q with %s", d.RuleID, d.Reason)
	}
	n := 0
	for _, s := range d.Targets {
		n += len(s)
	}
	if d.Targets == nil || !slices.IsSorted(d.Targets) || len(slices.Compact(slices.Clone(d.Targets))) != len(d.Targets) ||
		len(d.Targets) > schemas.MaxTargets || n > schemas.MaxTargetBytes {
		t.Errorf("targets: %q", d.Targets)
	}
}

func TestFirstMatchWins(t *testing.T) {
	p := rules(t, `
default: allow
rules:
  - {id: a, deny: drop, args: [{at: $.all, in: [true]}], reason: not all of it}
  - {id: b, allow: [drop, "make_?"]}
  - {id: c, deny: "*_*"}
  - {id: d, allow: make_it}
`)
	for _, x := range []struct{ tool, args, reason, rule string }{
		{"drop", `{"all":true}`, schemas.ReasonDenyRule, "a"},
		{"drop", `{"all":false}`, schemas.ReasonAllowRule, "b"},
		{"drop", `{}`, schemas.ReasonAllowRule, "b"},
		{"make_x", `{}`, schemas.ReasonAllowRule, "b"},
		{"make_é", `{}`, schemas.ReasonAllowRule, "b"},
		{"make_it", `{}`, schemas.ReasonDenyRule, "c"},
		{"Drop", `{"all":true}`, schemas.ReasonAllowDefault, ""},
		{"", `{}`, schemas.ReasonAllowDefault, ""},
		{strings.Repeat("x", maxTool+1), `{}`, schemas.ReasonEvalError, ""},
		{"drop", `[]`, schemas.ReasonEvalError, ""},
		{"drop", `"x"`, schemas.ReasonEvalError, ""},
		{"drop", `null`, schemas.ReasonAllowRule, "b"},
	} {
		d := decide(t, p, x.tool, x.args, "/")
		if d.Reason != x.reason || d.RuleID != x.rule {
			t.Errorf("%.20s %s: %s %s (%s), want %s %s", x.tool, x.args, d.Reason, d.RuleID, d.Say, x.reason, x.rule)
		}
	}
	if d := decide(t, p, "drop", `{"all":true}`, "/"); d.Say != "policy rule a denies this call: not all of it" {
		t.Error(d.Say)
	}
	if d := decide(t, rules(t, "rules: []"), "x", `{}`, "/"); d.Reason != schemas.ReasonDenyDefault {
		t.Error(d)
	}
}

func TestGlob(t *testing.T) {
	for _, x := range []struct {
		glob, name string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"?", "", false}, {"?", "é", true}, {"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXbYbZ", false}, {"**", "x", true}, {"*?", "x", true}, {"*a?", "aab", true}, {"a**", "a", true},
		{`\[a\]`, "a", false}, {`\[a\]`, "[a]", true}, {"read_*", "read_", true}, {"read_*", "Read_x", false}, {`\*`, `\x`, false}, {`\*`, "*", true}, {`\\`, `\`, true},
		{strings.Repeat("*a", 100), strings.Repeat("a", 99) + "b", false},
	} {
		g, err := parseGlob(x.glob)
		if have := g.match(x.name); err != nil || have != x.want {
			t.Errorf("%q matches %q: %v, %v", x.glob, x.name, have, err)
		}
	}
}

func TestHides(t *testing.T) {
	p := rules(t, `
default: allow
rules:
  - {id: a, deny: x, args: [{at: $.a, in: [1]}]}
  - {id: b, deny: y}
  - {id: c, allow: [y, z], when: "true"}
  - {id: d, deny: "*z"}
  - {id: e, deny: w, when: "true"}
`)
	for tool, want := range map[string]bool{"x": false, "y": true, "z": false, "zz": true, "w": false, "other": false, strings.Repeat("a", 5000): true} {
		if p.Hides(tool) != want {
			t.Errorf("%.9s: hidden is %v", tool, !want)
		}
	}
	if !rules(t, "rules: [{id: a, deny: x, args: [{at: $.a, in: [1]}]}]").Hides("x") {
		t.Error("no rule can allow it")
	}
}

// The steps of a path, and what allow and deny require of several elements.
func TestConditions(t *testing.T) {
	for _, x := range []struct{ at, args, allow, deny string }{
		{"$.a", `{"a":1}`, "yes", "yes"},
		{"$.a", `{"a":2}`, "no", "no"},
		{"$.a", `{}`, "no", "no"},
		{"$.a", `{"A":1}`, "no", "no"},
		{"$.a.b", `{"a":{"b":1}}`, "yes", "yes"},
		{"$.a.b", `{"a":null}`, "no", "no"},
		{"$.a.b", `{"a":"{\"b\":1}"}`, "error", "error"},
		{"$.a.b", `{"a":[{"b":1}]}`, "error", "error"},
		{"$.a[0]", `{"a":[1,2]}`, "yes", "yes"},
		{"$.a[2]", `{"a":[1,2]}`, "no", "no"},
		{"$.a[0]", `{"a":{"0":1}}`, "error", "error"},
		{"$.a[*]", `{"a":[1,1]}`, "yes", "yes"},
		{"$.a[*]", `{"a":[1,2]}`, "no", "yes"},
		{"$.a[*]", `{"a":[2,2]}`, "no", "no"},
		{"$.a[*]", `{"a":[]}`, "no", "no"},
		{"$.a[*]", `{"a":1}`, "error", "error"},
		{"$.a[*].b", `{"a":[{"b":1},{}]}`, "no", "yes"},
		{"$.a[*].b", `{"a":[{"b":1},[]]}`, "error", "error"},
		{"$.a[*][*]", `{"a":[[1],[1,1]]}`, "yes", "yes"},
		{"$.a[*][*]", `{"a":[[1],[]]}`, "no", "yes"},
		{`$["a b"]["\u00e9"]`, `{"a b":{"é":1}}`, "yes", "yes"},
		{"$", `{"a":1}`, "no", "no"},
		{"$.a[*]", `{"a":[` + strings.Repeat("1,", jsonpath.MaxElements) + `1]}`, "error", "error"},
	} {
		for verb, want := range map[string]string{"allow": x.allow, "deny": x.deny} {
			p := rules(t, "default: "+map[string]string{"allow": "deny", "deny": "allow"}[verb]+
				"\nrules: [{id: r, "+verb+": x, args: [{at: '"+x.at+"', in: [1]}]"+map[string]string{"allow": ", only: false"}[verb]+"}]")
			d := decide(t, p, "x", x.args, "/")
			have := map[string]string{schemas.ReasonAllowRule: "yes", schemas.ReasonDenyRule: "yes", schemas.ReasonEvalError: "error",
				schemas.ReasonAllowDefault: "no", schemas.ReasonDenyDefault: "no"}[d.Reason]
			if have != want {
				t.Errorf("%s %s of %.60s: %s (%s), want %s", verb, x.at, x.args, have, d.Say, want)
			}
		}
	}
}

func TestIn(t *testing.T) {
	for _, x := range []struct{ in, arg, want string }{
		{"[1]", `1.0`, "yes"}, {"[1]", `1e0`, "yes"}, {"[100]", `1e2`, "yes"}, {"[0]", `-0.0e5`, "yes"}, {"[1]", `"1"`, "no"},
		{"[0.1]", `0.10`, "yes"}, {"[0.1]", `0.1000000000000000055511151231257827`, "error"},
		{"[9007199254740993]", `9007199254740993`, "yes"}, {"[9007199254740993]", `9007199254740992`, "error"},
		{"[9007199254740992, 9007199254740993]", `9007199254740992`, "yes"},
		{"[18446744073709551615]", `18446744073709551615`, "yes"}, {"[1]", `2`, "no"}, {"[-1]", `1`, "no"},
		{"[1]", `1e99999999999999999999`, "error"}, {"[0]", `1e-999`, "error"}, {"[1e300]", `1e500`, "no"},
		{"[true]", `true`, "yes"}, {"[true]", `"true"`, "no"}, {"[true]", `1`, "no"}, {"[false]", `null`, "no"}, {"[null]", `null`, "yes"},
		{"[a]", `"a"`, "yes"}, {"[a]", `"A"`, "no"}, {"[a]", `["a"]`, "no"}, {"['é']", `"e\u0301"`, "no"},
		{"[[1, {a: b}]]", `[1.0,{"a":"b"}]`, "yes"}, {"[[1, 2]]", `[2,1]`, "no"}, {"[[1]]", `[1,1]`, "no"}, {"[{a: 1}]", `{"a":1,"b":2}`, "no"},
		{"[{a: 1}]", `{"b":1}`, "no"}, {"[[]]", `[]`, "yes"}, {"[{}]", `[]`, "no"}, {"[[]]", `{}`, "no"},
		{"[[9007199254740993, 1]]", `[9007199254740992,2]`, "no"},
	} {
		p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, in: "+x.in+"}]}]")
		d := decide(t, p, "x", `{"a":`+x.arg+`}`, "/")
		have := map[string]string{schemas.ReasonAllowRule: "yes", schemas.ReasonEvalError: "error", schemas.ReasonDenyDefault: "no"}[d.Reason]
		if have != x.want {
			t.Errorf("%s in %s: %s (%s)", x.arg, x.in, have, d.Say)
		}
	}
	// Numbers that the caller created.
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, in: [7]}]}]")
	for _, n := range []any{7, int64(7), uint64(7), 7.0, big.NewInt(7)} {
		if d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: map[string]any{"a": n}}); !d.Allow {
			t.Errorf("%T: %+v", n, d)
		}
	}
	for _, n := range []any{struct{}{}, []string{"x"}, map[any]any{}} {
		if d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: map[string]any{"a": n}}); d.Reason != schemas.ReasonEvalError {
			t.Errorf("%T: %+v", n, d)
		}
	}
}

func TestWhen(t *testing.T) {
	for _, x := range []struct{ when, args, reason string }{
		{`.arguments.n < 100`, `{"n":99}`, schemas.ReasonAllowRule},
		{`.arguments.n < 100`, `{"n":100}`, schemas.ReasonDenyDefault},
		{`.arguments.n == 18446744073709551615`, `{"n":18446744073709551615}`, schemas.ReasonAllowRule},
		{`.arguments.n`, `{"n":"true"}`, schemas.ReasonEvalError},
		{`.arguments.n`, `{"n":1}`, schemas.ReasonEvalError},
		{`.arguments.n`, `{}`, schemas.ReasonEvalError},
		{`empty`, `{}`, schemas.ReasonEvalError},
		{`true, true`, `{}`, schemas.ReasonEvalError},
		{`true, error("x")`, `{}`, schemas.ReasonEvalError},
		{`.arguments.a[] | startswith("x")`, `{"a":["x","y"]}`, schemas.ReasonEvalError},
		{`all(.arguments.a[]; startswith("x"))`, `{"a":["x","y"]}`, schemas.ReasonDenyDefault},
		{`.arguments.a | test("x")`, `{"a":7}`, schemas.ReasonEvalError},
		{`error("no")`, `{}`, schemas.ReasonEvalError},
		{`.tool == "x" and .meta.k == "v" and (.arguments | keys == ["a"])`, `{"a":1}`, schemas.ReasonAllowRule},
		{`.arguments == {}`, `null`, schemas.ReasonAllowRule},
		{`def f: f; f`, `{}`, schemas.ReasonEvalTimeout},
		{`[range(1e9)] | length > 0`, `{}`, schemas.ReasonEvalTimeout},
		{`"x" * 1e12 | length > 0`, `{}`, schemas.ReasonEvalError},
	} {
		p := rules(t, "rules:\n  - id: r\n    allow: x\n    only: false\n    when: '"+x.when+"'\n")
		begin := time.Now()
		d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: args(t, x.args), Meta: args(t, `{"k":"v"}`)})
		checkDecision(t, p, d)
		if d.Reason != x.reason {
			t.Errorf("%s of %s: %s (%s), want %s", x.when, x.args, d.Reason, d.Say, x.reason)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: took %v", x.when, took)
		}
	}
}

// All programs of a decision share one time limit: many rules do not take longer than one.
func TestWhenTimeIsShared(t *testing.T) {
	var text strings.Builder
	for i := range maxRules {
		fmt.Fprintf(&text, "  - {id: r%d, allow: x, when: '[limit(20000; repeat(1))] | length == 0'}\n", i)
	}
	begin := time.Now()
	d := decide(t, rules(t, "rules:\n"+text.String()), "x", `{}`, "/")
	if took := time.Since(begin); d.Reason != schemas.ReasonEvalTimeout || d.RuleID == "" || took > 5*time.Second {
		t.Errorf("%+v after %v", d, took)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if d := rules(t, "default: allow").Decide(ctx, &Call{Tool: "x"}); d.Reason != schemas.ReasonEvalTimeout {
		t.Error(d)
	}
}

// A single long step of a program cannot be stopped. Decide does not wait for it, and
// while too many of them run, nothing is allowed.
func TestWhenStuck(t *testing.T) {
	p := rules(t, `rules: [{id: r, allow: x, when: '.arguments.s | test("(a|b|c)*d$")'}, {id: s, allow: y}]`)
	arguments := `{"s":"` + strings.Repeat("a", 12_000_000) + `"}` // made before the time begins
	begin := time.Now()
	d := decide(t, p, "x", arguments, "/")
	if took := time.Since(begin); d.Reason != schemas.ReasonEvalTimeout || d.RuleID != "r" || took > 5*time.Second {
		t.Errorf("%+v after %v", d, took)
	}
	if n := stuck.Load(); n != 1 {
		t.Errorf("%d evaluations are stuck", n)
	}
	if d := decide(t, p, "y", `{}`, "/"); !d.Allow {
		t.Error(d)
	}
	stuck.Add(maxStuck)
	if d := decide(t, p, "y", `{}`, "/"); d.Reason != schemas.ReasonEvalTimeout {
		t.Error(d)
	}
	stuck.Add(-maxStuck)
	for i := 0; stuck.Load() != 0; i++ {
		if time.Sleep(50 * time.Millisecond); i > 1200 {
			t.Fatal("an evaluation that was given up never ends")
		}
	}
}

// Expressions that a client chooses are not kept.
func TestWhenPatterns(t *testing.T) {
	for when, want := range map[string]bool{
		`.tool | test("x")`: false, `.tool | test("x"; "i")`: false, `.tool | sub("a"; "b") == "x"`: false, `.tool == "test"`: false,
		`.tool | test(.arguments.p)`: true, `.tool | test("x" + .tool)`: true, `.tool | test("\(.tool)")`: true,
		`def f(p): test(p); .tool | f("x")`: true, `.tool | [match(["x", "i"])] == []`: true, `.tool | [splits(.tool)] == []`: true,
		`[.tool | if . == "x" then {a: gsub(.; "")} else 1 end] == []`: true,
	} {
		if have := rules(t, "rules:\n  - id: r\n    allow: x\n    when: '"+when+"'\n").rules[0].when.fresh; have != want {
			t.Errorf("%s: compiled for each call: %v", when, have)
		}
	}
	p := rules(t, `rules: [{id: r, allow: x, only: false, when: '. as $c | .tool | test($c.arguments.p)'}]`)
	for pattern, want := range map[string]string{"^x$": schemas.ReasonAllowRule, "y": schemas.ReasonDenyDefault, "(": schemas.ReasonEvalError} {
		if d := decide(t, p, "x", `{"p":"`+pattern+`"}`, "/"); d.Reason != want {
			t.Errorf("%s: %+v", pattern, d)
		}
	}
}

// A panic in a program is a denial too: jq panics when it gets a uint64.
func TestWhenPanic(t *testing.T) {
	p := rules(t, `rules: [{id: r, allow: x, when: '.arguments.n + 1 == 2'}]`)
	d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: map[string]any{"n": uint64(1)}})
	if d.Reason != schemas.ReasonEvalError || d.RuleID != "r" {
		t.Error(d)
	}
}

// A program that collects values is stopped before it takes too much memory.
func TestWhenMemory(t *testing.T) {
	p := rules(t, `rules: [{id: r, allow: x, when: '[range(1e9) | "x" * 100000 | ltrimstr("x") + "y"] | length > 0'}]`)
	d := decide(t, p, "x", `{}`, "/")
	if d.Reason != schemas.ReasonEvalError && d.Reason != schemas.ReasonEvalTimeout && d.Reason != schemas.ReasonDenyArguments {
		t.Error(d)
	}
}

// Deep arguments are denied, not walked.
func TestDeep(t *testing.T) {
	p := rules(t, "default: allow")
	var deep any = "x"
	for range 1_000_000 {
		deep = []any{deep}
	}
	d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: map[string]any{"a": deep}})
	if d.Reason != schemas.ReasonEvalError || !d.TargetsCut {
		t.Error(d)
	}
	if _, bad := p.CaseSmuggled(map[string]any{"a": deep}); !bad {
		t.Error("deep arguments were taken as looked through")
	}
}

func TestSmuggled(t *testing.T) {
	p := rules(t, `
rules:
  - {id: a, allow: x, args: [{at: $.path, under: /}, {at: '$.opts["kind"]', in: [1]}]}
  - {id: b, allow: x, when: '.arguments.limit == 1 and (.arguments | has("size")) and .tool == "GET" and .tool != "get"'}
`)
	for _, x := range []struct{ args, key string }{
		{`{"path":1,"kind":1,"limit":1,"size":1}`, ""},
		{`{"Path":1}`, "Path"},
		{`{"a":[{"b":{"PATH":1}}]}`, "PATH"},
		{`{"KIND":1}`, "KIND"},
		{`{"\u212aind":1}`, "\u212aind"},
		{`{"\u017fize":1}`, "\u017fize"},
		{`{"Limit":1}`, "Limit"},
		{`{"GET":1}`, ""},
		{`{"Get":1}`, "Get"},
		{`{"q":1,"Q":1}`, "q"},
		{`{"a":{"\u03c3":1,"\u03c2":1}}`, "σ"},
		{`{"a":[{"b":1},{"B":1}]}`, ""},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"A":1}`, "a"},
		{`null`, ""}, {`7`, ""}, {`{}`, ""},
	} {
		key, bad := p.CaseSmuggled(args(t, x.args))
		if bad != (x.key != "") || key != x.key {
			t.Errorf("%s: %q %v, want %q", x.args, key, bad, x.key)
		}
	}
}

// Many calls at once, some of them slow: each gets its own answer.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	p := rules(t, "relative_to: "+dir+"\nrules:\n  - {id: a, allow: x, args: [{at: $.path, under: "+dir+"}], when: '.arguments.n < 5'}\n")
	done := make(chan string, 40)
	for i := range 40 {
		go func() {
			d := p.Decide(context.Background(), &Call{Tool: "x", Arguments: map[string]any{"path": "f", "n": i % 10}, Dir: dir})
			if d.Allow != (i%10 < 5) && d.Reason != schemas.ReasonEvalTimeout {
				done <- d.Say + d.Reason
			} else {
				done <- ""
			}
		}()
	}
	for range 40 {
		if s := <-done; s != "" {
			t.Error(s)
		}
	}
	if n := stuck.Load(); n != 0 {
		t.Errorf("%d evaluations are stuck", n)
	}
}
