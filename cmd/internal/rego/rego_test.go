package rego

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestCalls: the builtins that are done here give what OPA gave, which TestOPA keeps. A builtin without a
// kept call is not tested.
func TestCalls(t *testing.T) {
	called := map[string]bool{"time.now_ns": true} // TestClock
	for _, s := range all {
		if s.inputs == "" {
			continue
		}
		p := s.load(t)
		for _, name := range p.Builtins() {
			called[name] = true
		}
		input := testkit.Read(t, filepath.Join(samples, s.inputs))
		got := lines(t, eval(t, p, string(input)))
		want := testkit.Read(t, s.path("-results.json"))
		if string(got) != string(want) {
			testkit.FirstDifference(t, s.name, got, want)
		}
		var calls struct{ Calls []struct{ Name string } }
		testkit.Must(t, json.Unmarshal(input, &calls))
		for _, name := range p.Builtins() {
			if !slices.ContainsFunc(calls.Calls, func(c struct{ Name string }) bool {
				word, _, _ := strings.Cut(c.Name, " ")
				return word == name
			}) {
				t.Errorf("%s has no call in %s", name, s.inputs)
			}
		}
	}
	for name := range builtins() {
		if !called[name] {
			t.Errorf("%s is in no sample", name)
		}
	}
}

// TestResults: the text of a result is one for all forms of an input, and for all evaluations.
func TestResults(t *testing.T) {
	p := all[1].load(t)
	a := eval(t, p, `{"calls":[{"name":"urlquery.decode_object","args":["b=1&a=2"]},{"args":[[3,1,2.0]], "name":"hex.encode"}]}`)
	b := eval(t, p, ` { "calls" : [ {"args":["b=1&a=2"],"name":"urlquery.decode_object"},{"name":"hex.encode","args":[[3,1,2.0]]}]}`)
	if want := `{"0":{"a":["2"],"b":["1"]}}`; a != want || b != want {
		t.Errorf("%s\n%s", a, b)
	}
	for range 5 {
		if again := eval(t, all[1].load(t), `{"calls":[{"name":"urlquery.decode_object","args":["b=1&a=2"]}]}`); again != a {
			t.Error(again)
		}
	}
}

// TestJSON: what a value of Rego becomes in JSON.
func TestJSON(t *testing.T) {
	for value, want := range map[string]string{
		`{{"result": {3, 1, set()}}}`:                 `[1,3,[]]`,
		`{{"result": {1: "a", [2, "x"]: {}}}}`:        `{"1":"a","[2,\"x\"]":{}}`,
		`{{"result": {"b": 1.50, "a": "é\u0001\""}}}`: `{"a":"é\u0001\"","b":1.50}`,
		`[{"result": null}]`:                          `null`,
	} {
		if got, err := decision(value); err != nil || got != want {
			t.Errorf("%s: %s %v", value, got, err)
		}
	}
	for value, want := range map[string]string{
		`set()`: ErrUndefined.Error(), `[]`: ErrUndefined.Error(), `{{"result": 1}, {"result": 2}}`: "2 values",
		`{"result": 1}`: "no result set", `{{"x": 1}}`: "no result set", `{{"result": 1, "x": 1}}`: "no result set",
		`{{"result": {1: 1, "1": 2}}}`: "two keys that are the same", `{{`: "no value of Rego", `7`: "no result set",
	} {
		if got, err := decision(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v", value, got, err)
		}
	}
}

// TestDocuments: an input or a data document that can be read in two ways is refused, with its place.
func TestDocuments(t *testing.T) {
	p := all[0].load(t)
	for input, want := range map[string]string{
		``: "at byte 0: the end, expected a value", `{"a":1,"a":2}`: `the key "a" is there twice`, `[1,]`: `at byte 3: ']'`,
		`{"a":1} x`: "expected the end", `"\ud800"`: "half of a pair", `"\ud800\ud800"`: "half of a pair", "\"\xff\"": "not UTF-8",
		`01`: "a number of JSON", `1e99999999999`: "exponent", `set()`: "expected a value", `{1:2}`: "a key", `{"a"}`: "':'",
		`NaN`: "expected a value", "\"a\nb\"": "invalid character", strings.Repeat("[", 501) + strings.Repeat("]", 501): "in more than 500",
	} {
		_, err := p.Eval(context.Background(), []byte(input))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "the input is not JSON") {
			t.Errorf("%.50s: %v", input, err)
		}
	}
	wasm := testkit.Read(t, all[0].path(".wasm"))
	for data, want := range map[string]string{`[]`: "no JSON object", `{`: "the data document is not JSON"} {
		if _, err := Load(context.Background(), wasm, []byte(data), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
	deep := strings.Repeat("[", 490) + strings.Repeat("]", 490)
	if got := eval(t, p, `{"network": [], "intents": [], "x": `+deep+`}`); !strings.Contains(got, `"allowed":true`) {
		t.Error(got)
	}
}

// TestEntrypoints: one entrypoint is chosen by itself, of several one must be named.
func TestEntrypoints(t *testing.T) {
	clock, noon := testkit.Read(t, all[3].path(".wasm")), time.Unix(1_700_000_000, 5)
	for entry, want := range map[string]string{
		"":            "the module has 2 entrypoints, and none is chosen: clock/clock, clock/now",
		"clock/later": "the module has no entrypoint clock/later, it has: clock/clock, clock/now",
	} {
		_, err := Load(context.Background(), clock, nil, Options{Entrypoint: entry, Now: noon})
		var e *Error
		if !errors.As(err, &e) || err.Error() != want || e.Hint != "--entrypoint clock/clock" {
			t.Errorf("%v", err)
		}
	}
	for entry, want := range map[string]string{"clock/now": "1700000000000000005", "clock/clock": "[23,13,20]"} {
		p, err := Load(context.Background(), clock, nil, Options{Entrypoint: entry, Now: noon})
		testkit.Must(t, err)
		if got := eval(t, p, "{}"); got != want || p.Entrypoint() != entry || len(p.Entrypoints()) != 2 {
			t.Errorf("%s: %s", entry, got)
		}
		testkit.Must(t, p.Close())
	}
}

// TestClock: without a time of the options, a policy that asks for it is refused by name.
func TestClock(t *testing.T) {
	_, err := Load(context.Background(), testkit.Read(t, all[3].path(".wasm")), nil, Options{})
	if err == nil || !strings.Contains(err.Error(), "time.now_ns (the clock is not part of the input)") {
		t.Error(err)
	}
}

// TestUndefined: an entrypoint without a value is an error of its own kind, with and without an input.
func TestUndefined(t *testing.T) {
	p := all[0].load(t, func(o *Options) { o.Time = time.Minute })
	if got := eval(t, p, `{}`); !strings.Contains(got, `"intents":[]`) {
		t.Error(got)
	}
	bare, err := Load(context.Background(), testkit.Read(t, all[0].path(".wasm")), nil, Options{})
	testkit.Must(t, err)
	defer bare.Close()
	for _, input := range [][]byte{nil, []byte("{}")} { // there is no data.config.version
		if b, err := bare.Eval(context.Background(), input); !errors.Is(err, ErrUndefined) {
			t.Errorf("%s %v", b, err)
		}
	}
}

// TestBounds: sizes of a module, the data, an input and a result.
func TestBounds(t *testing.T) {
	wasm := testkit.Read(t, all[1].path(".wasm"))
	for want, l := range map[string]Limits{
		"the module has": {Wasm: 1000}, "the data document has 2 bytes, expected at most 1": {Data: 1},
		"begins with 128 KiB of memory, expected at most 64": {Memory: 1},
	} {
		if _, err := Load(context.Background(), wasm, nil, Options{Limits: l}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	call := func(name string, args ...any) string {
		return dump(newObject(member{"calls", []any{newObject(member{"name", name}, member{"args", args})}}))
	}
	p := all[1].load(t, func(o *Options) { o.Input, o.Result, o.Memory = 1<<20, 1<<16, 4<<20 })
	for input, want := range map[string]string{
		`"` + strings.Repeat("x", 1<<20) + `"`:                           "the input has 1048578 bytes, expected at most 1048576",
		call("sprintf", "%9999999d", []any{number(1)}):                   "sprintf: the result may have",
		call("sprintf", "%*d", []any{number(99999), number(1)}):          "sprintf: the result may have",
		call("net.cidr_expand", "10.0.0.0/8"):                            "net.cidr_expand: the network has 2^24 addresses",
		call("net.cidr_expand", "::/0"):                                  "net.cidr_expand: the network has 2^128 addresses",
		call("hex.encode", strings.Repeat("x", 50_000)):                  "hex.encode gives more than 65536 bytes",
		call("hex.encode", strings.Repeat("x", 70_000)):                  "an argument of hex.encode has more than 65536 bytes",
		call("hex.decode", "ff"):                                         "not UTF-8",
		call("time.format", []any{number(1), "Local"}):                   "Local",
		call("regex.replace", "aaaaaaaaa", "a", longText(9_000)):         "regex.replace: the result has more than",
		call("regex.split", "x{1000}|y{1000}|z{1000}", longText(60_000)): "regex.split: an expression of",
		call("numbers.range_step", number(0), number(1e15), number(1)):   "numbers.range_step: 1000000000000000 numbers",
		`[` + strings.Repeat("[1],", 200_000) + `1]`:                     "the policy gave up: opa_malloc",
	} {
		_, err := p.Eval(context.Background(), []byte(input))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", input, err)
		}
	}
	if got := eval(t, p, call("hex.encode", "x")); got != `{"0":"78"}` {
		t.Error("after an error: ", got)
	}
}

func longText(n int) string { return strings.Repeat("x", n) }

// TestCanceled: a caller that gives up gets its own reason.
func TestCanceled(t *testing.T) {
	p := all[0].load(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Eval(ctx, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := eval(t, p, "{}"); got == "" {
		t.Error("nothing")
	}
}

// TestStuck: what does not end after its time is left behind, and the policy is of no more use. What panics
// is an error.
func TestStuck(t *testing.T) {
	p := &Policy{options: Options{Limits: Limits{Time: time.Millisecond}}}
	err := p.bounded(context.Background(), func(context.Context) error { panic("it broke") })
	if err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Error(err)
	}
	release := make(chan error)
	defer close(release)
	hang := func(context.Context) error { return <-release }
	for _, want := range []string{"the policy did not end within 1ms", "an earlier evaluation of this policy still runs"} {
		if err := p.bounded(context.Background(), hang); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
	closed := all[1].load(t)
	testkit.Must(t, closed.Close())
	if _, err := closed.Eval(context.Background(), nil); err == nil || err.Error() != "the policy is closed" {
		t.Error(err)
	}
}

// BenchmarkOnce is what one decision takes: loading and one evaluation.
func BenchmarkOnce(b *testing.B) {
	wasm, data := testkit.Read(b, all[0].path(".wasm")), testkit.Read(b, filepath.Join(samples, all[0].data))
	for b.Loop() {
		p, err := Load(context.Background(), wasm, data, Options{})
		testkit.Must(b, err)
		eval(b, p, `{"intents":[],"network":[]}`)
		p.Close()
	}
}
