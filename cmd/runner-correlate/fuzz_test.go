package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// forEachLog adds logs of every form that these tests have, plain and collected.
func forEachLog(f *testing.F, name string, logOf func(world) []byte) {
	for _, c := range append(logCodeCases(), codeCases...) {
		f.Add(logOf(c.world))
	}
	f.Add(collect(f, name, logOf(world{policy: one, sdk: oneSDK}), logHealth{}))
	f.Add(collect(f, name, logOf(world{policy: one, sdk: oneSDK}), logHealth{facts: map[string]string{"unterminated": "yes"}}))
	f.Add([]byte(`{"schema":"runner.stream_header.v0"`))
	f.Add([]byte("{}\n[]\nnull\n7\n\"x\"\n\xff\n"))
}

// FuzzPolicyLog: any decision log is read without an error, unless a collected one is
// not a whole stream or a plain one begins as something else, and what was taken has the right form.
func FuzzPolicyLog(f *testing.F) {
	forEachLog(f, schemas.StreamPolicyLog, func(w world) []byte { return decisionLog(f, w.policy) })
	f.Fuzz(func(t *testing.T, log []byte) {
		p := newPolicyLog(testRun)
		facts, err := readLogFrom(bytes.NewReader(log), "log", layerOf(schemas.LayerPolicy), testRun, p.line)
		if err != nil {
			if !bytes.HasPrefix(log, []byte(`{"schema":"runner.stream_header.v0"`)) && layerOf(schemas.LayerPolicy).Begins(log) == nil {
				t.Fatal(err)
			}
			return
		}
		p.close(facts)
		c := codes{}
		c.addLog(row(t, schemas.LayerPolicy), p.end(), !p.present())
		p.resolveOverlaps()
		p.addCodes(c)
		checkCodes(t, c)
		for _, d := range p.decisions {
			e := d.event
			e.Schema, e.RunID, e.SourceEventType = schemas.SchemaPolicyEvent, testRun, schemas.LogDecision
			if _, err := schemas.ParsePolicyEvent([]byte(marshalLine(t, e))); err != nil {
				t.Error(err)
			}
			if d.timed && d.ended && d.end < d.start || d.timed != (d.session != nil) {
				t.Errorf("%+v", d)
			}
		}
		for _, s := range p.sessions {
			for i, w := range s.windows.list {
				if w.end < w.start || i > 0 && w.start <= s.windows.list[i-1].end {
					t.Errorf("windows %+v", s.windows.list)
				}
			}
		}
	})
}

// FuzzSDKLog is the same for the SDK log.
func FuzzSDKLog(f *testing.F) {
	forEachLog(f, schemas.StreamSDKLog, func(w world) []byte { return sdkEvents(w.sdk) })
	f.Fuzz(func(t *testing.T, log []byte) {
		s := newSDKLog(testRun)
		facts, err := readLogFrom(bytes.NewReader(log), "log", layerOf(schemas.LayerSDK), testRun, s.line)
		if err != nil {
			if !bytes.HasPrefix(log, []byte(`{"schema":"runner.stream_header.v0"`)) && layerOf(schemas.LayerSDK).Begins(log) == nil {
				t.Fatal(err)
			}
			return
		}
		s.close(facts)
		c := codes{}
		c.addLog(row(t, schemas.LayerSDK), s.end(), !s.present())
		s.compare(c, nil)
		checkCodes(t, c)
		n := uint64(0)
		testkit.Must(t, s.each(func(line []byte) error {
			e, err := schemas.ParseSDKEvent(line)
			if err == nil && e.Seq != n {
				t.Errorf("seq %d at %d", e.Seq, n)
			}
			n++
			return err
		}))
		if n != s.n {
			t.Errorf("%d lines of %d events", n, s.n)
		}
	})
}

func checkCodes(t *testing.T, c codes) {
	list := c.sorted()
	if !slices.IsSorted(list) {
		t.Errorf("%q", list)
	}
	for _, code := range list {
		if _, err := schemas.ParseCode(code); err != nil {
			t.Error(err)
		}
	}
}

// row is a row of the layer table.
func row(t *testing.T, name string) *schemas.Layer {
	l, ok := schemas.LayerOf(name)
	if !ok {
		t.Fatalf("the table has no layer %s", name)
	}
	return &l
}

func layerOf(name string) *schemas.Layer {
	l, _ := schemas.LayerOf(name)
	return &l
}
