package schemas

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of a correlation report, so that it can be read in bounded memory.
const (
	MaxReportBytes = 32 << 20
	MaxBindings    = MaxToolCalls
	MaxAmbiguities = 1 << 18
	maxReportPart  = 1 << 20 // bytes of one binding or ambiguity
	maxReportDepth = 8       // nesting of one of them
)

// ErrLimit means that a document has more than the limits allow.
var ErrLimit = errors.New("beyond the limits")

// ReadReport parses a correlation report of any length, element by element: what it refuses
// costs no more memory than one element, what it returns no more than the limits. The report must
// be in canonical form. fault says what is wrong with the report, err is that of the input.
func ReadReport(in io.Reader) (r *Report, fault, err error) {
	s := &reportReader{r: bufio.NewReaderSize(in, 64<<10), words: map[string]string{}}
	r = &Report{Bindings: []Binding{}, Ambiguities: []string{}}
	fault = s.report(r)
	if s.err != nil {
		return nil, nil, s.err
	}
	if fault != nil {
		return nil, fmt.Errorf("correlation report: %w", fault), nil
	}
	return r, nil, nil
}

type reportReader struct {
	r     *bufio.Reader
	raw   []byte            // the element being read
	words map[string]string // few, and in many bindings
	err   error             // of the input
}

func (s *reportReader) report(r *Report) error {
	for _, part := range []struct {
		key string
		to  *string
	}{{`{"schema":`, &r.Schema}, {`,"run_id":`, &r.RunID}, {`,"status":`, &r.Status}} {
		if err := s.lit(part.key); err != nil {
			return err
		}
		if err := s.element(part.to); err != nil {
			return fmt.Errorf("%s: %w", part.key[2:len(part.key)-2], err)
		}
	}
	err := s.list(`,"bindings":[`, "bindings", MaxBindings, func(i int) error {
		var b Binding
		if err := s.element(&b); err != nil {
			return err
		}
		s.share(&b)
		r.Bindings = append(r.Bindings, b)
		return b.check()
	})
	if err == nil {
		err = s.codes(`,"ambiguities":[`, "ambiguities", &r.Ambiguities)
	}
	if c, at := s.peek(); err == nil && at == nil && c == ',' {
		if err = s.codes(`,"notes":[`, "notes", &r.Notes); err == nil && len(r.Notes) == 0 {
			err = errors.New("notes is empty, expected no such key")
		}
	}
	if err == nil {
		err = s.lit("}")
	}
	if err != nil {
		return err
	}
	if _, err := s.r.ReadByte(); err == nil {
		return errors.New("bytes follow the report")
	} else if err != io.EOF {
		s.err = err
		return err
	}
	return first(head(r.Schema, SchemaReport, r.RunID), oneOf("status", r.Status, CorrelationClean, CorrelationPartial, CorrelationFailed))
}

// codes reads an array of codes.
func (s *reportReader) codes(open, name string, to *[]string) error {
	return s.list(open, name, MaxAmbiguities, func(int) error {
		var code string
		err := s.element(&code)
		*to = append(*to, code)
		return err
	})
}

// share makes bindings share the texts that many of them have.
func (s *reportReader) share(b *Binding) {
	word := func(p *string) {
		if old, ok := s.words[*p]; ok {
			*p = old
		} else if len(s.words) < 64 {
			s.words[*p] = *p
		}
	}
	if b.PolicyDecision != nil {
		word(b.PolicyDecision)
	}
	word(&b.KernelScope)
	if b.Window == RunWindow {
		b.Window = RunWindow
	}
}

// list reads the elements of an array, each by take.
func (s *reportReader) list(open, name string, most int, take func(i int) error) error {
	if err := s.lit(open); err != nil {
		return err
	}
	for i := 0; ; i++ {
		c, err := s.peek()
		if err != nil {
			return err
		}
		switch {
		case c == ']' && i >= 0:
			return s.lit("]")
		case i == most:
			return fmt.Errorf("more than %d %s: %w", most, name, ErrLimit)
		case i > 0:
			if err := s.lit(","); err != nil {
				return err
			}
		}
		if err := take(i); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
}

// element reads one value into v, which must have been written in canonical form.
func (s *reportReader) element(v any) error {
	if err := s.value(); err != nil {
		return err
	}
	if len(s.raw) == 0 || s.raw[0] <= ' ' {
		return errors.New("not in canonical form")
	}
	if err := Unmarshal(s.raw, v); err != nil {
		return err
	}
	if again, err := Marshal(v); err != nil || !bytes.Equal(again, s.raw) {
		return fmt.Errorf("keys are missing, null or not in canonical form: %.200s", s.raw)
	}
	return nil
}

// value reads the bytes of one value.
func (s *reportReader) value() error {
	s.raw = s.raw[:0]
	depth, text := 0, false
	for {
		c, err := s.peek()
		if err != nil {
			return err
		}
		switch {
		case text:
			text = c != '"'
			if c == '\\' {
				s.take(c)
				if c, err = s.peek(); err != nil {
					return err
				}
			}
		case c == '"':
			text = true
		case c == '{', c == '[':
			if depth++; depth > maxReportDepth {
				return fmt.Errorf("JSON nests more than %d deep: %w", maxReportDepth, ErrLimit)
			}
		case depth == 0 && (c == ',' || c == ']' || c == '}'):
			return nil
		case c == '}', c == ']':
			depth--
		}
		s.take(c)
		if len(s.raw) > maxReportPart {
			return fmt.Errorf("an element of more than %d bytes: %w", maxReportPart, ErrLimit)
		}
	}
}

func (s *reportReader) take(c byte) {
	s.raw = append(s.raw, c)
	s.r.Discard(1)
}

func (s *reportReader) peek() (byte, error) {
	b, err := s.r.Peek(1)
	if err == io.EOF {
		return 0, errors.New("it ends early")
	}
	if err != nil {
		s.err = err
		return 0, err
	}
	return b[0], nil
}

// lit skips exactly this text.
func (s *reportReader) lit(text string) error {
	for i := range len(text) {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c != text[i] {
			return fmt.Errorf("expected %s", text)
		}
		s.r.Discard(1)
	}
	return nil
}
