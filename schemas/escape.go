package schemas

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendText appends the text form of a byte string to dst: a backslash is
// doubled and every byte outside valid UTF-8 becomes \xHH (lower-case hex). The
// mapping is injective, so different file names have different texts
// (README.md, "Names as text").
func AppendText(dst, src []byte) []byte {
	start := 0
	for i := 0; i < len(src); {
		c := src[i]
		if c < utf8.RuneSelf && c != '\\' {
			i++
			continue
		}
		if c == '\\' {
			dst = append(dst, src[start:i]...)
			dst = append(dst, '\\', '\\')
			i++
			start = i
			continue
		}
		_, size := utf8.DecodeRune(src[i:])
		if size > 1 {
			i += size
			continue
		}
		dst = append(dst, src[start:i]...)
		dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		i++
		start = i
	}
	return append(dst, src[start:]...)
}

// Text is AppendText for strings.
func Text(s string) string { return string(AppendText(nil, []byte(s))) }

// ErrText means that a text is not the text form of any byte string.
var ErrText = errors.New("text is not an escaped byte string")

// Untext is the inverse of Text. It refuses every text that Text cannot have
// produced, so that a name has exactly one spelling.
func Untext(s string) ([]byte, error) {
	if !IsText([]byte(s)) {
		return nil, ErrText
	}
	out, _ := appendUntext(make([]byte, 0, len(s)), []byte(s))
	return out, nil
}

// IsText reports whether s is the text form of some byte string: valid UTF-8, of which a backslash
// is doubled, or begins the escape of a byte that is not part of valid UTF-8 there.
func IsText(s []byte) bool {
	if !utf8.Valid(s) {
		return false
	}
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			next := bytes.IndexByte(s[i:], '\\')
			if next < 0 {
				return true
			}
			i += next
		}
		if i+1 < len(s) && s[i+1] == '\\' {
			i += 2
			continue
		}
		if !escapeNeeded(s[i:]) {
			return false
		}
		i += escapeLength
	}
	return true
}

const escapeLength = len(`\xff`)

// escapeNeeded reports whether s begins with the escape of a byte that is not part of valid UTF-8.
// Only escapes can follow it as the rest of a character: what is not escaped is whole.
func escapeNeeded(s []byte) bool {
	var raw [utf8.UTFMax]byte
	n := 0
	for ; n < len(raw) && len(s) >= escapeLength && s[0] == '\\' && s[1] == 'x'; n++ {
		high, low := unhex(s[2]), unhex(s[3])
		if high < 0 || low < 0 {
			break
		}
		raw[n], s = byte(high<<4|low), s[escapeLength:]
		if c := raw[0]; c >= 0x80 && c < 0xc2 || c > 0xf4 {
			return true // it begins no character
		}
	}
	if n == 0 || raw[0] < utf8.RuneSelf {
		return false
	}
	_, size := utf8.DecodeRune(raw[:n])
	return size == 1
}

// appendUntext undoes the escapes of s, including those that AppendText does not write. It
// returns false for an invalid escape.
func appendUntext(dst, s []byte) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\':
			dst = append(dst, s[i])
		case i+1 < len(s) && s[i+1] == '\\':
			dst = append(dst, '\\')
			i++
		case i+3 < len(s) && s[i+1] == 'x' && unhex(s[i+2]) >= 0 && unhex(s[i+3]) >= 0:
			dst = append(dst, byte(unhex(s[i+2])<<4|unhex(s[i+3])))
			i += 3
		default:
			return dst, false
		}
	}
	return dst, true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// AppendQuote appends s as a JSON string in the contract's byte form: only the
// quote, the backslash and control characters are escaped. s must be valid UTF-8.
func AppendQuote[T []byte | string](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := len(dst)
	dst = append(dst, s...)
	if !simple(dst[from:]) {
		if end, _ := lookAtAll(dst, from); end < len(dst) {
			dst = appendEscaped(dst[:end], s[end-from:])
		}
	}
	return append(dst, '"')
}

// appendEscaped is AppendQuote without the quotes.
func appendEscaped[T []byte | string](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendTextQuote appends the JSON string of the text form of raw bytes.
func AppendTextQuote(dst, raw []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(raw); {
		c := raw[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			if _, size = utf8.DecodeRune(raw[i:]); size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, raw[start:i]...)
		switch {
		case c == '\\':
			dst = append(dst, `\\\\`...)
		case c >= utf8.RuneSelf:
			dst = append(dst, '\\', '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = appendEscape(dst, c)
		}
		i++
		start = i
	}
	dst = append(dst, raw[start:]...)
	return append(dst, '"')
}
