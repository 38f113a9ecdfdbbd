// Package markdown shows texts that anybody may have chosen, such as names of files, in Markdown of
// GitHub's kind. There they can mention nobody, link nowhere and be no markup.
package markdown

import (
	"strings"

	"github.com/runner-evidence/runner/schemas/verdict"
)

// Code is the text as an inline code span of at most limit characters of the text. In such a span nothing
// has a meaning: no HTML, no entity, no mention, no number of an issue, no address. It ends at a row of as
// many backticks as it begins with, and the text has no such row. Characters that cannot be seen, or that
// change the direction or the line, are escaped as on a terminal.
func Code(s string, limit int) string {
	s = verdict.Printable(s, limit)
	if s == "" {
		return "(empty)"
	}
	fence := strings.Repeat("`", row(s)+1)
	// A blank at both ends is taken off by every reader. It parts the fence from a backtick, and keeps a
	// blank of the text.
	return fence + " " + s + " " + fence
}

// Block is a fenced code block of the text, whose lines stay lines.
func Block(language, s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ") // the blanks of a block are its layout
		for i := range words {
			words[i] = verdict.Printable(words[i], maxLine)
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	fence := strings.Repeat("`", max(3, row(b.String())+1))
	return fence + language + "\n" + b.String() + fence + "\n"
}

// maxLine is the length of a word of a block, in characters.
const maxLine = 8 << 10

// row is the length of the longest row of backticks.
func row(s string) (longest int) {
	n := 0
	for _, r := range s {
		if n++; r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}
