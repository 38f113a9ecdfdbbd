package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// shower prints what was filtered, for people. A nil shower prints nothing.
type shower struct {
	w    *bufio.Writer
	name string
}

func newShower(w io.Writer, name string) *shower {
	return &shower{bufio.NewWriterSize(w, 32<<10), name}
}

func (s *shower) filtered(rule, reason string, value []byte) {
	if s == nil {
		return
	}
	if reason == "" {
		reason = schemas.FilterReason(rule)
	}
	fmt.Fprintf(s.w, "%s: filtered %s %s (%s)\n", s.name, rule, safe(value), reason)
}

func (s *shower) summary(filtered map[string]uint64, in uint64) {
	if s == nil {
		return
	}
	sum := uint64(0)
	for _, rule := range slices.Sorted(maps.Keys(filtered)) {
		fmt.Fprintf(s.w, "%s: filtered %s: %d\n", s.name, rule, filtered[rule])
		sum += filtered[rule]
	}
	fmt.Fprintf(s.w, "%s: filtered %d in all, of %d events\n", s.name, sum, in)
}

func (s *shower) flush() {
	if s != nil {
		s.w.Flush()
	}
}

// safe is a text that cannot steer a terminal. What it escapes has the form \u{x},
// which the text form of a name never has: there a backslash is always doubled.
func safe(text []byte) []byte {
	if text == nil {
		return []byte("-")
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			out = append(out, text[:n]...)
		default:
			out = fmt.Appendf(out, `\u{%x}`, r)
		}
		text = text[n:]
	}
	return out
}
