package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-json/jsontext"
	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// covers reports whether a rule that allows is about the whole of a call's arguments.
func (r *rule) covers() bool { return r.allow && !r.open && (len(r.args) > 0 || r.when != nil) }

// scope reads what a rule says about arguments without a condition.
func (r *reader) scope(o map[string]strict.Field, x *rule) {
	for _, key := range []string{"also", "only"} {
		if f, ok := o[key]; ok && (!x.allow || len(x.args) == 0 && x.when == nil) {
			r.Bad(f.Key, key+" in a rule that does not allow under a condition", "args or when, or no "+key+": other rules ask for no argument", "")
		}
	}
	if f, ok := o["also"]; ok {
		x.also = r.also(f.Value)
	}
	if f, ok := o["only"]; ok {
		v, isBool := r.value(f.Value).(bool)
		if !isBool {
			r.Bad(f.Value, "only is "+strict.Kind(f.Value), "true or false", "")
		}
		x.open = isBool && !v
		if _, both := o["also"]; x.open && both {
			r.Bad(f.Key, "only: false beside also", "one of them", "")
		}
	}
}

// also reads the key also: places in the arguments that may be there without a condition.
func (r *reader) also(n *yaml.Node) (list []jsonpath.Path) {
	for _, item := range r.Items(n, "also") {
		s, ok := r.Text(item, "also")
		if !ok {
			continue
		}
		p, err := jsonpath.Parse(s)
		if err != nil || len(p.Steps) == 0 {
			if err == nil {
				err = fmt.Errorf("it is all arguments")
			}
			r.Bad(item, "also "+strict.Quote(s)+": "+err.Error(), `$ followed by .name, ["name"], [0] or [*]; only: false for all arguments`, "")
			continue
		}
		for _, st := range p.Steps {
			if st.Index == jsonpath.ByName {
				r.reads(item, st.Name)
			}
		}
		list = append(list, p)
	}
	return list
}

// named are the places in the arguments that a rule names.
func (r *rule) named() (list [][]jsonpath.Step) {
	for _, c := range r.args {
		list = append(list, c.at.Steps)
	}
	for _, p := range r.also {
		list = append(list, p.Steps)
	}
	if r.when != nil {
		for _, name := range r.when.arguments {
			list = append(list, []jsonpath.Step{{Name: name, Index: jsonpath.ByName}})
		}
	}
	// The id of the call can be there (schemas/POLICY.md, "Tool call ids").
	return append(list, []jsonpath.Step{{Name: "_meta", Index: jsonpath.ByName}, {Name: "tool_call_id", Index: jsonpath.ByName}})
}

// unnamed is a place in the arguments that no rule names; false if there is none. A null
// says as little as an argument that is not there.
func unnamed(v any, named [][]jsonpath.Step, at string) (string, bool) {
	for _, steps := range named {
		if len(steps) == 0 {
			return "", false
		}
	}
	below := func(fits func(jsonpath.Step) bool) (rest [][]jsonpath.Step) {
		for _, steps := range named {
			if fits(steps[0]) {
				rest = append(rest, steps[1:])
			}
		}
		return rest
	}
	switch x := v.(type) {
	case nil:
		return "", false
	case map[string]any:
		for _, k := range sortedKeys(x) {
			rest := below(func(s jsonpath.Step) bool { return s.Index == jsonpath.ByName && s.Name == k })
			if place, found := unnamed(x[k], rest, at+"."+k); found {
				return place, true
			}
		}
		return at, len(named) == 0
	case []any:
		for i := range x {
			rest := below(func(s jsonpath.Step) bool { return s.Index == i || s.Index == jsonpath.Every })
			if place, found := unnamed(x[i], rest, at+"["+strconv.Itoa(i)+"]"); found {
				return place, true
			}
		}
		return at, len(named) == 0
	}
	return at, true
}

// whole returns an error if the arguments have something that neither the rule nor the
// tool's input schema names.
func (e *evaluation) whole(r *rule) error {
	if !r.covers() {
		return nil
	}
	if place, found := unnamed(arguments(&e.call), r.named(), "$"); found && place != "$" {
		return fmt.Errorf("it does not name the argument %s", strict.Quote(place))
	}
	return e.call.Schema.check(e.call.Arguments)
}

// InputSchema is what the input schema of a tool says about the names of arguments.
type InputSchema struct{ names []string }

// ParseInputSchema reads an input schema. It is nil if the schema does not say which
// arguments there are.
func ParseInputSchema(raw []byte) *InputSchema {
	var s struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Additional jsontext.Value            `json:"additionalProperties"`
		Patterns   jsontext.Value            `json:"patternProperties"`
		Ref        jsontext.Value            `json:"$ref"`
		All        jsontext.Value            `json:"allOf"`
		Any        jsontext.Value            `json:"anyOf"`
		One        jsontext.Value            `json:"oneOf"`
		If         jsontext.Value            `json:"if"`
		Dependent  jsontext.Value            `json:"dependentSchemas"`
	}
	if schemas.UnmarshalOpen(raw, &s) != nil {
		return nil
	}
	closed := string(s.Additional) == "false"
	if len(s.Additional) > 0 && !closed || s.Properties == nil && !closed ||
		len(s.Patterns)+len(s.Ref)+len(s.All)+len(s.Any)+len(s.One)+len(s.If)+len(s.Dependent) > 0 {
		return nil
	}
	out := &InputSchema{names: []string{"_meta"}}
	for name := range s.Properties {
		out.names = append(out.names, name)
	}
	return out
}

func (s *InputSchema) check(arguments any) error {
	m, _ := arguments.(map[string]any)
	for _, k := range sortedKeys(m) {
		if s != nil && m[k] != nil && !slices.Contains(s.names, k) {
			return fmt.Errorf("the tool's input schema does not know the argument %s", strict.Quote(k))
		}
	}
	return nil
}

// readArguments are the arguments that a program reads by name: .arguments.NAME.
func readArguments(v reflect.Value, note func(string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			readArguments(v.Elem(), note)
		}
	case reflect.Slice:
		for i := range v.Len() {
			readArguments(v.Index(i), note)
		}
	case reflect.Struct:
		if t, ok := v.Interface().(gojq.Term); ok && t.Type == gojq.TermTypeIndex && len(t.SuffixList) > 0 &&
			indexName(t.Index) == "arguments" {
			if name := indexName(t.SuffixList[0].Index); name != "" {
				note(name)
			}
		}
		for i := range v.NumField() {
			readArguments(v.Field(i), note)
		}
	}
}

func indexName(x *gojq.Index) string {
	switch {
	case x == nil:
		return ""
	case x.Name != "":
		return x.Name
	case x.Str != nil && x.Str.Queries == nil:
		return x.Str.Str
	}
	return ""
}
