package proc

import "errors"

// liteRegexp is a pattern of allow_args_regex_lite: literal bytes, . for any byte, \x for the byte x, each followed by a
// * or not. It matches whole arguments, byte by byte.
type liteRegexp []liteToken

type liteToken struct {
	any, star bool
	c         byte
}

func parseLite(s string) (liteRegexp, error) {
	var re liteRegexp
	for i := 0; i < len(s); i++ {
		t := liteToken{c: s[i]}
		switch s[i] {
		case '*':
			return nil, errors.New("a * without something before it")
		case '.':
			t.any = true
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New("a backslash at its end")
			}
			t.c = s[i]
		}
		if i+1 < len(s) && s[i+1] == '*' {
			t.star = true
			i++
		}
		re = append(re, t)
	}
	return re, nil
}

// match follows all ways to read the text at the same time, so that its time is bounded.
func (re liteRegexp) match(text []byte) bool {
	at, next := make([]bool, len(re)+1), make([]bool, len(re)+1)
	skip := func(set []bool) {
		for i, t := range re {
			if set[i] && t.star {
				set[i+1] = true
			}
		}
	}
	at[0] = true
	skip(at)
	for _, c := range text {
		clear(next)
		for i, t := range re {
			switch {
			case !at[i] || !t.any && t.c != c:
			case t.star:
				next[i] = true
			default:
				next[i+1] = true
			}
		}
		skip(next)
		at, next = next, at
	}
	return at[len(re)]
}
