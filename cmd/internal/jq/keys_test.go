package jq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

var known = []string{"kernel", "health", "run"}

// TestUses: what a program reads of its input is found, and never less than it reads.
func TestUses(t *testing.T) {
	for text, want := range map[string]string{
		"true": "", ".health.x == 1": "health", ".kernel | length": "kernel", `.["run"]`: "run", `."run".x`: "run",
		"all(.kernel[]; .value != 1)": "kernel", "[.kernel[] | select(.pid == 2)] == []": "kernel",
		"any(.kernel[]; .) or .run.success": "kernel run", "{run} | .run": "run", ". as {health: $h} | $h": "health",
		".kernel as $k | $k | map(.value) | length": "kernel", "if .run then .health else true end": "health run",
		"reduce .kernel[] as $e (0; . + 1) > 3": "kernel", "first(.kernel[])": "kernel", ".run?": "run",
		"..": "*", ".[]": "*", "keys": "*", ". as $x | .run": "run", `.[("ru" + "n")]`: "*", "def f: .run; f": "run", "def f: def g: .run; g | .x; f": "run", "def f(g): g; f(.run)": "run", "def f($x): $x; f(.run)": "run", "to_entries": "*",
		"def d: ., (.[]? | d); [d] == []": "*", "def run: .kernel; run": "kernel", "def f: 1; def g: f; def f: .run; g": "", "def f: .run; def g: f; def f: 1; g": "run", "def f: .; f | keys": "*", "def f(g): def h: g; h; f(.run)": "run",
		". == 1": "*", "[.] | .[0].health": "*", `"\(.)"`: "*", ". as [$a] | 1": "", "map(.x)": "*", ".run = 1": "*", "has(\"x\")": "*",
	} {
		c, err := compile(text, Flat(known))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := strings.Join(c.read.sorted(), " ")
		if c.read.whole {
			got = "*"
		}
		if got != want {
			t.Errorf("%s reads %q, expected %q", text, got, want)
		}
	}
}

// TestLoopsInLoops: a rule is read in a time that does not double with each loop in it.
func TestLoopsInLoops(t *testing.T) {
	text := "."
	for range 60 {
		text = "reduce 1 as $x (0; $all, (" + text + "))"
	}
	done := make(chan error, 1)
	go func() {
		_, err := compile(". as $all | "+text, Flat(known))
		done <- err
	}()
	select {
	case err := <-done:
		testkit.Must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it takes too long")
	}
}

// TestUnknownKeys: a key that the input never has is refused, or at the latest when it is read.
func TestUnknownKeys(t *testing.T) {
	for _, text := range []string{".kernl == []", "[.kernl[]?] | length == 0", `.["kernl"] == null`, "true or .kernl", "{kernl} | true",
		". as {kernl: $x} | true", ". | .kernl", "select(.kernl == null) | true", "if true then true else .kernl end", "all(.kernl[]?; false)",
		"(.kernl, .health) | true", "try .kernl catch true", ".run.success and .kernl"} {
		var unknown *UnknownKeyError
		if _, err := compile(text, Flat(known)); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "did you mean .kernel?") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{". as $x | 1 | $x | .kernl == null", ". as $x | 1 | ($x.kernl.b // true)", "def f: .kernl; f == null", "def f: .kernl?; [f] | true",
		"def f(g): g; [f(.kernl)] == [null]", "[.] | .[0].kernl == null", "{a: .} | .a.kernl == null", "[..|objects|.kernl?] | true", "first(., 1) | .kernl? == null",
		". as $x | try ($x | .kernl) catch true", "reduce 1 as $i (.; .) | .kernl == null", "path(..) as $p | try (getpath($p) | .kernl) catch . | true"} {
		p, err := NewProgram(text, Form{Shape: Flat(known)})
		if unknown := new(UnknownKeyError); errors.As(err, &unknown) {
			continue
		}
		testkit.Must(t, err)
		a, err := p.Ask(t.Context(), []byte(`{"kernel":[{"kernl":1}],"health":{},"run":{}}`), false, testTime)
		if p.Close(); err != nil || !strings.Contains(a.Fault, "there is no .kernl, did you mean .kernel?") {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	for _, text := range []string{"all(.kernel[]; .kernl == 1)", ".health.anything == null", ".kernel[0].kernl == 1", "def f: .kernl; .kernel[0] | f == 1",
		".kernel[] | .a.b.c == null", "(.health | keys) == []", "del(.run) | .health == {}", "[paths] | length > 0", "any(.kernel[] | {kernl}; .kernl == 1)",
		".kernel[0] as {kernl: $k} | $k == 1", ".kernel as $k | $k | all(.kernl == 1)", "[.kernel[] | .kernl | . + 1] == [2]"} {
		p, err := NewProgram(text, Form{Shape: Flat(known)})
		testkit.Must(t, err)
		a, err := p.Ask(t.Context(), []byte(`{"kernel":[{"kernl":1}],"health":{},"run":{}}`), false, testTime)
		if p.Close(); err != nil || !a.Holds() {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
}
