package gatepolicy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// glob is a pattern of paths. In a component * is any text and ? one character; the component ** is any number of
// components.
type glob struct{ parts []component }

// component is a pattern of one component, or ** if it is deep.
type component struct {
	deep   bool
	tokens []token
}

type token struct {
	kind byte
	char byte // of a literal
}

const (
	literal = iota
	anyText
	oneChar
)

// foreign are characters that mean something in other patterns, and nothing here.
const foreign = `{}()|+^$[]`

// parseGlob reads a pattern. With text, names are in text form: \\ is a backslash, \xff a byte. In any pattern a backslash
// takes the meaning from the wildcard after it.
func parseGlob(s string, text bool) (glob, error) {
	var g glob
	if s == "" || len(s) > maxPattern {
		return g, fmt.Errorf("it has %d bytes, expected 1 to %d", len(s), maxPattern)
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "**" {
			g.parts = append(g.parts, component{deep: true})
			continue
		}
		c, err := parseComponent(part, text)
		if err != nil {
			return g, err
		}
		g.parts = append(g.parts, c)
	}
	return g, nil
}

func parseComponent(s string, text bool) (c component, err error) {
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b == '*' && i+1 < len(s) && s[i+1] == '*':
			return c, errors.New("it has ** beside other characters, which is a whole component: a/**/b")
		case b == '*':
			c.tokens = append(c.tokens, token{anyText, 0})
		case b == '?':
			c.tokens = append(c.tokens, token{oneChar, 0})
		case b == '\\' && i+1 < len(s) && strings.IndexByte(foreign+"*?", s[i+1]) >= 0:
			i++
			c.tokens = append(c.tokens, token{literal, s[i]})
		case b == '\\' && text:
			raw, n := escaped(s[i:])
			if n == 0 {
				return c, errors.New(`it has a backslash, which is written as two; \xff is a byte, \* a star`)
			}
			i += n - 1
			c.tokens = append(c.tokens, token{literal, raw})
		case b == '\\' || strings.IndexByte(foreign, b) >= 0:
			return c, fmt.Errorf(`it has %c, which is no wildcard here: \%c is the character`, b, b)
		default:
			c.tokens = append(c.tokens, token{literal, b})
		}
	}
	return c, nil
}

// escaped reads an escape of the text form; n is its length, or 0.
func escaped(s string) (raw byte, n int) {
	for _, n := range []int{len(`\\`), len(`\xff`)} {
		if len(s) < n {
			continue
		}
		if b, err := schemas.Untext(s[:n]); err == nil && len(b) == 1 {
			return b[0], n
		}
	}
	return 0, 0
}

// match reports whether the pattern is that of a path. It takes at most len(pattern) x len(path) comparisons of components.
func (g glob) match(path string) bool {
	parts := strings.Split(path, "/")
	p, n, star, mark := 0, 0, -1, 0
	for n < len(parts) {
		switch {
		case p < len(g.parts) && g.parts[p].deep:
			// At the end ** is at least one component: a/** is what is below a.
			if p == len(g.parts)-1 {
				return true
			}
			star, mark = p, n
			p++
		case p < len(g.parts) && g.parts[p].match(parts[n]):
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return p == len(g.parts)
}

// match compares byte by byte except for ?, and goes back only to the last star. No wildcard is an empty component.
func (c component) match(name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	t := c.tokens
	if name == "" {
		return len(t) == 0
	}
	for n < len(name) {
		switch {
		case p < len(t) && t[p].kind == anyText:
			star, mark = p, n
			p++
		case p < len(t) && t[p].kind == oneChar:
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(t) && t[p].kind == literal && t[p].char == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(t) && t[p].kind == anyText {
		p++
	}
	return p == len(t)
}
