package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// surfaceFile is the surface document, which stands in front of the layers that
// it follows from: in memory while it is small, else in a scratch file.
type surfaceFile struct {
	mem  []byte // the document, or its beginning
	file *os.File
	size int64
	bad  bool // not worth a closer look
}

func (s *surfaceFile) close() {
	if s.file != nil {
		s.file.Close()
	}
}

func (s *surfaceFile) reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.mem)
	}
	return io.NewSectionReader(s.file, 0, s.size)
}

// keepSurface stores the document. Small ones are checked as a whole as well.
func (v *verifier) keepSurface(r io.Reader) error {
	s := &surfaceFile{}
	v.surface = s
	head, err := io.ReadAll(io.LimitReader(r, maxWholeSurface))
	if err != nil {
		return err
	}
	s.mem, s.size = head, int64(len(head))
	if len(head) < maxWholeSurface {
		v.wholeSurface(head)
		return nil
	}
	if s.file, err = tool.Spool(); err != nil {
		return fmt.Errorf("opening a scratch file: %w", err)
	}
	// Errors of the archive must stay apart from errors of the scratch file.
	buf := make([]byte, 256<<10)
	n := copy(buf, head)
	s.mem = nil
	for left := head[n:]; ; {
		if _, err := s.file.Write(buf[:n]); err != nil {
			return fmt.Errorf("writing a scratch file: %w", err)
		}
		if len(left) > 0 {
			n = copy(buf, left)
			left = left[n:]
			continue
		}
		var rerr error
		if n, rerr = io.ReadFull(r, buf); n == 0 {
			if rerr == io.EOF {
				return nil
			}
			return rerr
		}
		s.size += int64(n)
	}
}

func (v *verifier) wholeSurface(b []byte) {
	spec, _ := schemas.FormOf(schemas.SchemaSurface)
	b, ok := v.documentForm(spec.Member, b)
	if ok && v.documentSchema(spec, b) {
		v.whole[spec.Member] = b
	}
	v.surface.mem, v.surface.size, v.surface.bad = b, int64(len(b)), !ok
}

// surfaceReader walks the document value by value. It takes the canonical form
// alone, so what it accepts is one document and no other.
type surfaceReader struct {
	r     *bufio.Reader
	runID string
	set   int // index of the open set
	first bool
	raw   []byte // the value's JSON string
	again []byte // the same in canonical form
	value []byte
	last  []byte // the value before, in the same set
}

// formError is a fault of the document.
type formError struct{ rule, msg string }

func (e *formError) Error() string { return e.msg }

func badForm(format string, a ...any) error {
	return &formError{ruleDocumentForm, fmt.Sprintf(format, a...)}
}

func newSurfaceReader(r io.Reader) (*surfaceReader, error) {
	s := &surfaceReader{r: bufio.NewReaderSize(r, 64<<10), set: -1}
	if err := s.lit(`{"schema":"` + schemas.SchemaSurface + `","run_id":`); err != nil {
		return nil, err
	}
	if err := s.str(); err != nil {
		return nil, err
	}
	s.runID = string(s.value)
	return s, s.open()
}

// open steps into the next set's array.
func (s *surfaceReader) open() error {
	s.set++
	s.first, s.last = true, s.last[:0]
	return s.lit(`,"` + schemas.SurfaceSets[s.set] + `":[`)
}

// next returns the next value, io.EOF behind the last. The value is valid until
// the following call.
func (s *surfaceReader) next() (int, []byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, nil, s.ended(err)
		}
		if c == ']' {
			if s.set < len(schemas.SurfaceSets)-1 {
				if err := s.open(); err != nil {
					return 0, nil, err
				}
				continue
			}
			if err := s.lit("}"); err != nil {
				return 0, nil, err
			}
			if _, err := s.r.ReadByte(); err != io.EOF {
				if err == nil {
					err = badForm("bytes follow the document, expected its closing brace to be the last")
				}
				return 0, nil, err
			}
			return 0, nil, io.EOF
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

func (s *surfaceReader) entry() (int, []byte, error) {
	if err := s.str(); err != nil {
		return 0, nil, err
	}
	if !s.first && bytes.Compare(s.value, s.last) <= 0 {
		return 0, nil, &formError{ruleSurfaceOrder, fmt.Sprintf("%s: %.100q is repeated or not in byte order", schemas.SurfaceSets[s.set], s.value)}
	}
	s.last, s.first = append(s.last[:0], s.value...), false
	return s.set, s.value, nil
}

func (s *surfaceReader) ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return badForm("the document ends early")
	}
	return err
}

func (s *surfaceReader) lit(text string) error {
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
func (s *surfaceReader) str() error {
	if err := s.lit(`"`); err != nil {
		return err
	}
	s.raw = append(s.raw[:0], '"')
	escaped := false
	for {
		part, err := s.r.ReadSlice('"')
		s.raw = append(s.raw, part...)
		if len(s.raw) > maxLine {
			return &formError{ruleLimit, fmt.Sprintf("a value is longer than %d bytes", maxLine)}
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
		escaped = true
	}
	escaped = escaped || bytes.IndexByte(s.raw, '\\') >= 0
	if !escaped {
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
