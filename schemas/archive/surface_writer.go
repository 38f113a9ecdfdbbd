package archive

import (
	"bytes"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// SurfaceWriter writes a capability surface value by value, in constant memory.
type SurfaceWriter struct {
	out  io.Writer
	set  int // index of the set whose array is open; -1 before the first
	n    uint64
	last []byte // last value in the open set
	none bool   // the open set is empty
	buf  []byte
}

// surfaceBuffer is how many bytes are collected before they are written.
const surfaceBuffer = 64 << 10

// NewSurfaceWriter writes a document to out. Call Finish after the last value.
func NewSurfaceWriter(out io.Writer, runID string) *SurfaceWriter {
	w := &SurfaceWriter{out: out, set: -1}
	w.buf = append(append(w.buf, `{"schema":"`+schemas.SchemaSurface+`","run_id":`...), schemas.AppendQuote(nil, []byte(runID))...)
	return w
}

// Add adds a value, given as text, to the set of the given index. Values must come
// sorted and without repetition, sets in document order; anything else is a
// *FormError.
func (w *SurfaceWriter) Add(set int, value []byte) error {
	if err := w.admit(set, value); err != nil {
		return err
	}
	w.buf = schemas.AppendQuote(w.buf, value)
	return w.flush(surfaceBuffer)
}

// AddQuoted is Add of a value that is given as a JSON string in canonical form.
func (w *SurfaceWriter) AddQuoted(set int, raw []byte) error {
	value, err := unquote(raw)
	if err != nil {
		return err
	}
	if err := w.admit(set, value); err != nil {
		return err
	}
	w.buf = append(w.buf, raw...)
	return w.flush(surfaceBuffer)
}

// Len is the number of values so far.
func (w *SurfaceWriter) Len() uint64 { return w.n }

// Finish completes the document.
func (w *SurfaceWriter) Finish() error {
	w.open(len(schemas.SurfaceSets) - 1)
	w.buf = append(w.buf, "]}"...)
	return w.flush(0)
}

// admit checks the place of a value and writes what comes before it.
func (w *SurfaceWriter) admit(set int, value []byte) error {
	switch {
	case set < 0 || set >= len(schemas.SurfaceSets):
		return &FormError{RuleDocumentSchema, fmt.Sprintf("surface set %d, expected one of %d", set, len(schemas.SurfaceSets))}
	case set < w.set:
		return &FormError{RuleSurfaceOrder, fmt.Sprintf("surface value %.60q of %s follows values of %s", value, schemas.SurfaceSets[set], schemas.SurfaceSets[w.set])}
	case len(value) == 0:
		return &FormError{RuleDocumentSchema, fmt.Sprintf("a surface value of %s is empty, expected a non-empty one", schemas.SurfaceSets[set])}
	case set == w.set && !w.none && bytes.Compare(value, w.last) <= 0:
		return &FormError{RuleSurfaceOrder, fmt.Sprintf("surface value %.60q is a repetition or not in byte order", value)}
	}
	w.open(set)
	if !w.none {
		w.buf = append(w.buf, ',')
	}
	w.last, w.none = append(w.last[:0], value...), false
	w.n++
	return nil
}

// open closes the arrays before the set and opens its own.
func (w *SurfaceWriter) open(set int) {
	for w.set < set {
		if w.set >= 0 {
			w.buf = append(w.buf, ']')
		}
		w.set++
		w.none = true
		w.buf = append(append(append(w.buf, `,"`...), schemas.SurfaceSets[w.set]...), `":[`...)
	}
}

func (w *SurfaceWriter) flush(limit int) error {
	if len(w.buf) <= limit {
		return nil
	}
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// unquote returns the text of a JSON string in canonical form. It aliases raw
// unless there are escapes.
func unquote(raw []byte) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, notCanonical(raw)
	}
	if inner := raw[1 : len(raw)-1]; schemas.IsPlain(inner) {
		return inner, nil
	}
	var s string
	if err := schemas.Unmarshal(raw, &s); err != nil || !bytes.Equal(schemas.AppendQuote(nil, []byte(s)), raw) {
		return nil, notCanonical(raw)
	}
	return []byte(s), nil
}

func notCanonical(raw []byte) error {
	return badForm("surface value is not a non-empty JSON string in canonical form: %.120q", raw)
}
