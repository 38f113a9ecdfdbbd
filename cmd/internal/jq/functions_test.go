package jq

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// records is an input whose objects have different keys: .kernel[] has value, .health has stage, and the input itself has neither.
func records() *Shape {
	return Object(map[string]*Shape{"kernel": List(Flat([]string{"value", "pid"})), "health": Flat([]string{"stage"}), "run": Flat([]string{"code"})})
}

const recordsInput = `{"kernel":[{"value":"/a","pid":1},{"value":"/b","pid":2}],"health":{"stage":"x"},"run":{"code":0}}`

// asked runs a program over that input, and returns its fault, "" if it holds.
func asked(t *testing.T, text string) string {
	t.Helper()
	p, err := NewProgram(text, Form{Shape: records()})
	if unknown := new(UnknownKeyError); errors.As(err, &unknown) {
		return err.Error()
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer p.Close()
	a, err := p.Ask(t.Context(), []byte(recordsInput), false, testTime)
	switch {
	case err != nil:
		t.Fatalf("%s: %v", text, err)
	case a.Fault == "" && !a.Holds():
		return "it does not hold"
	}
	return a.Fault
}

// TestInputThroughFunctions: a function that the program defines is as good as its text in its place.
func TestInputThroughFunctions(t *testing.T) {
	for _, text := range []string{
		"[..|objects|.value?|strings] == [\"/a\", \"/b\"]", // without a function
		"def o: ..|objects; [o|.value?|strings] == [\"/a\", \"/b\"]",
		"def v: .value?; [..|objects|v|strings] == [\"/a\", \"/b\"]",
		"def vs(f): [..|objects|f|strings]; vs(.value?) == [\"/a\", \"/b\"]",
		"def vs(f): def g: f; [..|objects|g|strings]; vs(.value?) == [\"/a\", \"/b\"]",
		"def all_of: ..; def o: all_of|objects; [o|.value?|strings]|length == 2",
		"def d: ., (.[]?|d); [d|objects|.value?|strings] == [\"/a\", \"/b\"]",
		"def d: (.value? // empty), (.[]?|d); [.|d|strings] == [\"/a\", \"/b\"]",
		"[recurse(.[]?)|objects|.value?|strings] == [\"/a\", \"/b\"]",
		"def ks: .kernel[]; all(ks; .value != \"x\")", "def ks: .kernel; [ks[].value] == [\"/a\", \"/b\"]", "def root: .; root.kernel[0].value == \"/a\"",
		"def at($n): .kernel[$n]; at(1).value == \"/b\"", "def of(e; k): e|k; of(.kernel[0]; .value) == \"/a\"", "def v: .value; .kernel[0]|v == \"/a\"",
		"def v: .value; [.kernel[]|v] == [\"/a\", \"/b\"] and (.health|has(\"value\")|not)", "def f: .kernel; def g: f[0]; g.value == \"/a\"",
		"def last_of: if length > 1 then .[1:]|last_of else .[0] end; .kernel|last_of|.value == \"/b\"",
		"def select(f): .kernel; select(.x)[0].value == \"/a\"", ". as $d|def ks: $d.kernel[]; [.health|ks.value]|length == 2",
		"def first: .kernel[0]; first.value == \"/a\"", "def k(f): [.kernel[]|select(f)]; k(.value == \"/a\")|length == 1",
		"def twice(f): f|f; .kernel[0] as $k|1|twice(. + $k.pid) == 3",
	} {
		if fault := asked(t, text); fault != "" {
			t.Errorf("%s: %s", text, fault)
		}
	}
	for _, text := range []string{
		".value == null", "def v: .value; v == null", "def v: .value?; [v] == [null]", "def o: .; o.value == null", "def f(g): g; f(.value) == null",
		"def f($x): $x; f(.value) == null", "def f($x): $x.value; f(.) == null", "def v: .value; (.kernel[0]|v == \"/a\") and (v == null)",
		"def v: .valeu; all(.kernel[]; v == null)", "def ks: .kernel[]; all(ks; .valeu == null)", "def ks: .kernel[]; [ks.valeu] == [null, null]",
		"def k: .kernl; [k[]?] == []", "def d: ., (.[]?|d); [d|objects|.valeu?|strings] == []", "def o: ..|objects; [o|.valeu?|strings] == []",
		"def f: def g: .value; g; f == null", "def v: .value; def w: v; w == null", "[recurse(.[]?)|objects|.valeu?|strings] == []", "recurse(empty)|.value == null",
		"def r: if .value then r else true end; r", "def f(g): if g == null then true else f(g) end; f(.value)", "def twice(f): f|f; twice(.value) == null",
		"def stage: .stage; .health|stage == \"x\" and (.|.valeu == null)", "def select(f): .; select(.kernel)|.value == null",
	} {
		if fault := asked(t, text); !strings.Contains(fault, "there is no .val") && !strings.Contains(fault, "there is no .kernl") {
			t.Errorf("%s: %q", text, fault)
		}
	}
}

// TestFunctionsInFunctions: a rule is read in a time that does not double with each function that calls another one twice.
func TestFunctionsInFunctions(t *testing.T) {
	var chain, args, deep strings.Builder
	chain.WriteString("def f0: .kernel; ")
	args.WriteString("def f0(g): g; ")
	for i := range 60 {
		fmt.Fprintf(&chain, "def f%d: f%d, f%d; ", i+1, i, i)
		fmt.Fprintf(&args, "def f%d(g): f%d(g), f%d(f%d(g)); ", i+1, i, i, i)
	}
	for i := range 60 {
		fmt.Fprintf(&deep, "def d%d: ., (.[]?|d%d), (.[]?", i, i)
		for j := range i {
			fmt.Fprintf(&deep, "|d%d", j)
		}
		deep.WriteString("); ")
	}
	for name, text := range map[string]string{"chain": chain.String() + "f60", "arguments": args.String() + "f60(.kernel)", "recursive": deep.String() + "d59",
		"repeated": strings.Repeat("recurse(.[]?|", 60) + "." + strings.Repeat(")", 60)} {
		done := make(chan error, 1)
		go func() {
			_, err := compile(text, records())
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil && !errors.As(err, new(*UnknownKeyError)) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it takes too long", name)
		}
	}
}
