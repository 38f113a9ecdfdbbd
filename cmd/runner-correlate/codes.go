package main

import (
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// codes are the ambiguities and notes found so far. schemas.Ambiguities has the table.
type codes map[string]struct{}

// add adds a whole code.
func (c codes) add(code string) { c[code] = struct{}{} }

// addFor adds a code with what it is about: an id, a name or a path.
func (c codes) addFor(code, what string) { c[code+":"+what] = struct{}{} }

func (c codes) sorted() []string { return slices.Sorted(maps.Keys(c)) }

// addLog adds what is wrong with the log of a layer as a whole.
func (c codes) addLog(l *schemas.Layer, end *logEnd, empty bool) {
	f := end.facts
	if bad := end.bad; bad.line > 0 {
		c.add(schemas.LineCode(l.LogCode(schemas.LogInvalid), bad.line, bad.why))
	}
	for _, is := range []struct {
		so    bool
		fault schemas.LogFault
	}{
		{empty, schemas.LogEmpty}, {f.stopped, schemas.LogFlooded}, {f.replaced, schemas.LogReplaced}, {f.unterminated, schemas.LogTruncated},
		{f.writerOpen, schemas.LogWriterOpen}, {f.writtenAfter, schemas.LogWrittenAfter},
	} {
		if is.so {
			c.add(l.LogCode(is.fault))
		}
	}
}
