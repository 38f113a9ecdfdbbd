package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Bounds of the evaluation of one expression.
const (
	assertTime   = 10 * time.Second
	assertMemory = 512 << 20 // bytes
)

// assertion is one --assert.
type assertion struct {
	text    string
	program *jq.Program
}

// parseAssertions compiles expressions. They see the documents and nothing else:
// no environment, no input, no modules, no messages of their own.
func parseAssertions(texts []string) ([]assertion, error) {
	var out []assertion
	for _, text := range texts {
		program, err := jq.NewProgram(text, jq.Form{Keys: documentKeys(), Memory: assertMemory})
		if unknown := new(jq.UnknownKeyError); errors.As(err, &unknown) {
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--assert %q: %w", text, err), unknownHint(unknown.Key))
		}
		if err != nil {
			return nil, tool.Usagef("--assert %q: %v", text, err)
		}
		out = append(out, assertion{text, program})
	}
	return out, nil
}

// unknownHint is what to type for a key that there is not.
func unknownHint(key string) string {
	if key == "events" {
		return "the events of the kernel are .kernel, and the start and end of the command are in .run: --assert 'all(.kernel[]; .value | tostring | contains(\".ssh\") | not)'"
	}
	return "runner-verify --help lists what each key holds"
}

// reads reports whether some assertion may read a key of the documents.
func reads(list []assertion, key string) bool {
	for _, a := range list {
		if a.program.Reads(key) {
			return true
		}
	}
	return false
}

// check returns why the assertion does not hold, "" when it does: every result must be true, and
// there must be one. It must also hold when what was not observed is replaced by false, on which
// nearly every operation fails: an empty list that nobody could fill says nothing.
func (a *assertion) check(ctx context.Context, all documents, blind *blindness) string {
	defer a.program.Close()
	input := documents{}
	for key, d := range all {
		if d.fault != "" && a.program.Reads(key) {
			return d.fault
		}
		input[key] = d
	}
	fault := a.once(ctx, input)
	if fault != "" || blind == nil {
		return fault
	}
	for i := range blind.layers {
		if l := &blind.layers[i]; a.once(ctx, l.hide(input)) != "" {
			return "it holds only because " + l.why()
		}
	}
	return ""
}

func (a *assertion) once(ctx context.Context, input documents) string {
	values := map[string]json.RawMessage{}
	for key, d := range input {
		if a.program.Reads(key) {
			values[key] = d.value
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return err.Error()
	}
	r, err := a.program.Ask(ctx, b, false, assertTime)
	switch {
	case errors.Is(err, jq.ErrTime):
		return fmt.Sprintf("it takes longer than %s", assertTime)
	case err != nil:
		return err.Error()
	case r.Fault != "":
		return "it fails: " + r.Fault
	case r.Count == 0:
		return "it gives no result"
	case r.Kind != "boolean":
		return fmt.Sprintf("it gives %s, expected true or false: write a comparison, such as … | length == 0", map[bool]string{true: "null", false: "a value of the type " + r.Kind}[r.Kind == "null"])
	case !r.True:
		return "it gives false"
	}
	return ""
}
