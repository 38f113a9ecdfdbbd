package policy

import (
	"strings"
	"unicode/utf8"
)

// glob is a tool's name, or a pattern in which * is any text and ? one character.
type glob struct {
	text string
	wild bool
}

func makeGlob(s string) glob { return glob{s, strings.ContainsAny(s, "*?")} }

// match compares byte by byte except for ?, and goes back only to the last star: at
// most len(pattern) x len(name) steps.
func (g glob) match(name string) bool {
	if !g.wild {
		return g.text == name
	}
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(g.text) && g.text[p] == '*':
			star, mark = p, n
			p++
		case p < len(g.text) && g.text[p] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(g.text) && g.text[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(g.text) && g.text[p] == '*' {
		p++
	}
	return p == len(g.text)
}
