package main

import (
	"bytes"
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// surfaceWriter assembles the capability surface from its entries, one at a time.
type surfaceWriter struct {
	out  *member
	at   int // index of the set whose array is open; -1 before the first
	n    uint64
	last []byte // last value in the open set; nil when it is empty
	// prefix is what an entry of each set begins with, up to its value.
	prefix [len(schemas.SurfaceSets)][]byte
	buf    []byte
}

func newSurfaceWriter(out *member, runID string) *surfaceWriter {
	w := &surfaceWriter{out: out, at: -1}
	for i := range schemas.SurfaceSets {
		w.prefix[i] = schemas.SurfaceEntryPrefix(runID, i)
	}
	w.buf = append(w.buf, `{"schema":"`+schemas.SchemaSurface+`","run_id":"`+runID+`"`...)
	return w
}

// formError is a fault of the input, unlike a failure to write.
type formError struct{ msg string }

func (e *formError) Error() string { return e.msg }

func formf(format string, a ...any) error { return &formError{fmt.Sprintf(format, a...)} }

// entry adds one surface entry. Entries must come sorted and without repetition.
func (w *surfaceWriter) entry(line []byte) error {
	set := max(w.at, 0)
	for set < len(w.prefix) && !bytes.HasPrefix(line, w.prefix[set]) {
		set++
	}
	if set == len(w.prefix) {
		return formf("surface entry of an unknown set, of one that was finished before, or not in canonical form: %.120q", line)
	}
	raw := line[len(w.prefix[set]) : len(line)-1]
	value, err := unquote(raw)
	if err != nil {
		return err
	}
	if set == w.at && bytes.Compare(value, w.last) <= 0 {
		return formf("surface entry %.60s is a repetition or not in byte order", raw)
	}
	w.open(set)
	if w.last != nil {
		w.buf = append(w.buf, ',')
	}
	w.last = append(w.last[:0], value...)
	w.buf = append(w.buf, raw...)
	w.n++
	return w.flush(64 << 10)
}

// open closes the arrays in front of the set and opens its own.
func (w *surfaceWriter) open(set int) {
	for w.at < set {
		if w.at >= 0 {
			w.buf = append(w.buf, ']')
		}
		w.at++
		w.last = nil
		w.buf = append(append(append(w.buf, `,"`...), schemas.SurfaceSets[w.at]...), `":[`...)
	}
}

// finish completes the document.
func (w *surfaceWriter) finish() error {
	w.open(len(schemas.SurfaceSets) - 1)
	w.buf = append(w.buf, "]}"...)
	return w.flush(0)
}

func (w *surfaceWriter) flush(limit int) error {
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
	if len(raw) < 3 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, badValue(raw)
	}
	inner := raw[1 : len(raw)-1]
	plain := true
	for _, c := range inner {
		plain = plain && c >= 0x20 && c != '"' && c != '\\'
	}
	if plain {
		return inner, nil
	}
	var s string
	if err := schemas.Unmarshal(raw, &s); err != nil || !bytes.Equal(schemas.AppendQuote(nil, []byte(s)), raw) {
		return nil, badValue(raw)
	}
	return []byte(s), nil
}

func badValue(raw []byte) error {
	return formf("surface value is not a non-empty JSON string in canonical form: %.120q", raw)
}
