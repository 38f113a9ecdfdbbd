package schemas

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MarshalShown encodes like Marshal, for outputs that a terminal may show: what nobody can see, or what changes the
// direction of a text, is escaped. The values are the same. Archives and what is signed have the form of Marshal.
func MarshalShown(v any) ([]byte, error) {
	b, err := Marshal(v)
	if err != nil || !bytes.ContainsFunc(b, unseen) {
		return b, err
	}
	out := make([]byte, 0, len(b)+64)
	for _, r := range string(b) {
		switch {
		case !unseen(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out, nil
}

// unseen reports whether a rune is one that JSON leaves as it is and a terminal or a reader does not.
func unseen(r rune) bool {
	return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
