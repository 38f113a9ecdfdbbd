package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// jsonPath selects places in the arguments.
type jsonPath struct {
	text  string
	steps []step
}

// step goes one level down: to a key, an element, or every element.
type step struct {
	name  string
	index int // of an element; all or key for the others
}

const (
	everyElement = -1
	byName       = -2
	maxSteps     = 32
	maxIndex     = 1 << 20
	maxElements  = 4096 // of a [*] that a decision reads
)

// parseJSONPath reads $, .name, ["name"], [0], [*].
func parseJSONPath(s string) (jsonPath, error) {
	p := jsonPath{text: s}
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		return p, errors.New("it does not begin with $")
	}
	for rest != "" {
		st, n, err := parseStep(rest)
		if err != nil {
			return p, err
		}
		p.steps = append(p.steps, st)
		rest = rest[n:]
	}
	if len(p.steps) > maxSteps {
		return p, fmt.Errorf("more than %d steps", maxSteps)
	}
	return p, nil
}

func parseStep(s string) (step, int, error) {
	switch {
	case strings.HasPrefix(s, "[*]"):
		return step{index: everyElement}, 3, nil
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
			return step{}, 0, fmt.Errorf("%s is not a name in brackets", strict.Quote(s))
		}
		return step{name, byName}, end + 2, nil
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return step{}, 0, errors.New("a bracket is not closed")
		}
		i, err := strconv.Atoi(s[1:end])
		if err != nil || i < 0 || i > maxIndex || strconv.Itoa(i) != s[1:end] {
			return step{}, 0, fmt.Errorf("%s is not an index", strict.Quote(s[:end+1]))
		}
		return step{index: i}, end + 1, nil
	case strings.HasPrefix(s, "."):
		end := 1
		for end < len(s) && nameByte(s[end], end > 1) {
			end++
		}
		if end == 1 {
			return step{}, 0, fmt.Errorf("no name follows in %s", strict.Quote(s))
		}
		return step{s[1:end], byName}, end, nil
	}
	return step{}, 0, fmt.Errorf("%s is not a step", strict.Quote(s))
}

func nameByte(c byte, inside bool) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || inside && ('0' <= c && c <= '9' || c == '-')
}

// errTooMany ends a walk that would take too long.
var errTooMany = fmt.Errorf("more than %d elements", maxElements)

// each calls f for every value at the path, and with present false for a place without a
// value. A step that does not fit the type of the value is an error, because a server may
// read the value in a way that the rule does not see.
func (p jsonPath) each(v any, f func(v any, present bool) error) error {
	left := maxElements
	return walkPath(p.steps, v, &left, f)
}

func walkPath(steps []step, v any, left *int, f func(any, bool) error) error {
	for i, st := range steps {
		switch {
		case v == nil:
			return f(nil, false)
		case st.index == byName:
			m, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("the rule reads the key %s, but the value is %s", strict.Quote(st.name), jsonKind(v))
			}
			if v, ok = m[st.name]; !ok {
				return f(nil, false)
			}
		default:
			list, ok := v.([]any)
			if !ok {
				return fmt.Errorf("the rule reads an element, but the value is %s", jsonKind(v))
			}
			if st.index != everyElement {
				if st.index >= len(list) {
					return f(nil, false)
				}
				v = list[st.index]
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

// jsonKind is the type of a value, for people.
func jsonKind(v any) string {
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
