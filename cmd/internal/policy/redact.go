package policy

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// Redacted is the value of an argument that no log may have.
type Redacted struct {
	At    string // the place that the file names
	Value any    // as in Call
}

// redact reads the key redact: places in the arguments of all tools.
func (r *reader) redact(n *yaml.Node) (list []jsonpath.Path) {
	for _, item := range r.Items(n, "redact") {
		s, ok := r.Text(item, "redact")
		if !ok {
			continue
		}
		p, err := jsonpath.Parse(s)
		switch {
		case err != nil:
		case len(s) > maxPattern:
			err = fmt.Errorf("it has more than %d bytes", maxPattern)
		case len(p.Steps) == 0:
			err = fmt.Errorf("it is all arguments")
		case slices.ContainsFunc(p.Steps, func(st jsonpath.Step) bool { return st.Index != jsonpath.ByName }):
			err = fmt.Errorf("it goes into an array")
		}
		if err != nil {
			r.Bad(item, "redact "+strict.Quote(s)+": "+err.Error(), `$ followed by .name or ["name"]: an argument, whose whole value no log has`, "")
			continue
		}
		for _, st := range p.Steps {
			r.reads(item, st.Name)
		}
		list = append(list, p)
	}
	r.bound(n, len(list), schemas.MaxRedacted, "places to redact")
	return list
}

// Redact takes out of arguments what no log may have. The arguments stay as they are; the
// result shares what it keeps with them. If the way to a place leads into something that is not an
// object, that is taken out: nobody knows what a server reads there.
func (p *Policy) Redact(arguments any) (rest any, out []Redacted) {
	rest = arguments
	for _, place := range p.redact {
		var value any
		if rest, value = without(rest, place.Steps); value != nil {
			out = append(out, Redacted{place.Text, value})
		}
	}
	return rest, out
}

// without is a value without what is at a place; taken is nil if there is nothing. A null is left: it says no more than
// that nothing is there.
func without(v any, steps []jsonpath.Step) (rest, taken any) {
	m, isObject := v.(map[string]any)
	if len(steps) == 0 || v != nil && !isObject {
		return nil, v
	}
	below, there := m[steps[0].Name]
	if !there {
		return v, nil
	}
	left, taken := without(below, steps[1:])
	if taken == nil {
		return v, nil
	}
	m = maps.Clone(m)
	if m[steps[0].Name] = left; left == nil {
		delete(m, steps[0].Name)
	}
	return m, taken
}
