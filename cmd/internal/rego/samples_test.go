package rego

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// samples is the folder of the policies that OPA compiled.
const samples = "../../../testdata/fixtures/rego"

// sample is a policy in that folder.
type sample struct {
	name, data  string   // of files, without .rego; data may be empty
	entrypoints []string // the first one is evaluated
	flags       []string // of opa
	inputs      string   // file with the input whose results are kept; may be empty
}

var all = []sample{
	{name: "gate", data: "gate-data.json", entrypoints: []string{"gate/decision"}},
	{name: "calls", entrypoints: []string{"calls/results"}, inputs: "calls.json"},
	{name: "old", entrypoints: []string{"old/results"}, flags: []string{"--v0-compatible"}, inputs: "old.json"},
	{name: "clock", entrypoints: []string{"clock/now", "clock/clock"}},
}

func (s sample) path(ending string) string { return filepath.Join(samples, s.name+ending) }

// load loads a sample. Options are changed by the functions.
func (s sample) load(t testing.TB, change ...func(*Options)) *Policy {
	t.Helper()
	options := Options{Entrypoint: s.entrypoints[0], Limits: Limits{Time: 2 * time.Minute}} // machines can be slow
	for _, c := range change {
		c(&options)
	}
	var data []byte
	if s.data != "" {
		data = testkit.Read(t, filepath.Join(samples, s.data))
	}
	p, err := Load(context.Background(), testkit.Read(t, s.path(".wasm")), data, options)
	testkit.Must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// eval is the result for an input, as text.
func eval(t testing.TB, p *Policy, input string) string {
	t.Helper()
	b, err := p.Eval(context.Background(), []byte(input))
	if err != nil {
		t.Fatalf("%v\n%s", err, testkit.Clip(input))
	}
	return string(b)
}
