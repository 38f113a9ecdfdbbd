package rego

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestOPA: the committed modules are what OPA makes of the policies, and it gives the same results, for the
// kept inputs and for random ones. `make interop` builds OPA and names it in RUNNER_OPA; with -update the
// modules and results are written again.
func TestOPA(t *testing.T) {
	opa := os.Getenv("RUNNER_OPA")
	if opa == "" {
		testkit.Skip(t, "OPA's own results", "RUNNER_OPA names no program; make interop builds it")
	}
	for _, s := range all {
		testkit.Golden(t, s.path(".wasm"), compiled(t, opa, s))
	}
	for _, s := range all {
		if s.inputs != "" {
			input := testkit.Read(t, filepath.Join(samples, s.inputs))
			testkit.Golden(t, s.path("-results.json"), lines(t, evaluated(t, opa, s, string(input))))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	calls, failed := randomCalls(t, random, 4000)
	for why, n := range failed {
		t.Logf("%d calls end the evaluation here and not in OPA: %s", n, why)
	}
	agree(t, opa, all[1], calls)
	for range 60 {
		agree(t, opa, all[0], randomRun(random))
	}
}

// compiled is the module that OPA makes of a sample.
func compiled(t *testing.T, opa string, s sample) []byte {
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	args := append([]string{"build", "-t", "wasm", "-o", bundle}, s.flags...)
	for _, e := range s.entrypoints {
		args = append(args, "-e", e)
	}
	run(t, opa, append(args, s.name+".rego")...)
	unzipped, err := gzip.NewReader(bytes.NewReader(testkit.Read(t, bundle)))
	testkit.Must(t, err)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		testkit.Must(t, err)
		if h.Name == "/policy.wasm" {
			b, err := io.ReadAll(r)
			testkit.Must(t, err)
			return b
		}
	}
}

func run(t *testing.T, opa string, args ...string) []byte {
	t.Helper()
	c := exec.Command(opa, args...)
	var words bytes.Buffer
	c.Dir, c.Stderr = samples, &words // the names of the files are in the module
	out, err := c.Output()
	if err != nil {
		t.Fatalf("opa %s: %v\n%s%s", strings.Join(args, " "), err, out, words.String())
	}
	return out
}

// evaluated is what OPA itself gives, in the form of Eval.
func evaluated(t *testing.T, opa string, s sample, input string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input.json")
	testkit.Write(t, file, []byte(input))
	args := append([]string{"eval", "--format", "raw", "-i", file, "-d", s.name + ".rego"}, s.flags...)
	if s.data != "" {
		args = append(args, "-d", s.data)
	}
	out := run(t, opa, append(args, "data."+strings.ReplaceAll(s.entrypoints[0], "/", "."))...)
	text, err := document("OPA's result", out, 1<<30)
	testkit.Must(t, err)
	return text
}

// agree compares what Eval and OPA give for an input. Of calls it shows those with different results.
func agree(t *testing.T, opa string, s sample, input string) {
	t.Helper()
	got, want := eval(t, s.load(t), input), evaluated(t, opa, s, input)
	if got == want {
		return
	}
	x, y, in := parsed(t, got), parsed(t, want), parsed(t, input)
	calls, _ := in.get("calls")
	list, _ := calls.([]any)
	for i, c := range list {
		key := fmt.Sprint(i)
		a, hasA := x.get(key)
		b, hasB := y.get(key)
		if hasA != hasB || !equal(a, b) {
			t.Errorf("%s\n     here: %t %s\n   in OPA: %t %s", dump(c), hasA, dump(a), hasB, dump(b))
		}
	}
	t.Errorf("%s: for %s", s.name, testkit.Clip(input))
	testkit.FirstDifference(t, s.name, lines(t, got), lines(t, want))
}

func parsed(t *testing.T, text string) object {
	t.Helper()
	v, err := parseJSON(text)
	testkit.Must(t, err)
	return v.(object)
}

// lines has one member of an object in a line.
func lines(t *testing.T, text string) []byte {
	var b bytes.Buffer
	for _, m := range parsed(t, text) {
		fmt.Fprintf(&b, "%s: %s\n", dump(m.key), dump(m.value))
	}
	return b.Bytes()
}

// randomCalls calls builtins with arguments of kept calls, some exchanged for others. It leaves out, and
// counts, what ends an evaluation here: a string that is not UTF-8, and what is beyond a bound.
func randomCalls(t *testing.T, r *rand.Rand, n int) (text string, failed map[string]int) {
	list, _ := parsed(t, string(testkit.Read(t, filepath.Join(samples, "calls.json")))).get("calls")
	kept := list.([]any)
	part := func(c any, name string) any {
		v, _ := c.(object).get(name)
		return v
	}
	var calls []any
	failed = map[string]int{}
	input := func(calls ...any) string { return dump(newObject(member{"calls", calls})) }
	p := all[1].load(t)
	for range n {
		c := kept[r.IntN(len(kept))]
		args := slices.Clone(part(c, "args").([]any))
		for i := range args {
			switch r.IntN(4) {
			case 0: // an argument of another call
				other := part(kept[r.IntN(len(kept))], "args").([]any)
				args[i] = other[min(i, len(other)-1)]
			case 1:
				args[i] = mutated(r, args[i])
			}
		}
		changed := newObject(member{"name", part(c, "name")}, member{"args", args})
		if _, err := p.Eval(t.Context(), []byte(input(changed))); err != nil {
			name, _, _ := strings.Cut(err.Error(), ":")
			failed[name]++
			continue
		}
		// OPA computes equal calls once, and 1 is equal to 1.0, which has another text.
		if !slices.ContainsFunc(calls, func(c any) bool { return equal(c, changed) }) {
			calls = append(calls, changed)
		}
	}
	return input(calls...), failed
}

// mutated changes a value a little.
func mutated(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case string:
		pieces := []string{"", "a", "é", "0", "1", ".", "-", "/", "%", "d", " ", "e", "k", "i", "\n", "{", "}", "+", "Z", "T", ":"}
		runes := []rune(v)
		at := r.IntN(len(runes) + 1)
		end := min(len(runes), at+r.IntN(3))
		return string(runes[:at]) + pieces[r.IntN(len(pieces))] + string(runes[end:])
	case []any:
		list := slices.Clone(v)
		if len(list) > 0 {
			i := r.IntN(len(list))
			list[i] = mutated(r, list[i])
			if r.IntN(3) == 0 {
				list = append(list, list[r.IntN(len(list))])
			}
		}
		return list
	case object:
		o := slices.Clone(v)
		if len(o) > 0 {
			i := r.IntN(len(o))
			o[i].value = mutated(r, o[i].value)
		}
		return o
	case bool:
		return !v
	case nil:
		return number(0)
	}
	return number(r.Int64N(2000) - 1000)
}

// randomRun is an input of the gate.
func randomRun(r *rand.Rand) string {
	pick := func(list ...any) any { return list[r.IntN(len(list))] }
	url := func() any {
		return pick("https://api.example.com/v1/a", "https://API.example.com/v1", "https://api.example.com/health", "http://mail.example.com:25/send",
			"https://api.example.com/v1/../x", "https://api.example.com/v1/%2e%2e/x", "https://evil.example/", "::", "", nil, number(1), "https://api.example.com")
	}
	method := func() any { return pick("GET", "get", "POST", "DELETE", nil, number(1)) }
	var intents, network []any
	for range r.IntN(4) {
		payload := newObject(member{"url", url()}, member{"method", method()},
			member{"amount", pick(number(100), number(101), nil, "1", true, number(-5))})
		intents = append(intents, newObject(member{"type", pick("email.send", "calendar.event", "http.request", "files.write", nil)},
			member{"payload", slices.Delete(payload, 0, r.IntN(3))},
			member{"metadata", pick(object{}, newObject(member{"labels", []any{pick("payment", "external_email", "other")}}))}))
	}
	for range r.IntN(4) {
		network = append(network, newObject(member{"url", url()}, member{"method", method()}))
	}
	context := newObject(member{"stage", pick("plan", "commit")}, member{"currentMinutes", pick(number(509), number(510), number(1019), number(1020), nil, "x")})
	return dump(newObject(member{"context", slices.Delete(context, 0, r.IntN(2))}, member{"intents", intents}, member{"network", network}))
}
