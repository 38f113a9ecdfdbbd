package rego

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of the text of a value.
const (
	maxNesting  = 500       // levels: OPA's own code in the module takes two calls for each
	maxExponent = 1_000_000 // powers of ten of a number
)

// text reads values: JSON, and with sets also what OPA writes for its own values.
type text struct {
	left    string
	size    int
	sets    bool
	nesting int
}

// parseJSON reads one JSON value. A key that is there twice is refused: readers differ in which one counts.
func parseJSON(s string) (any, error) { return (&text{left: s, size: len(s)}).whole() }

// parseValue reads one value as OPA writes it: JSON with sets as {1, 2} and set(), and keys of any type.
func parseValue(s string) (any, error) { return (&text{left: s, size: len(s), sets: true}).whole() }

func (t *text) whole() (any, error) {
	if !utf8.ValidString(t.left) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	v, err := t.value()
	if err == nil && t.next() != 0 {
		err = t.bad("the end")
	}
	return v, err
}

// next skips space and is the next byte, or 0 at the end.
func (t *text) next() byte {
	t.left = strings.TrimLeft(t.left, " \t\r\n")
	if t.left == "" {
		return 0
	}
	return t.left[0]
}

// take skips a byte if it is the next one.
func (t *text) take(c byte) bool {
	if t.next() != c || t.left == "" {
		return false
	}
	t.left = t.left[1:]
	return true
}

func (t *text) bad(expected string) error {
	at, found := t.size-len(t.left), "the end"
	if t.left != "" {
		r, _ := utf8.DecodeRuneInString(t.left)
		found = strconv.QuoteRune(r)
	}
	return fmt.Errorf("at byte %d: %s, expected %s", at, found, expected)
}

func (t *text) value() (any, error) {
	if t.nesting++; t.nesting > maxNesting {
		return nil, fmt.Errorf("at byte %d: a value in more than %d others", t.size-len(t.left), maxNesting)
	}
	defer func() { t.nesting-- }()
	switch c := t.next(); {
	case c == '[':
		return t.array()
	case c == '{':
		return t.braces()
	case c == '"':
		return t.string()
	case c == '-' || c >= '0' && c <= '9':
		return t.number()
	}
	for word, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if strings.HasPrefix(t.left, word) {
			t.left = t.left[len(word):]
			return v, nil
		}
	}
	if t.sets && strings.HasPrefix(t.left, "set()") {
		t.left = t.left[len("set()"):]
		return set{}, nil
	}
	return nil, t.bad("a value")
}

func (t *text) array() (any, error) {
	t.take('[')
	list := []any{}
	if t.take(']') {
		return list, nil
	}
	for {
		v, err := t.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if t.take(']') {
			return list, nil
		}
		if !t.take(',') {
			return nil, t.bad("',' or ']'")
		}
	}
}

// braces reads an object, or a set.
func (t *text) braces() (any, error) {
	t.take('{')
	if t.take('}') {
		return object{}, nil
	}
	var members []member
	var list []any
	for first := true; ; first = false {
		if !t.sets && t.next() != '"' {
			return nil, t.bad("a key")
		}
		k, err := t.value()
		if err != nil {
			return nil, err
		}
		keyed := t.take(':')
		switch {
		case !keyed && (!t.sets || !first && members != nil) || keyed && list != nil:
			return nil, t.bad("':'")
		case !keyed:
			list = append(list, k)
		default:
			v, err := t.value()
			if err != nil {
				return nil, err
			}
			members = append(members, member{k, v})
		}
		if t.take('}') {
			return made(members, list)
		}
		if !t.take(',') {
			return nil, t.bad("',' or '}'")
		}
	}
}

func made(members []member, list []any) (any, error) {
	if members == nil {
		return newSet(list...), nil
	}
	o := newObject(members...)
	if len(o) < len(members) {
		seen := map[string]bool{}
		for _, m := range members {
			if k := dump(m.key); seen[k] {
				return nil, fmt.Errorf("the key %.80s is there twice", k)
			} else {
				seen[k] = true
			}
		}
		return nil, fmt.Errorf("two keys are the same number")
	}
	return o, nil
}

// string reads a JSON string. Half of a surrogate pair is refused: it is no character.
func (t *text) string() (string, error) {
	end := 1
	for ; end < len(t.left) && t.left[end] != '"'; end++ {
		if t.left[end] == '\\' {
			end++
		}
	}
	if end >= len(t.left) {
		t.left = ""
		return "", t.bad(`'"'`)
	}
	var s string
	token := t.left[:end+1]
	if err := json.Unmarshal([]byte(token), &s); err != nil {
		return "", fmt.Errorf("at byte %d: %w", t.size-len(t.left), err)
	}
	if halfPair(token) {
		return "", fmt.Errorf(`at byte %d: half of a pair \ud800 to \udfff`, t.size-len(t.left))
	}
	t.left = t.left[end+1:]
	return s, nil
}

// halfPair tells whether an escape of a JSON string is a surrogate without its other half.
func halfPair(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] != '\\' {
			continue
		}
		if i++; token[i] != 'u' {
			continue
		}
		unit, _ := strconv.ParseUint(token[i+1:i+5], 16, 16)
		i += 4
		if unit&0xf800 != 0xd800 {
			continue
		}
		rest := token[i+1:]
		if unit >= 0xdc00 || len(rest) < 6 || rest[:2] != `\u` {
			return true
		}
		if low, _ := strconv.ParseUint(rest[2:6], 16, 16); low&0xfc00 != 0xdc00 {
			return true
		}
		i += 6
	}
	return false
}

// number reads a JSON number and keeps its text.
func (t *text) number() (json.Number, error) {
	end := 0
	for end < len(t.left) && strings.IndexByte("+-.eE0123456789", t.left[end]) >= 0 {
		end++
	}
	n := t.left[:end]
	if !json.Valid([]byte(n)) {
		return "", t.bad("a number of JSON")
	}
	if _, power, is := strings.Cut(strings.ToLower(n), "e"); is {
		if e, err := strconv.ParseInt(power, 10, 64); err != nil || e > maxExponent || e < -maxExponent {
			return "", fmt.Errorf("at byte %d: the exponent is beyond %d", t.size-len(t.left), maxExponent)
		}
	}
	t.left = t.left[end:]
	return json.Number(n), nil
}
