package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// lockHead is the first line of a lock file.
var lockHead = schemas.ReportBegins(schemas.VersionCapabilityLock) + ","

// A lock file is a JSON document of lines that merge: one text or item in each, with a comma after it. A
// null ends each list, so that the line before the end is like the others.
const (
	lockFolds    = `"folds":[`
	lockCoverage = `"coverage":[`
	lockItems    = `"items":[`
	lockNext     = `null],`
	lockEnd      = `null]}`
)

// maxLock bounds a lock file, in bytes.
const maxLock = 64 << 20

// lockFile is a lock file that was read.
type lockFile struct {
	name   string
	digest string
	folds  []string
	end    int // the line after the last item
}

// lockItem is a line.
type lockItem struct {
	Kind  string    `json:"kind"`
	Value string    `json:"value"`
	How   string    `json:"how,omitempty"`
	Seen  [2]uint32 `json:"seen,omitzero"` // in how many of how many runs, if not in all
}

// readLock reads a lock file as a side.
func readLock(name string) (*side, error) {
	b, err := tool.ReadFile(name, maxLock)
	if err != nil {
		return nil, err
	}
	s := newSide()
	s.lock = &lockFile{name: schemas.Text(name), digest: schemas.DigestOf(b)}
	p := &lockParser{side: s, rest: bytes.TrimSuffix(b, []byte("\n")), more: true}
	if err := p.read(); err != nil {
		return nil, tool.Fail(tool.ExitInput, fmt.Errorf("%s:%d: %w", name, p.at, err), "runner-diff --write-lock FILE RUN.tar.gz… makes a new one")
	}
	return s, nil
}

type lockParser struct {
	side *side
	rest []byte // after that line
	more bool   // there is one more
	at   int    // the line that was read last, from 1
}

func (p *lockParser) next() ([]byte, error) {
	p.at++
	if !p.more {
		return nil, errors.New("the file ends before the lock does")
	}
	var line []byte
	line, p.rest, p.more = bytes.Cut(p.rest, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	for _, mark := range []string{"<<<<<<< ", "=======", ">>>>>>> ", "||||||| "} {
		if bytes.HasPrefix(line, []byte(mark)) {
			return nil, errors.New("a merge was not finished: keep the lines of both sides, and take the marks out")
		}
	}
	return line, nil
}

func (p *lockParser) expect(want string) error {
	line, err := p.next()
	if err == nil && string(line) != want {
		err = fmt.Errorf("expected %s", want)
	}
	return err
}

// list reads the lines up to the null that ends a list.
func (p *lockParser) list(head, end string, take func([]byte) error) error {
	if err := p.expect(head); err != nil {
		return err
	}
	for {
		line, err := p.next()
		if err != nil || string(line) == end {
			return err
		}
		body, ok := bytes.CutSuffix(line, []byte(","))
		if !ok {
			return fmt.Errorf("expected one entry with a comma after it, or %s", end)
		}
		if err := take(body); err != nil {
			return err
		}
	}
}

func (p *lockParser) read() error {
	s := p.side
	if err := p.expect(lockHead); err != nil {
		return err
	}
	text := func(to *[]string) func([]byte) error {
		return func(b []byte) error {
			var v string
			err := schemas.Unmarshal(b, &v)
			*to = append(*to, v)
			return err
		}
	}
	if err := p.list(lockFolds, lockNext, text(&s.lock.folds)); err != nil {
		return err
	}
	if err := p.list(lockCoverage, lockNext, text(&s.coverage)); err != nil {
		return err
	}
	slices.Sort(s.coverage)
	s.coverage = slices.Compact(s.coverage)
	if err := p.list(lockItems, lockEnd, p.item); err != nil {
		return err
	}
	s.lock.end = p.at
	if p.more {
		p.at++
		return errors.New("there is more after the end of the lock")
	}
	return nil
}

// item takes the line of an item. After a merge the lines need not be sorted, and one can be there twice.
func (p *lockParser) item(b []byte) error {
	var v lockItem
	if err := schemas.Unmarshal(b, &v); err != nil {
		return err
	}
	kind, ok := kindOf(v.Kind)
	switch {
	case !ok:
		return fmt.Errorf("kind is %.100q, which is not known", v.Kind)
	case v.Value == "":
		return errors.New("an item without a value")
	case v.Seen != [2]uint32{} && (v.Seen[0] == 0 || v.Seen[0] >= v.Seen[1]):
		return fmt.Errorf("seen is %d of %d", v.Seen[0], v.Seen[1])
	case p.side.items.count >= maxItems:
		return fmt.Errorf("more than %d items", maxItems)
	}
	k := key{kind, v.Value, v.How}
	in, of := uint32(1), uint32(1)
	if v.Seen[1] > 0 {
		in, of = v.Seen[0], v.Seen[1]
	}
	i := p.side.items.get(k)
	switch {
	case i == nil:
		i = p.side.items.add(k)
	case uint64(i.in)*uint64(of) <= uint64(in)*uint64(i.of):
		return nil // the one that is seen less often holds
	}
	i.in, i.of, i.line = in, of, uint32(p.at)
	return nil
}

// write writes the side as a lock file.
func (s *side) write(w io.Writer, folds []string) error {
	b := bufio.NewWriterSize(w, 64<<10) // it keeps the error of any write
	line := func(v any) error {
		text, err := schemas.Marshal(v)
		b.Write(inert(text))
		b.WriteString(",\n")
		return err
	}
	b.WriteString(lockHead + "\n" + lockFolds + "\n")
	for _, name := range folds {
		if err := line(name); err != nil {
			return err
		}
	}
	b.WriteString(lockNext + "\n" + lockCoverage + "\n")
	for _, text := range s.coverage {
		if err := line(text); err != nil {
			return err
		}
	}
	b.WriteString(lockNext + "\n" + lockItems + "\n")
	for _, i := range s.items.sorted() {
		v := lockItem{Kind: i.name(), Value: i.value, How: i.how}
		if of := s.of(i); i.in < of {
			v.Seen = [2]uint32{i.in, of}
		}
		if err := line(v); err != nil {
			return err
		}
	}
	b.WriteString(lockEnd + "\n")
	return b.Flush()
}

// of is of how many runs an item could have been in.
func (s *side) of(i *item) uint32 {
	if i.of > 0 {
		return i.of
	}
	return uint32(len(s.runs))
}

// save writes a lock file, whole or not at all.
func (s *side) save(name string, folds []string) error {
	return tool.WriteFile(name, func(w io.Writer) error { return s.write(w, folds) })
}

// inert writes characters of a JSON text that nobody sees, or that turn the text round, as their escapes.
// So a file that people review shows what it says.
func inert(b []byte) []byte {
	if !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf }) {
		return b
	}
	var out []byte
	for _, r := range string(b) {
		switch {
		case r < utf8.RuneSelf || verdict.Printable("a"+string(r)+"a", 3) == "a"+string(r)+"a":
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
