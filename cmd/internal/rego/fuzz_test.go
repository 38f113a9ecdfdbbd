package rego

import (
	"context"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// FuzzModule: no bytes as a module are more than an error.
func FuzzModule(f *testing.F) {
	f.Add(fake{}.encode(), []byte(`{"a": 1}`))
	f.Add(fake{start: true, funcs: map[string][]byte{"start": loop()}}.encode(), []byte("1"))
	f.Add(fake{version: []int{1, 0}, texts: map[uint32]string{atBuiltins: `{"sprintf": 1}`}}.encode(), []byte("[]"))
	f.Fuzz(func(t *testing.T, wasm, input []byte) {
		p, err := Load(context.Background(), wasm, nil, Options{Limits: Limits{Time: 50 * time.Millisecond, Memory: 1 << 20}})
		if err != nil {
			return
		}
		defer p.Close()
		first, err := p.Eval(context.Background(), input)
		if again, err2 := p.Eval(context.Background(), input); err == nil && err2 == nil && string(first) != string(again) {
			t.Errorf("%s, then %s", first, again)
		}
	})
}

// FuzzInput: no input is more than an error, and a result is JSON that is its own canonical form.
func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"calls": [{"name": "sprintf", "args": ["%d", [1]]}]}`))
	f.Add(testkit.Read(f, samples+"/calls.json"))
	f.Add([]byte(`{"intents": [{"type": "email.send", "payload": {"amount": 1e9}}]}`))
	policies := []*Policy{all[0].load(f), all[1].load(f)}
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, p := range policies {
			b, err := p.Eval(context.Background(), input)
			if err != nil {
				continue
			}
			if text, err := document("the result", b, 1<<30); err != nil || text != string(b) {
				t.Errorf("%s: %v", b, err)
			}
		}
	})
}

// FuzzValue: what is read as a value is read from its text again.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`{1, set(), {"a": [1.50, null]}}`, `{1: 2, "x": {}}`, `"\ud83d\ude00\u0000"`, `-1e5`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseValue(s)
		if err != nil {
			return
		}
		again, err := parseValue(dump(v))
		if err != nil || !equal(v, again) || dump(again) != dump(v) {
			t.Errorf("%q: %s, then %s: %v", s, dump(v), dump(again), err)
		}
	})
}
