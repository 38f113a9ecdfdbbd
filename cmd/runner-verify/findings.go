package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas/archive"
)

// At most maxFindings are reported, and maxAlike of one rule in one member, so
// that one broken layer does not hide what else is wrong. All are counted.
const (
	maxFindings = 100
	maxAlike    = 10
	maxMessage  = 400 // characters
)

type findings struct {
	list  []archive.Finding
	total int
	alike map[[2]string]int // rule, member → how many
}

func (f *findings) add(rule, member string, line int, format string, a ...any) {
	f.total++
	if f.alike == nil {
		f.alike = map[[2]string]int{}
	}
	key := [2]string{rule, member}
	f.alike[key]++
	if f.alike[key] > maxAlike || len(f.list) >= maxFindings {
		return
	}
	f.list = append(f.list, archive.Finding{Rule: rule, Member: member, Line: line, Message: printable(fmt.Sprintf(format, a...), maxMessage)})
}

// printable shortens s to limit characters and escapes what a terminal would act
// on or hide: control and format characters, odd spaces, bad UTF-8.
func printable(s string, limit int) string {
	var b strings.Builder
	for n := 0; len(s) > 0; n++ {
		if n == limit {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
