package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of text diffs, in bytes.
const (
	maxDiffed   = 1 << 20  // of one content
	maxDiff     = 64 << 10 // of the diff of one file
	maxAllDiffs = 8 << 20  // of all of a plan
)

// contextLines are shown around what changed.
const contextLines = 3

// diffs makes the text diffs of a plan until the bound for all is reached.
type diffs struct {
	r    *recorded
	left int
}

// of shows how the content of a file changed, if that was text. Nil: it was not, it is not in the archive, or there is no more room.
func (d *diffs) of(c *schemas.FileChange) (*gate.TextDiff, error) {
	before, known, err := d.text(c.Before)
	if err != nil || !known {
		return nil, err
	}
	after, known, err := d.text(c.After)
	if err != nil || !known || bytes.Equal(before, after) {
		return nil, err
	}
	edits := udiff.Lines(string(before), string(after))
	text, err := udiff.ToUnified("", "", string(before), edits, contextLines)
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	return d.cut(text), nil
}

// text is the content of a state, if that is a text that is known. A file that is not there has none.
func (d *diffs) text(s *schemas.FileState) (content []byte, known bool, err error) {
	switch {
	case s == nil:
		return nil, true, nil
	case s.Kind != schemas.KindFile || s.Link != "" || s.Unread != "" || *s.Size > maxDiffed:
		return nil, false, nil
	case *s.Size == 0:
		return nil, true, nil
	case !d.r.has(s.SHA256):
		return nil, false, nil
	}
	f, err := os.Open(d.r.blob(s.SHA256))
	if err != nil {
		return nil, false, tool.ScratchError(err)
	}
	defer f.Close()
	if content, err = io.ReadAll(io.LimitReader(f, maxDiffed+1)); err != nil {
		return nil, false, tool.ScratchError(err)
	}
	return content, utf8.Valid(content) && bytes.IndexByte(content, 0) < 0, nil
}

// cut takes the lines that there is room for, as they are, without the two of names.
func (d *diffs) cut(text string) *gate.TextDiff {
	t := new(gate.TextDiff)
	room := min(maxDiff, d.left)
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n <= 2 {
			continue
		}
		if b.Len()+len(line) > room {
			t.Cut = true
			break
		}
		b.WriteString(line)
	}
	t.Text = b.String()
	d.left -= b.Len()
	return t
}
