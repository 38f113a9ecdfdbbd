package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the high bit of the first byte of w set that is a quote, a
// backslash, a control character or not ASCII; for later bytes it may be wrong.
func special(w uint64) uint64 {
	return (w | (w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) & highs
}

// plain is the index of the first byte from i on that special is about.
func plain(b []byte, i int) int {
	for i+16 <= len(b) {
		p := b[i : i+16 : i+16]
		v, w := special(binary.LittleEndian.Uint64(p)), special(binary.LittleEndian.Uint64(p[8:]))
		if v|w == 0 {
			i += 16
			continue
		}
		if v != 0 {
			return i + bits.TrailingZeros64(v)>>3
		}
		return i + 8 + bits.TrailingZeros64(w)>>3
	}
	for i < len(b) {
		if c := b[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return i
		}
		i++
	}
	return i
}

// runes is the index after the well-formed multi-byte characters that begin at i.
func runes(b []byte, i int) int {
	for i < len(b) {
		c := b[i]
		p := b[i:]
		switch {
		case c < 0xC2:
			return i
		case c < 0xE0:
			if len(p) < 2 || p[1]&0xC0 != 0x80 {
				return i
			}
			i += 2
		case c < 0xF0:
			if len(p) < 3 || p[1]&0xC0 != 0x80 || p[2]&0xC0 != 0x80 || c == 0xE0 && p[1] < 0xA0 || c == 0xED && p[1] > 0x9F {
				return i
			}
			i += 3
		default:
			if _, n := utf8.DecodeRune(p); n < 4 {
				return i
			}
			i += 4
		}
	}
	return i
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// str goes on in a string and returns the index of the first byte that it left.
func (s *Scanner) str(b []byte, i int) int {
	from := i
	for i < len(b) {
		i = plain(b, i)
		if i == len(b) {
			break
		}
		c := b[i]
		switch {
		case c == '"':
			s.take(b[from:i])
			i++
			if s.isKey {
				s.endKey()
			} else {
				s.endScalar(s.base + i)
			}
			return i
		case c == '\\':
			s.take(b[from:i])
			if i+1 < len(b) && escapes[b[i+1]] != 0 {
				s.take1(escapes[b[i+1]])
				i += 2
			} else if r, n := unicodeEscape(b[i:]); n > 0 {
				s.takeRune(r)
				i += n
			} else {
				s.state = stEscape
				return i + 1
			}
			from = i
		case c < 0x20:
			s.fail(schemas.ReasonBadJSON)
			return i
		default:
			j := runes(b, i)
			if j < len(b) && b[j] >= 0x80 {
				if utf8.FullRune(b[j:]) {
					s.fail(schemas.ReasonBadUTF8)
					return i
				}
				s.take(b[from:])
				s.partLen, s.state = copy(s.part[:], b[j:]), stRune
				return len(b)
			}
			i = j
		}
	}
	s.take(b[from:])
	return i
}

// unicodeEscape is the character of a whole \uXXXX, or of two that are a surrogate
// pair, and its length; 0 for what must be read byte by byte.
func unicodeEscape(b []byte) (rune, int) {
	r := codeUnit(b)
	switch {
	case r < 0:
		return 0, 0
	case r < 0xD800 || r > 0xDFFF:
		return r, 6
	case r > 0xDBFF:
		return 0, 0
	}
	low := codeUnit(b[6:])
	if low < 0xDC00 || low > 0xDFFF {
		return 0, 0
	}
	return (r-0xD800)<<10 | (low - 0xDC00) + 0x10000, 12
}

// codeUnit is the number of a whole \uXXXX, else -1.
func codeUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	a, c, d, e := hexDigit(b[2]), hexDigit(b[3]), hexDigit(b[4]), hexDigit(b[5])
	if a|c|d|e < 0 {
		return -1
	}
	return a<<12 | c<<8 | d<<4 | e
}

// hexDigits has one more than the value of each digit.
var hexDigits = func() (t [256]int8) {
	for i, c := range "0123456789abcdef" {
		t[c] = int8(i + 1)
	}
	for i, c := range "ABCDEF" {
		t[c] = int8(i + 11)
	}
	return t
}()

func hexDigit(c byte) rune { return rune(hexDigits[c]) - 1 }

// inString takes one byte of an escape, or of a character that chunks have cut;
// false leaves the byte for the state that is now set.
func (s *Scanner) inString(c byte) bool {
	switch s.state {
	case stEscape:
		switch {
		case c == 'u':
			s.state, s.hex, s.hexLeft = stHex, 0, 4
		case escapes[c] != 0:
			s.take1(escapes[c])
			s.state = stString
		default:
			s.fail(schemas.ReasonBadJSON)
		}
	case stHex:
		d := hexDigit(c)
		if d < 0 {
			s.fail(schemas.ReasonBadJSON)
			return false
		}
		s.hex = s.hex<<4 | d
		if s.hexLeft--; s.hexLeft == 0 {
			s.unit(s.hex)
		}
	case stLow:
		if c != '\\' {
			s.lone()
			return false
		}
		s.state = stLowU
	case stLowU:
		if c != 'u' {
			s.lone()
			s.state = stEscape
			return false
		}
		s.state, s.hex, s.hexLeft = stHex, 0, 4
	case stRune:
		s.part[s.partLen] = c
		s.partLen++
		s.take1(c)
		if p := s.part[:s.partLen]; utf8.FullRune(p) {
			if _, n := utf8.DecodeRune(p); n != len(p) {
				s.fail(schemas.ReasonBadUTF8)
			}
			s.state = stString
		}
	}
	return true
}

// unit takes the value of a \u escape.
func (s *Scanner) unit(u rune) {
	low := u >= 0xDC00 && u <= 0xDFFF
	high := u >= 0xD800 && u < 0xDC00
	switch {
	case s.high != 0 && low:
		s.takeRune((s.high-0xD800)<<10 | (u - 0xDC00) + 0x10000)
		s.high, s.state = 0, stString
		return
	case s.high != 0:
		s.lone()
	}
	switch {
	case high:
		s.high, s.state = u, stLow
	case low:
		s.lone()
		s.state = stString
	default:
		s.takeRune(u)
		s.state = stString
	}
}

// lone is a surrogate without its other half: decoders read different characters, so
// it may be only in text that the proxy does not compare.
func (s *Scanner) lone() {
	s.high, s.state = 0, stString
	if !s.surrogate || s.note || s.isKey {
		s.fail(schemas.ReasonBadUTF8)
	}
}
