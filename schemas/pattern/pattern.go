// Package pattern has regular expressions that are compiled when they are first used. A tool that is asked for its
// version, or that measures a run of milliseconds, does not pay for those that it does not need.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. It is safe for concurrent use.
type Pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New makes a Pattern of a text, which must be a valid expression: its first use panics otherwise.
func New(text string) *Pattern { return &Pattern{text: text} }

// Regexp is the compiled expression.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) })
	return p.re
}

// String is the text.
func (p *Pattern) String() string { return p.text }

// MatchString reports whether s has a match.
func (p *Pattern) MatchString(s string) bool { return p.Regexp().MatchString(s) }

// Match reports whether b has a match.
func (p *Pattern) Match(b []byte) bool { return p.Regexp().Match(b) }

// FindStringSubmatch is the first match in s and its groups, or nil.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.Regexp().FindStringSubmatch(s) }

// ReplaceAllString replaces each match in s.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.Regexp().ReplaceAllString(s, with)
}
