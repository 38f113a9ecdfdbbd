// Package jsonpath selects places in JSON values.
package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// Path selects places in a value.
type Path struct {
	Text  string // as it was written
	Steps []Step // none: the whole value
}

// Step goes one level down: to a key, an element, or every element.
type Step struct {
	Name  string
	Index int // of an element; Every or ByName for the others
}

// What the index of a step can be besides that of an element.
const (
	Every  = -1 // every element
	ByName = -2 // the key Name
)

// Bounds of a path.
const (
	MaxElements = 4096 // of a [*] that is read
	maxSteps    = 32
	maxIndex    = 1 << 20
)

// Parse reads $, .name, ["name"], [0], [*].
func Parse(s string) (Path, error) {
	p := Path{Text: s}
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return p, errors.New("it does not begin with $")
	}
	for rest != "" {
		st, n, err := parseStep(rest)
		if err != nil {
			return p, err
		}
		p.Steps = append(p.Steps, st)
		rest = rest[n:]
	}
	if len(p.Steps) > maxSteps {
		return p, fmt.Errorf("more than %d steps", maxSteps)
	}
	return p, nil
}

func parseStep(s string) (Step, int, error) {
	switch {
	case strings.HasPrefix(s, "[*]"):
		return Step{Index: Every}, 3, nil
	case strings.HasPrefix(s, `["`):
		end := 2
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		var name string
		if end+1 >= len(s) || s[end+1] != ']' || json.Unmarshal([]byte(s[1:end+1]), &name) != nil {
			return Step{}, 0, fmt.Errorf("%s is not a name in brackets", strict.Quote(s))
		}
		return Step{name, ByName}, end + 2, nil
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Step{}, 0, errors.New("a bracket is not closed")
		}
		i, err := strconv.Atoi(s[1:end])
		if err != nil || i < 0 || i > maxIndex || strconv.Itoa(i) != s[1:end] {
			return Step{}, 0, fmt.Errorf("%s is not an index", strict.Quote(s[:end+1]))
		}
		return Step{Index: i}, end + 1, nil
	case strings.HasPrefix(s, "."):
		end := 1
		for end < len(s) && nameByte(s[end], end > 1) {
			end++
		}
		if end == 1 {
			return Step{}, 0, fmt.Errorf("no name follows in %s", strict.Quote(s))
		}
		return Step{s[1:end], ByName}, end, nil
	}
	return Step{}, 0, fmt.Errorf("%s is not a step", strict.Quote(s))
}

func nameByte(c byte, inside bool) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || inside && ('0' <= c && c <= '9' || c == '-')
}

// errTooMany ends a walk that would take too long.
var errTooMany = fmt.Errorf("more than %d elements", MaxElements)

// Each calls f for every value at the path, and with present false for a place without a
// value. A step that does not fit the type of the value is an error, because a server may
// read the value in a way that the rule does not see.
func (p Path) Each(v any, f func(v any, present bool) error) error {
	left := MaxElements
	return walkPath(p.Steps, v, &left, f)
}

func walkPath(steps []Step, v any, left *int, f func(any, bool) error) error {
	for i, st := range steps {
		switch {
		case v == nil:
			return f(nil, false)
		case st.Index == ByName:
			m, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("the rule reads the key %s, but the value is %s", strict.Quote(st.Name), Kind(v))
			}
			if v, ok = m[st.Name]; !ok {
				return f(nil, false)
			}
		default:
			list, ok := v.([]any)
			if !ok {
				return fmt.Errorf("the rule reads an element, but the value is %s", Kind(v))
			}
			if st.Index != Every {
				if st.Index >= len(list) {
					return f(nil, false)
				}
				v = list[st.Index]
				continue
			}
			if len(list) == 0 {
				return f(nil, false)
			}
			for _, item := range list {
				if *left--; *left < 0 {
					return errTooMany
				}
				if err := walkPath(steps[i+1:], item, left, f); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return f(v, true)
}

// Kind is the type of a value of encoding/json, for people.
func Kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
