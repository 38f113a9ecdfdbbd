package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// reportWriter assembles the correlation report. Its parts come before the line with
// its status. There may be many parts, so they are kept on disk until then.
type reportWriter struct {
	parts       *member // the part of `"bindings":[…],"ambiguities":[…],"notes":[…]}` that is written
	policy      *member
	decisions   *bufio.Reader // the policy layer, read again alongside the bindings
	bindings    uint64
	ambiguities uint64
	notes       uint64
	last        string // the previous code
}

func newReportWriter(policy *member) *reportWriter {
	return &reportWriter{parts: newMember(bundle.ReportName), policy: policy}
}

// binding adds one binding. It must be that of the next decision.
func (w *reportWriter) binding(line []byte) error {
	e, err := parse(line, schemas.ParseBinding)
	if err != nil {
		return err
	}
	if err := canonical(line, e); err != nil {
		return err
	}
	d, err := w.decision()
	if err != nil {
		return err
	}
	b := &e.Binding
	switch {
	case d == nil:
		return formf("binding %d of %.100q, but the policy layer has %d decisions", w.bindings, b.ToolCallID, w.bindings)
	case b.ToolCallID != d.ToolCallID || b.PolicyDecision == nil || *b.PolicyDecision != d.Decision:
		return formf("binding %d is of another decision than the policy layer's %.100q of %.100q", w.bindings, d.Decision, d.ToolCallID)
	}
	inner, err := schemas.Marshal(b)
	if err != nil {
		return err
	}
	return w.add(&w.bindings, inner)
}

// decision returns the next decision of the policy layer, nil after the last.
func (w *reportWriter) decision() (*schemas.PolicyEvent, error) {
	if w.decisions == nil {
		r, err := w.policy.reader()
		if err != nil {
			return nil, err
		}
		w.decisions = bufio.NewReaderSize(r, 64<<10)
	}
	line, err := w.decisions.ReadBytes('\n')
	switch {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the scratch file of %s: %w", w.policy.name, err)
	}
	return schemas.ParsePolicyEvent(line[:len(line)-1])
}

// ambiguity adds one code. Codes must be sorted and not repeated, those of notes after the others.
func (w *reportWriter) ambiguity(line []byte) error {
	e, err := parse(line, schemas.ParseAmbiguity)
	if err != nil {
		return err
	}
	if err := canonical(line, e); err != nil {
		return err
	}
	note := schemas.IsNote(e.Code)
	if was := w.notes > 0; note == was && e.Code <= w.last || was && !note {
		return formf("ambiguity %.100q is a repetition or not in byte order, ambiguities before notes", e.Code)
	}
	w.last = e.Code
	if err := w.endBindings(w.ambiguities+w.notes == 0); err != nil {
		return err
	}
	if !note {
		return w.add(&w.ambiguities, schemas.AppendQuote(nil, []byte(e.Code)))
	}
	if w.notes == 0 {
		if _, err := w.parts.Write([]byte(`],"notes":[`)); err != nil {
			return err
		}
	}
	return w.add(&w.notes, schemas.AppendQuote(nil, []byte(e.Code)))
}

// endBindings ends the array of bindings before the first ambiguity.
func (w *reportWriter) endBindings(first bool) error {
	if !first {
		return nil
	}
	_, err := w.parts.Write([]byte(`],"ambiguities":[`))
	return err
}

// add appends one element to the current array, which has n elements.
func (w *reportWriter) add(n *uint64, element []byte) error {
	if *n > 0 {
		if _, err := w.parts.Write([]byte{','}); err != nil {
			return err
		}
	}
	*n++
	_, err := w.parts.Write(element)
	return err
}

// finish writes the whole report to out. r is the report line, without its parts.
func (w *reportWriter) finish(r *schemas.Report, out *member) error {
	if len(r.Bindings) > 0 || len(r.Ambiguities) > 0 || len(r.Notes) > 0 {
		return formf("the correlation report holds bindings, ambiguities or notes itself, expected them before it, one a line")
	}
	if err := w.endBindings(w.ambiguities+w.notes == 0); err != nil {
		return err
	}
	empty, err := schemas.Marshal(r)
	if err != nil {
		return err
	}
	head := bytes.TrimSuffix(empty, []byte(`],"ambiguities":[]}`))
	if len(head) == len(empty) {
		return fmt.Errorf("the correlation report ends in %.40q", empty[max(0, len(empty)-40):])
	}
	parts, err := w.parts.reader()
	if err != nil {
		return err
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	if _, err := io.Copy(out, parts); err != nil {
		return err
	}
	_, err = out.Write([]byte("]}"))
	return err
}

func (w *reportWriter) close() { w.parts.close() }

// canonical checks that a line is the canonical form of v.
func canonical(line []byte, v any) error {
	if again, err := schemas.Marshal(v); err != nil || !bytes.Equal(again, line) {
		return formf("not in canonical form: %.120q", line)
	}
	return nil
}
