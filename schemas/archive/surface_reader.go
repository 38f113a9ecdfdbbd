package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// SurfaceReader walks a capability surface value by value, in constant memory. It
// takes only the canonical form, so what it accepts is one document and no other.
type SurfaceReader struct {
	r     *bufio.Reader
	runID string
	set   int // index of the open set
	first bool
	raw   []byte // the value's JSON string
	again []byte // the same in canonical form
	value []byte
	last  []byte // the value before, in the same set
}

// FormError is a fault of a surface document, unlike a failure to read or write it.
type FormError struct {
	Rule    string // id of the rule that is broken
	Message string
}

func (e *FormError) Error() string { return e.Message }

func badForm(format string, a ...any) error {
	return &FormError{RuleDocumentForm, fmt.Sprintf(format, a...)}
}

// NewSurfaceReader reads a document up to its first value.
func NewSurfaceReader(r io.Reader) (*SurfaceReader, error) {
	s := &SurfaceReader{r: bufio.NewReaderSize(r, 64<<10), set: -1}
	if err := s.lit(`{"schema":"` + schemas.SchemaSurface + `","run_id":`); err != nil {
		return nil, err
	}
	if err := s.str(); err != nil {
		return nil, err
	}
	s.runID = string(s.value)
	return s, s.open()
}

// RunID is the document's run_id.
func (s *SurfaceReader) RunID() string { return s.runID }

// open steps into the next set's array.
func (s *SurfaceReader) open() error {
	s.set++
	s.first, s.last = true, s.last[:0]
	return s.lit(`,"` + schemas.SurfaceSets[s.set] + `":[`)
}

// Next returns the next value and the index of its set, io.EOF after the last. The
// value is valid until the following call. An error other than io.EOF is a
// *FormError or that of the input.
func (s *SurfaceReader) Next() (set int, value []byte, err error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, nil, s.ended(err)
		}
		if c == ']' {
			if err := s.closeSet(); err != nil {
				return 0, nil, err
			}
			continue
		}
		if s.first {
			if err := s.r.UnreadByte(); err != nil {
				return 0, nil, err
			}
		} else if c != ',' {
			return 0, nil, badForm("expected a comma or the end of %s", schemas.SurfaceSets[s.set])
		}
		return s.entry()
	}
}

// closeSet steps to the next set, or checks the end of the document and returns
// io.EOF.
func (s *SurfaceReader) closeSet() error {
	if s.set < len(schemas.SurfaceSets)-1 {
		return s.open()
	}
	if err := s.lit("}"); err != nil {
		return err
	}
	_, err := s.r.ReadByte()
	if err == nil {
		return badForm("bytes follow the document, expected its closing brace to be the last")
	}
	return err
}

func (s *SurfaceReader) entry() (int, []byte, error) {
	if err := s.str(); err != nil {
		return 0, nil, err
	}
	if !s.first && bytes.Compare(s.value, s.last) <= 0 {
		return 0, nil, &FormError{RuleSurfaceOrder, fmt.Sprintf("%s: %.100q is repeated or not in byte order", schemas.SurfaceSets[s.set], s.value)}
	}
	s.last, s.first = append(s.last[:0], s.value...), false
	return s.set, s.value, nil
}

func (s *SurfaceReader) ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return badForm("the document ends early")
	}
	return err
}

func (s *SurfaceReader) lit(text string) error {
	for i := range len(text) {
		c, err := s.r.ReadByte()
		if err != nil {
			return s.ended(err)
		}
		if c != text[i] {
			return badForm("expected %s", text)
		}
	}
	return nil
}

// str reads a JSON string in canonical form into s.value.
func (s *SurfaceReader) str() error {
	if err := s.lit(`"`); err != nil {
		return err
	}
	s.raw = append(s.raw[:0], '"')
	for {
		part, err := s.r.ReadSlice('"')
		s.raw = append(s.raw, part...)
		if len(s.raw) > MaxLine {
			return &FormError{RuleLimit, fmt.Sprintf("a value is longer than %d bytes", MaxLine)}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return s.ended(err)
		}
		if !openEscape(s.raw) {
			break
		}
	}
	return s.unquote()
}

// unquote makes s.value of s.raw.
func (s *SurfaceReader) unquote() error {
	if bytes.IndexByte(s.raw, '\\') < 0 {
		s.value = append(s.value[:0], s.raw[1:len(s.raw)-1]...)
	} else {
		var text string
		if err := schemas.Unmarshal(s.raw, &text); err != nil {
			return badForm("%.100q is not a JSON string", s.raw)
		}
		s.value = append(s.value[:0], text...)
	}
	// The strict form also excludes control characters and bad UTF-8.
	s.again = schemas.AppendQuote(s.again[:0], s.value)
	if !bytes.Equal(s.again, s.raw) || !utf8.Valid(s.value) {
		return badForm("%.100q is not in canonical form", s.raw)
	}
	return nil
}

// openEscape reports whether the quote that ends raw is an escaped one.
func openEscape(raw []byte) bool {
	n := 0
	for i := len(raw) - 2; i > 0 && raw[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}
