// Package assertion asks jq programs about the archive of a run: the assertions of runner-verify, and the
// rules of packs. All see the same documents, under the same keys (schemas/ARCHIVE.md, "Verify report").
package assertion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jq"
)

// Bounds of the evaluation of one program.
const (
	maxTime   = 10 * time.Second
	maxMemory = 512 << 20 // bytes
)

// Assertion is a jq program that must give true.
type Assertion struct {
	Text    string
	program *jq.Program
}

// Parse compiles a program. It sees the documents and nothing else: no environment, no input, no modules.
// The error can be a *jq.UnknownKeyError.
func Parse(text string) (*Assertion, error) {
	program, err := jq.NewProgram(text, jq.Form{Shape: shape(), Memory: maxMemory})
	if err != nil {
		return nil, err
	}
	return &Assertion{text, program}, nil
}

// Reads reports whether the program may read a key of the documents.
func (a *Assertion) Reads(key string) bool { return a.program.Reads(key) }

// Close ends the process of the program, if it has one.
func (a *Assertion) Close() { a.program.Close() }

// Answer is what an assertion made of an archive. It holds if Fault is "".
type Answer struct {
	Fault   string // why it does not hold
	Decided bool   // the program gave false, or it holds: the archive decides. Otherwise it could not be asked
}

// Check asks the program. Every result must be true, and there must be one. It must also hold when what
// was not observed is replaced by false, on which nearly every operation fails: an empty list that nobody
// could fill says nothing.
func (a *Assertion) Check(ctx context.Context, all Documents, blind *Blindness) Answer {
	input, fault := a.input(all)
	if fault != "" {
		return Answer{Fault: fault}
	}
	answer := a.once(ctx, input)
	if answer.Fault != "" || blind == nil {
		return answer
	}
	for i := range blind.layers {
		if l := &blind.layers[i]; a.once(ctx, l.hide(input)).Fault != "" {
			return Answer{Fault: "it holds only because " + l.why()}
		}
	}
	return answer
}

// Show runs the program and returns its results as texts, at most so many.
func (a *Assertion) Show(ctx context.Context, all Documents, most int) (jq.Shown, error) {
	input, fault := a.input(all)
	if fault != "" {
		return jq.Shown{}, errors.New(fault)
	}
	b, err := a.encode(input)
	if err != nil {
		return jq.Shown{}, err
	}
	return a.program.Show(ctx, b, most, maxTime)
}

// input are the documents that the program may read, or why one of them cannot be shown.
func (a *Assertion) input(all Documents) (Documents, string) {
	input := Documents{}
	for _, key := range Keys() {
		d := all[key]
		if !a.Reads(key) {
			continue
		}
		if d.fault != "" {
			return nil, d.fault
		}
		input[key] = d
	}
	return input, ""
}

func (a *Assertion) encode(input Documents) ([]byte, error) {
	values := map[string]json.RawMessage{}
	for key, d := range input {
		values[key] = d.value
	}
	return json.Marshal(values)
}

func (a *Assertion) once(ctx context.Context, input Documents) Answer {
	b, err := a.encode(input)
	if err != nil {
		return Answer{Fault: err.Error()}
	}
	r, err := a.program.Ask(ctx, b, false, maxTime)
	switch {
	case errors.Is(err, jq.ErrTime):
		return Answer{Fault: tooLong}
	case err != nil:
		return Answer{Fault: err.Error()}
	case r.Fault != "":
		return Answer{Fault: "it fails: " + r.Fault + input.lacks()}
	case r.Count == 0:
		return Answer{Fault: "it gives no result"}
	case r.Kind != "boolean":
		return Answer{Fault: fmt.Sprintf("it gives %s, expected true or false: write a comparison, such as … | length == 0", map[bool]string{true: "null", false: "a value of the type " + r.Kind}[r.Kind == "null"])}
	case !r.True:
		return Answer{Fault: "it gives false", Decided: true}
	}
	return Answer{Decided: true}
}

// Nothing asks a program that must give no result, and returns what it gives: at most so many texts. The
// text is why it could not be asked, or that it gives nothing only because nobody looked.
func (a *Assertion) Nothing(ctx context.Context, all Documents, blind *Blindness, most int) (jq.Shown, string) {
	shown, err := a.Show(ctx, all, most)
	switch {
	case errors.Is(err, jq.ErrTime):
		return shown, tooLong
	case err != nil:
		return shown, err.Error()
	case shown.Fault != "":
		return shown, "it fails: " + shown.Fault + all.lacksOf(a)
	case shown.Count > 0 || blind == nil:
		return shown, ""
	}
	for i := range blind.layers {
		l := &blind.layers[i]
		if again, err := a.Show(ctx, l.hide(all), most); err != nil || again.Fault != "" || again.Count > 0 {
			return shown, "it holds only because " + l.why()
		}
	}
	return shown, ""
}

var tooLong = fmt.Sprintf("it takes longer than %s", maxTime)

// lacks is what is not in the documents.
func (d Documents) lacks() string {
	for _, key := range Keys() {
		if text := d[key].lacks; text != "" {
			return "; ." + key + ": " + text
		}
	}
	return ""
}

// lacksOf is what is not in the documents that a program reads.
func (d Documents) lacksOf(a *Assertion) string {
	input, _ := a.input(d)
	return input.lacks()
}
