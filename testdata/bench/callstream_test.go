package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestCalls: the parsers of the contract accept the generated session, and its events
// are in its calls.
func TestCalls(t *testing.T) {
	c := &calls{n: 20, each: 50, fresh: 4, hex: "0123456789abcdef"}
	p := schemas.NewRawParser("bench")
	seen := map[string]bool{}
	for i := range c.events() {
		e := c.event(i)
		var back schemas.RawEvent
		if err := p.Parse(e.AppendJSON(nil, "bench"), &back); err != nil {
			t.Fatal(err)
		}
		if k := i / c.each; back.Op == "openat" && (back.KtimeNS < c.start(k) || back.KtimeNS > c.end(k)) {
			t.Errorf("event %d lies outside of its call", i)
		}
		seen[string(back.Path)] = true
	}
	if n := len(seen); n < c.events()*4/10 || n > c.events()*8/10 {
		t.Errorf("%d names in %d events", n, c.events())
	}
	log := filepath.Join(t.TempDir(), "policy.ndjson")
	if err := c.writeLog(log); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	decisions := 0
	for line := range bytes.Lines(text) {
		d, err := schemas.ParseDecisionLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if d.Decision != nil {
			decisions++
		}
	}
	if decisions != c.n {
		t.Errorf("%d decisions, expected %d", decisions, c.n)
	}
}

func TestPercentile(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := percentile(v, p); got != want {
			t.Errorf("percentile %g is %g, expected %g", p, got, want)
		}
	}
}
