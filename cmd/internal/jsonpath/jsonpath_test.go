package jsonpath

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestEach: which values a path leads to; a step that does not fit the value is an error.
func TestEach(t *testing.T) {
	v, err := Decode([]byte(`{"a":{"b-c":[1,{"d":"x"}],"e f":null},"n":1.50}`))
	testkit.Must(t, err)
	for path, want := range map[string]string{
		"$.n": "1.50", "$.a.b-c[0]": "1", `$.a["b-c"][1].d`: "x", "$.a.b-c[*]": "1 map[d:x]", "$.none": "absent", "$.a.b-c[2]": "absent", `$.a["e f"].x`: "absent",
		"$.n.x": `the rule reads the key "x", but the value is a number`, "$.a[0]": "the rule reads an element, but the value is an object",
		"a": "it does not begin with $", "$x": "is not a step", "$.": "no name follows", "$[": "a bracket is not closed", "$[-1]": "is not an index", `$["a]`: "is not a name in brackets", "$" + strings.Repeat(".a", 33): "more than 32 steps",
	} {
		p, err := Parse(path)
		var got []string
		if err == nil {
			err = p.Each(v, func(v any, present bool) error {
				if got = append(got, fmt.Sprint(v)); !present {
					got = []string{"absent"}
				}
				return nil
			})
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if have := strings.Join(got, " "); have != want && (err == nil || !strings.Contains(have, want)) {
			t.Errorf("%s: %s, expected %s", path, have, want)
		}
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `{} {}`, "\"\xff\"", ""} {
		if v, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s is %v", bad, v)
		}
	}
}
