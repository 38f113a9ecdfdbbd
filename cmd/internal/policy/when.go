package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// whenTime is how long the programs of one decision may take together.
const whenTime = 100 * time.Millisecond

// program is the value of the key when: a jq program over {tool, arguments, meta}.
type program struct {
	text  string
	code  *gojq.Code
	fresh bool     // compiled for each call
	texts []string // texts in it

	arguments []string // that it reads by name
}

// when reads and compiles a program.
func (r *reader) when(n *yaml.Node) *program {
	s, ok := r.Text(n, "when")
	if !ok {
		return nil
	}
	if len(s) > maxText {
		r.Bad(n, fmt.Sprintf("a jq program of %d bytes", len(s)), fmt.Sprintf("at most %d", maxText), "")
		return nil
	}
	code, err := jq.Compile(s)
	if err != nil {
		r.Bad(n, "when is not a jq program that may run here: "+err.Error(),
			"a program over {tool, arguments, meta} that gives true or false", "")
		return nil
	}
	p := &program{text: s, code: code}
	if q, err := gojq.Parse(s); err == nil {
		p.fresh = anyPattern(reflect.ValueOf(q))
		readArguments(reflect.ValueOf(q), func(name string) { p.arguments = append(p.arguments, name) })
		words(reflect.ValueOf(q), func(key string) { r.reads(n, key) }, func(text string) { p.texts = append(p.texts, text) })
	}
	return p
}

// errTimeout means that a program, or the whole decision, took too long.
var errTimeout = errors.New("no answer in time")

// holds runs the program. Any result except one boolean is an error. Otherwise a value
// like "true" or 1 could bypass a rule that denies.
func (p *program) holds(ctx context.Context, input any) (ok bool, err error) {
	defer func() {
		if x := recover(); x != nil {
			ok, err = false, errors.New("the jq program failed with an internal error")
		}
	}()
	code := p.code
	if p.fresh {
		if code, err = jq.Compile(p.text); err != nil {
			return false, err
		}
	}
	results := code.RunWithContext(ctx, input)
	first, any := results.Next()
	if !any {
		return false, errors.New("the jq program gave no result")
	}
	if err, bad := first.(error); bad {
		return false, programError(ctx, err)
	}
	ok, isBool := first.(bool)
	if !isBool {
		return false, fmt.Errorf("the jq program gave %s, not true or false", jsonpath.Kind(first))
	}
	if second, more := results.Next(); more {
		if err, bad := second.(error); bad {
			return false, programError(ctx, err)
		}
		return false, errors.New("the jq program gave more than one result")
	}
	return ok, nil
}

// programError shortens the program's own message, which may quote arguments.
func programError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errMemory) {
		return errMemory
	}
	if ctx.Err() != nil {
		return errTimeout
	}
	return errors.New("the jq program failed: " + strict.Quote(err.Error()))
}

// patterns are functions whose first argument is a regular expression.
var patterns = []string{"_match", "capture", "gsub", "match", "scan", "split", "splits", "sub", "test"}

// anyPattern reports whether a program takes a regular expression from anywhere except
// its own text. A compiled program caches every expression that it has used. If clients
// could choose them, a program that is kept would grow without limit.
func anyPattern(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && anyPattern(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if anyPattern(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		if f, ok := v.Interface().(gojq.Func); ok && slices.Contains(patterns, f.Name) {
			for _, arg := range f.Args {
				if arg.Term == nil || arg.Term.Str == nil || arg.Term.Str.Queries != nil || arg.Term.SuffixList != nil {
					return true
				}
			}
		}
		for i := range v.NumField() {
			if anyPattern(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// words collects what a program names: keys that it reads, and any other text in it.
func words(v reflect.Value, key, text func(string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			words(v.Elem(), key, text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			words(v.Index(i), key, text)
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case gojq.Index:
			if x.Name != "" {
				key(x.Name)
			}
			str := x.Str
			if q := x.Start; q != nil && !x.IsSlice && q.Term != nil && q.Term.Str != nil {
				str = q.Term.Str
			}
			if str != nil && str.Queries == nil {
				key(str.Str)
			}
		case gojq.String:
			text(x.Str)
		case gojq.ObjectKeyVal:
			text(x.Key)
		case gojq.PatternObject:
			text(strings.TrimPrefix(x.Key, "$"))
		}
		for i := range v.NumField() {
			words(v.Field(i), key, text)
		}
	}
}
