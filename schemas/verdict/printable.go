package verdict

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable shortens s to limit characters and escapes characters that a terminal would
// interpret or hide: control and format characters, unusual spaces, letters without a shape,
// invalid UTF-8. So that what is next to a name cannot be part of it, a space that begins or ends
// the text or comes after a space is escaped too. Different names in text form stay different,
// if they are not shortened. What was made printable stays as it is.
func Printable(s string, limit int) string {
	var b strings.Builder
	before := ' '
	for n := 0; len(s) > 0; n++ {
		if n == limit {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1 || r == ' ' && (before == ' ' || len(s) == 1):
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r) && !unseen(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		before, s = r, s[size:]
	}
	return b.String()
}

// brailleBlank is a symbol that looks like a space.
const brailleBlank = '\u2800'

// unseen reports whether a printable character has no shape: fillers, variation selectors.
func unseen(r rune) bool {
	return r > unicode.MaxLatin1 && (r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}
