package schemas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"
)

// ErrRunID means that a line belongs to another run than the one being read.
var ErrRunID = errors.New("line of another run")

// LineError says what is wrong with a line and where.
type LineError struct {
	Offset int // bytes from the start of the line
	Reason string
	Class  error // ErrRunID, or nil
}

func (e *LineError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason) }
func (e *LineError) Unwrap() error { return e.Class }

// scanner reads one compact JSON object. It is strict and does not allocate for valid
// lines: strings without escapes alias the line, the others are unescaped into buf. err
// keeps the first error.
type scanner struct {
	b   []byte
	i   int
	buf []byte
	err *LineError
	odd bool // a string had an escape that AppendQuote does not write

	scratch []byte // of validText
}

func (s *scanner) reset(line []byte) { s.b, s.i, s.buf, s.err, s.odd = line, 0, s.buf[:0], nil, false }

// fail keeps the first error and returns false, so that callers can return its result.
func (s *scanner) fail(format string, a ...any) bool {
	if s.err == nil {
		s.err = &LineError{Offset: s.i, Reason: fmt.Sprintf(format, a...)}
	}
	return false
}

// lit skips exactly this text.
func (s *scanner) lit(text string) bool {
	if len(s.b)-s.i >= len(text) && string(s.b[s.i:s.i+len(text)]) == text {
		s.i += len(text)
		return true
	}
	return s.fail("expected %s", text)
}

// key reads `"name":` and returns name. Keys are plain lower-case names; a key that is
// written with escapes is an unknown key.
func (s *scanner) key() ([]byte, bool) {
	i := s.i
	if i >= len(s.b) || s.b[i] != '"' {
		return nil, s.fail("expected a key")
	}
	i++
	start := i
	for i < len(s.b) && (s.b[i] == '_' || 'a' <= s.b[i] && s.b[i] <= 'z' || '0' <= s.b[i] && s.b[i] <= '9') {
		i++
	}
	if i+1 >= len(s.b) || s.b[i] != '"' || s.b[i+1] != ':' {
		return nil, s.fail("expected a key of lower-case letters, digits and _, then a colon")
	}
	s.i = i + 2
	return s.b[start:i], true
}

// more is called after a value. It returns true at a comma, which it skips, and false at
// the closing brace that ends the line, or after an error.
func (s *scanner) more() bool {
	if s.i < len(s.b) {
		switch s.b[s.i] {
		case ',':
			s.i++
			return true
		case '}':
			if s.i+1 != len(s.b) {
				s.i++
				return s.fail("data after the object")
			}
			return false
		}
	}
	return s.fail("expected a comma or the end of the object")
}

// uint reads a canonical decimal of at most limit.
func (s *scanner) uint(limit uint64) (uint64, bool) {
	b := s.b
	if v, end := digits(b, s.i); end > s.i && v <= limit && (end == len(b) || b[end] != '.' && b[end] != 'e' && b[end] != 'E') {
		s.i = end
		return v, true
	}
	i := s.i
	var v uint64
	for ; i < len(b); i++ {
		d := uint64(b[i] - '0')
		if d > 9 {
			break
		}
		if v >= math.MaxUint64/10 && (v > math.MaxUint64/10 || d > math.MaxUint64%10) {
			return 0, s.fail("number is too large, at most %d", limit)
		}
		v = v*10 + d
	}
	n := i - s.i
	switch {
	case n == 0:
		return 0, s.fail("expected an unsigned integer")
	case n > 1 && b[s.i] == '0':
		return 0, s.fail("number with a leading zero")
	case v > limit:
		return 0, s.fail("number is too large, at most %d", limit)
	case i < len(b) && (b[i] == '.' || b[i] == 'e' || b[i] == 'E'):
		return 0, s.fail("expected an integer, not a float")
	}
	s.i = i
	return v, true
}

func (s *scanner) uint32() (uint32, bool) {
	v, ok := s.uint(math.MaxUint32)
	return uint32(v), ok
}

// int reads a canonical decimal between min and max, which straddle zero.
func (s *scanner) int(min, max int64) (int64, bool) {
	if s.i >= len(s.b) || s.b[s.i] != '-' {
		v, ok := s.uint(uint64(max))
		return int64(v), ok
	}
	start := s.i
	s.i++
	v, ok := s.uint(-uint64(min))
	if !ok {
		return 0, false
	}
	if v == 0 {
		s.i = start
		return 0, s.fail("minus zero is not canonical")
	}
	return -int64(v), true
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special sets the high bit of each byte of x that a JSON string cannot contain unescaped.
// Only the lowest bit that is set is exact: a borrow can set wrong bits above it.
func special(x uint64) uint64 {
	quote := x ^ '"'*everyByte
	slash := x ^ '\\'*everyByte
	return ((quote-everyByte)&^quote | (slash-everyByte)&^slash | (x-' '*everyByte)&^x) & highBits
}

// str reads a string. The result aliases the line or the scanner's buffer and is
// never nil when ok.
func (s *scanner) str() ([]byte, bool) {
	b := s.b
	if s.i >= len(b) || b[s.i] != '"' {
		return nil, s.fail("expected a string")
	}
	start := s.i + 1
	i, high := unescaped(b, start)
	if i >= len(b) {
		return nil, s.fail("string without an end")
	}
	if b[i] != '"' {
		return s.strSlow(start, i)
	}
	if high && !utf8.Valid(b[start:i]) {
		return nil, s.fail("string is not valid UTF-8")
	}
	s.i = i + 1
	return b[start:i:i], true
}

// simple reports whether text is ASCII that a JSON string can hold as it is, like nearly all names. It reports false also of others
// that are: where a byte borrows from the next one, or is not ASCII, the highest bit of some byte is set.
func simple(text []byte) bool {
	odd := func(x uint64) uint64 {
		return x | (x - ' '*everyByte) | (x ^ '"'*everyByte - everyByte) | (x ^ '\\'*everyByte - everyByte)
	}
	n := len(text)
	if n < 8 {
		end, high := lookAtAll(text, 0)
		return end == n && !high
	}
	seen := odd(binary.LittleEndian.Uint64(text[n-8:])) // some bytes are looked at twice
	for len(text) >= 32 {
		seen |= odd(binary.LittleEndian.Uint64(text)) | odd(binary.LittleEndian.Uint64(text[8:])) |
			odd(binary.LittleEndian.Uint64(text[16:])) | odd(binary.LittleEndian.Uint64(text[24:]))
		text = text[32:]
	}
	for len(text) >= 8 {
		seen |= odd(binary.LittleEndian.Uint64(text))
		text = text[8:]
	}
	return seen&highBits == 0
}

// unescaped is where the text at b[i:] ends that a JSON string can hold as it is, and whether a byte of it is not ASCII.
func unescaped(b []byte, i int) (end int, high bool) {
	if n := bytes.IndexByte(b[i:], '"'); n >= 0 && simple(b[i:i+n]) {
		return i + n, false
	}
	return lookAtAll(b, i)
}

// lookAtAll is unescaped for any text.
func lookAtAll(b []byte, i int) (end int, high bool) {
	var seen uint64
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		if m := special(x); m != 0 {
			n := bits.TrailingZeros64(m) &^ 7
			return i + n/8, (seen|x&(1<<n-1))&highBits != 0
		}
		seen |= x
		i += 8
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
		seen |= uint64(b[i])
		i++
	}
	return i, seen&highBits != 0
}

// IsPlain reports whether a JSON string can hold a text as it is.
func IsPlain(text []byte) bool {
	if simple(text) {
		return true
	}
	end, _ := lookAtAll(text, 0)
	return end == len(text)
}

// strSlow reads the rest of a string that has an escape or an invalid byte at i.
func (s *scanner) strSlow(start, i int) ([]byte, bool) {
	b, from := s.b, len(s.buf)
	s.buf = append(s.buf, b[start:i]...)
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			out := s.buf[from:len(s.buf):len(s.buf)]
			if !utf8.Valid(out) {
				return nil, s.fail("string is not valid UTF-8")
			}
			s.i = i + 1
			return out, true
		case c < 0x20:
			s.i = i
			return nil, s.fail("control character in a string")
		case c != '\\':
			s.buf = append(s.buf, c)
			i++
		default:
			n := s.escape(b[i:])
			if n == 0 {
				s.i = i
				return nil, s.fail("bad escape in a string")
			}
			i += n
		}
	}
	return nil, s.fail("string without an end")
}

// escape appends the character of the escape that e begins with and returns the
// escape's length, 0 when it is not one. A lone surrogate is not one.
func (s *scanner) escape(e []byte) int {
	if len(e) < 2 {
		return 0
	}
	switch e[1] {
	case '"', '\\', '/':
		s.odd = s.odd || e[1] == '/'
		s.buf = append(s.buf, e[1])
	case 'b':
		s.buf = append(s.buf, '\b')
	case 't':
		s.buf = append(s.buf, '\t')
	case 'n':
		s.buf = append(s.buf, '\n')
	case 'f':
		s.buf = append(s.buf, '\f')
	case 'r':
		s.buf = append(s.buf, '\r')
	case 'u':
		r := hex4(e)
		s.odd = s.odd || r < 0 || r >= 0x20 || string(appendEscape(nil, byte(r))) != string(e[:6])
		switch {
		case r < 0:
			return 0
		case r < 0xd800 || r > 0xdfff:
			s.buf = utf8.AppendRune(s.buf, r)
			return 6
		case r > 0xdbff || len(e) < 12:
			return 0
		}
		low := hex4(e[6:])
		if low < 0xdc00 || low > 0xdfff {
			return 0
		}
		s.buf = utf8.AppendRune(s.buf, (r-0xd800)<<10+(low-0xdc00)+0x10000)
		return 12
	default:
		return 0
	}
	return 2
}

// hex4 is the value of \uXXXX at the start of e, -1 when it is not one.
func hex4(e []byte) rune {
	if len(e) < 6 || e[0] != '\\' || e[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range e[2:6] {
		if 'A' <= c && c <= 'F' {
			c += 'a' - 'A'
		}
		d := unhex(c)
		if d < 0 {
			return -1
		}
		r = r<<4 | rune(d)
	}
	return r
}

// text reads a string that must be the text form of some byte string.
func (s *scanner) text() ([]byte, bool) {
	at := s.i
	v, ok := s.str()
	// Valid UTF-8 can only be an invalid text if it has a backslash, and only an escaped
	// string has one.
	if ok && s.i-at != len(v)+2 && !s.validText(v) {
		s.i = at
		return nil, s.fail("%v", ErrText)
	}
	return v, ok
}

// word reads a string that must be one of a closed set and returns the set's
// own copy of it, so that nothing is allocated.
func (s *scanner) word(set func() map[string]string) (string, bool) {
	at := s.i
	v, ok := s.str()
	if !ok {
		return "", false
	}
	w, ok := set()[string(v)]
	if !ok {
		s.i = at
		return "", s.fail("unknown word %.60q", v)
	}
	return w, true
}

// words makes such a set when it is first needed.
func words(w ...string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		m := make(map[string]string, len(w))
		for _, s := range w {
			m[s] = s
		}
		return m
	})
}

// validText reports whether v is the text form of some byte string.
func (s *scanner) validText(v []byte) bool {
	raw, ok := appendUntext(s.scratch[:0], v)
	n := len(raw)
	s.scratch = AppendText(raw, raw)
	return ok && bytes.Equal(s.scratch[n:], v)
}
