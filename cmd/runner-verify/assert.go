package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// assertTime bounds the evaluation of one expression. Its memory has a bound, too.
const assertTime = 5 * time.Second

// maxAssertReport is the size of a report up to which it is shown to assertions, in bytes.
const maxAssertReport = 4 << 20

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
		program, err := jq.NewProgram(text)
		if err != nil {
			return nil, tool.Usagef("--assert %q: %v", text, err)
		}
		out = append(out, assertion{text, program})
	}
	return out, nil
}

// documents are what assertions see, by their key.
type documents map[string]any

// check returns why the assertion does not hold, "" when it does: every result must be neither
// null nor false, and there must be one. It must also hold when what was not observed is replaced
// by false, on which nearly every operation fails: an empty list that nobody could fill says nothing.
func (a *assertion) check(ctx context.Context, input documents, blind *blindness) string {
	defer a.program.Close()
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
	b, err := json.Marshal(input)
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
	case !r.True && r.Kind == "null":
		return "it gives null"
	case !r.True:
		return "it gives false"
	}
	return ""
}

// assertInput are the documents that assertions see, or the reason why there are none.
func (v *verifier) assertInput() (documents, string) {
	input := documents{}
	for key, member := range map[string]string{"manifest": bundle.ManifestName, "health": bundle.HealthName,
		"surface": bundle.SurfaceName, "report": bundle.ReportName} {
		b, ok := v.whole[member]
		if !ok && member == bundle.SurfaceName && v.members[member].Size >= archive.MaxWholeSurface {
			return nil, "the surface is too large for assertions"
		}
		if member == bundle.ReportName && v.report != nil {
			var err error
			b, err = schemas.Marshal(v.report)
			ok = err == nil
		}
		if len(b) > maxAssertReport {
			return nil, member + " is too large for assertions"
		}
		if !ok || !json.Valid(b) {
			return nil, member + " could not be read"
		}
		input[key] = json.RawMessage(b)
	}
	events := []json.RawMessage{}
	for _, l := range v.events.list {
		events = append(events, l.Bytes)
	}
	input["events"] = events
	return input, ""
}
