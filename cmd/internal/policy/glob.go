package policy

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// glob is a text, or a pattern in which * is any text and ? one character. A backslash
// takes the meaning from the character after it.
type glob struct {
	text string // as it was written
	want string // without backslashes
	kind []byte // of each byte of want: literal, anyText or oneRune
}

const (
	literal = iota
	anyText
	oneRune
)

// foreign are characters that mean something in other patterns, and nothing here.
const foreign = `{}()|+^$[]`

// parseGlob reads a pattern. What looks like a regular expression or a shell's list is an
// error, because as a pattern it would match nothing that was meant.
func parseGlob(s string) (glob, error) {
	g := glob{text: s}
	var want []byte
	for i := 0; i < len(s); i++ {
		c, kind := s[i], byte(literal)
		switch {
		case c == '*':
			kind = anyText
		case c == '?':
			kind = oneRune
		case c == '\\' && i+1 < len(s) && strings.IndexByte(foreign+`*?\`, s[i+1]) >= 0:
			i++
			c = s[i]
		case c == '\\' || strings.IndexByte(foreign, c) >= 0:
			return g, errors.New(`it has ` + string(c) + `, which is no wildcard here`)
		}
		want, g.kind = append(want, c), append(g.kind, kind)
	}
	g.want = string(want)
	return g, nil
}

// plain reports whether the pattern is one name.
func (g glob) plain() bool { return strings.Trim(string(g.kind), string(rune(literal))) == "" }

// match compares byte by byte except for ?, and goes back only to the last star: at
// most len(pattern) x len(name) steps.
func (g glob) match(name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(g.want) && g.kind[p] == anyText:
			star, mark = p, n
			p++
		case p < len(g.want) && g.kind[p] == oneRune:
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(g.want) && g.kind[p] == literal && g.want[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(g.want) && g.kind[p] == anyText {
		p++
	}
	return p == len(g.want)
}

// holds reports whether the pattern certainly matches all that another matches.
func (g glob) holds(other glob) bool {
	if other.plain() {
		return g.match(other.want)
	}
	return g.text == other.text || strings.IndexByte(string(g.kind), oneRune) < 0 && g.match(other.want)
}
