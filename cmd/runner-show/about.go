package main

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// What the correlation report says that is about no single call.

// aboutNoCall writes the first of what is in doubt and of what is worth knowing.
func (s *screen) aboutNoCall() {
	x := s.rep.Explanation
	if x == nil || len(x.Ambiguities)+len(x.Notes) == 0 {
		return
	}
	s.codes("in doubt   ", red, x.Ambiguities)
	s.codes("noted      ", dim, x.Notes)
	s.line("")
}

func (s *screen) codes(title, style string, entries []string) {
	for _, entry := range entries[:min(len(entries), s.opt.Top)] {
		s.prose(title, style, verdict.Printable(plainWords(entry), maxShownName))
	}
	if more := len(entries) - s.opt.Top; more > 0 {
		s.prose(title, style, fmt.Sprintf("… %d more: runner-verify --explain", more))
	}
}

// plainWords are the words of an entry without the entry itself: its code says nothing more.
func plainWords(entry string) string {
	return strings.TrimSuffix(verdict.InWords(entry), " ("+entry+")")
}

// noteWords are the words of the notes about a call.
func noteWords(entries []string) (words []string) {
	for _, entry := range entries {
		if schemas.IsNote(entry) {
			words = append(words, plainWords(entry))
		}
	}
	return words
}
