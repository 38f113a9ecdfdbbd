package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShellWord is a word as a shell reads it, without raw control characters.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-=+,:@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) >= 0 {
		return dollarQuoted(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// dollarQuoted is a word in the form of POSIX 2024 (bash, zsh and ksh have it too) in which any byte can be
// written. Nothing in it is expanded.
func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c <= '~':
			b.WriteByte(c)
		default: // three octal digits: what comes after them is not read as part of the number
			fmt.Fprintf(&b, "\\%03o", c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
