package policy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// typed is a condition on the type and the size of a value.
type typed struct {
	kind     string // number, integer, boolean, string
	min, max string // decimal numbers; "" without a bound
	like     []glob // of a string; nil: any
}

var typedKinds = []string{"number", "integer", "boolean", "string"}

// typed reads the value of a key of typedKinds.
func (r *reader) typed(kind string, n *yaml.Node) *typed {
	t := &typed{kind: kind}
	keys := map[string][]string{"number": {"min", "max"}, "integer": {"min", "max"}, "string": {"like", "max"}}[kind]
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		return t
	}
	if keys == nil {
		r.Bad(n, kind+" has a value", kind+": {}", "")
		return t
	}
	o := r.Object(n, kind, keys...)
	bound := func(key string) string {
		f, ok := o[key]
		if !ok {
			return ""
		}
		s, ok := number(r.value(f.Value))
		if !ok {
			r.Bad(f.Value, key+" is "+strict.Kind(f.Value), "a number", "")
		}
		return s
	}
	t.min, t.max = bound("min"), bound("max")
	if t.min != "" && t.max != "" {
		if low, err := compareNumbers(t.min, t.max); err != nil || low > 0 {
			r.Bad(n, "min is above max", "min at most max", "")
		}
	}
	if f, ok := o["like"]; ok {
		for _, item := range r.Items(f.Value, "like") {
			if s, ok := r.Text(item, "like"); ok {
				g, err := parseGlob(s)
				if err != nil {
					r.Bad(item, "like "+strict.Quote(s)+": "+err.Error(), "a text, or a pattern of * and ?", "")
				}
				t.like = append(t.like, g)
			}
		}
	}
	return t
}

// holds reports whether a value fits. One of another type cannot be evaluated, because a
// server may make one type of another.
func (t *typed) holds(v any) (bool, error) {
	wrong := fmt.Errorf("it is %s, not %s", jsonpath.Kind(v), map[string]string{"number": "a number", "integer": "an integer", "boolean": "a boolean", "string": "a string"}[t.kind])
	switch t.kind {
	case "boolean":
		if _, ok := v.(bool); !ok {
			return false, wrong
		}
		return true, nil
	case "string":
		s, ok := v.(string)
		if !ok {
			return false, wrong
		}
		if t.max != "" {
			if c, err := compareNumbers(fmt.Sprint(len(s)), t.max); err != nil || c > 0 {
				return false, err
			}
		}
		for _, g := range t.like {
			if g.match(s) {
				return true, nil
			}
		}
		return t.like == nil, nil
	}
	s, ok := number(v)
	if !ok {
		return false, wrong
	}
	d, err := parseDecimal(s)
	if err != nil {
		return false, err
	}
	if t.kind == "integer" && d.exp < 0 {
		return false, wrong
	}
	if t.min != "" {
		if c, err := compareNumbers(s, t.min); err != nil || c < 0 {
			return false, err
		}
	}
	if t.max != "" {
		if c, err := compareNumbers(s, t.max); err != nil || c > 0 {
			return false, err
		}
	}
	return true, nil
}

// compareNumbers is -1, 0 or 1. Two different numbers that are equal in floating point are
// an error.
func compareNumbers(a, b string) (int, error) {
	same, err := equalNumbers(a, b)
	if same || err != nil {
		return 0, err
	}
	x, err := parseDecimal(a)
	if err != nil {
		return 0, err
	}
	y, err := parseDecimal(b)
	if err != nil {
		return 0, err
	}
	if x.sign() != y.sign() {
		return sign(x.sign() - y.sign()), nil
	}
	order := sign(x.exp + len(x.digits) - y.exp - len(y.digits))
	if order == 0 {
		order = strings.Compare(x.digits, y.digits)
	}
	return order * x.sign(), nil
}

func sign(n int) int { return min(max(n, -1), 1) }

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (t *typed) explain() string {
	s := map[string]string{"number": "a number", "integer": "an integer", "boolean": "a boolean", "string": "a string"}[t.kind]
	if t.min != "" {
		s += " from " + t.min
	}
	if t.max != "" {
		s += map[bool]string{false: " up to " + t.max, true: " of up to " + t.max + " bytes"}[t.kind == "string"]
	}
	if t.like != nil {
		var list []string
		for _, g := range t.like {
			list = append(list, plainQuote(g.text))
		}
		s += " like " + strings.Join(list, " or ")
	}
	return s
}
