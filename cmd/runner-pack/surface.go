package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// surfaceWriter assembles the capability surface from its entries, one at a time.
type surfaceWriter struct {
	*archive.SurfaceWriter
	entries [len(schemas.SurfaceSets)]uint64
	set     int                              // of the last entry
	prefix  [len(schemas.SurfaceSets)][]byte // the text of an entry of each set before its value
}

func newSurfaceWriter(out *member, runID string) *surfaceWriter {
	w := &surfaceWriter{SurfaceWriter: archive.NewSurfaceWriter(out, runID)}
	for i := range schemas.SurfaceSets {
		w.prefix[i] = schemas.SurfaceEntryPrefix(runID, i)
	}
	return w
}

// formError is a fault of the input, as opposed to a failure to write.
type formError struct{ msg string }

func (e *formError) Error() string { return e.msg }

func formf(format string, a ...any) error { return &formError{fmt.Sprintf(format, a...)} }

// entry adds one surface entry. Entries must be sorted and not repeated.
func (w *surfaceWriter) entry(line []byte) error {
	for w.set < len(w.prefix) && !bytes.HasPrefix(line, w.prefix[w.set]) {
		w.set++
	}
	if w.set == len(w.prefix) {
		return formf("surface entry of an unknown set, of one that was finished before, or not in canonical form: %.120q", line)
	}
	w.entries[w.set]++
	err := w.AddQuoted(w.set, line[len(w.prefix[w.set]):len(line)-1])
	if err == nil {
		return nil
	}
	if fault := (*archive.FormError)(nil); errors.As(err, &fault) {
		return formf("%s", fault.Message)
	}
	return err
}
