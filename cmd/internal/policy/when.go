package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"runner/cmd/internal/pureq"
)

// whenTime is how long the programs of one decision may take together.
const whenTime = 100 * time.Millisecond

// program is a when: a jq program over {tool, arguments, meta}.
type program struct {
	text  string
	code  *gojq.Code
	names []string // keys that it reads
}

// when reads and compiles a program.
func (r *reader) when(n *yaml.Node) *program {
	s, ok := r.text(n, "when")
	if !ok {
		return nil
	}
	if len(s) > maxText {
		r.bad(n, fmt.Sprintf("a jq program of %d bytes", len(s)), fmt.Sprintf("at most %d", maxText), "")
		return nil
	}
	code, err := pureq.Compile(s)
	if err != nil {
		r.bad(n, "when is no jq program that may run here: "+err.Error(),
			"a program over {tool, arguments, meta} that gives true or false", "")
		return nil
	}
	return &program{s, code, programNames(s)}
}

// errTimeout says that a program, or the whole decision, took too long.
var errTimeout = errors.New("no answer in time")

// holds runs the program. Anything but one boolean is an error: a value that is
// merely like true would let a call slip past a rule that denies.
func (p *program) holds(ctx context.Context, input any) (ok bool, err error) {
	defer func() {
		if x := recover(); x != nil {
			ok, err = false, errors.New("the jq program broke off")
		}
	}()
	results := p.code.RunWithContext(ctx, input)
	first, any := results.Next()
	if !any {
		return false, errors.New("the jq program gave no result")
	}
	if err, bad := first.(error); bad {
		return false, programError(ctx, err)
	}
	ok, isBool := first.(bool)
	if !isBool {
		return false, fmt.Errorf("the jq program gave %s, not true or false", jsonKind(first))
	}
	if second, more := results.Next(); more {
		if err, bad := second.(error); bad {
			return false, programError(ctx, err)
		}
		return false, errors.New("the jq program gave more than one result")
	}
	return ok, nil
}

// programError keeps the program's own words, which may quote arguments, to a few.
func programError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errTimeout
	}
	return errors.New("the jq program failed: " + quote(err.Error()))
}

// programNames are the keys that a program reads, and any other text in it that may
// be one: has("key") reads a key too.
func programNames(text string) []string {
	q, err := gojq.Parse(text)
	if err != nil {
		return nil
	}
	var names []string
	collect(reflect.ValueOf(q), &names)
	return names
}

func collect(v reflect.Value, names *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), names)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), names)
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case gojq.Index:
			if x.Name != "" {
				*names = append(*names, x.Name)
			}
		case gojq.String:
			if x.Queries == nil && x.Str != "" {
				*names = append(*names, x.Str)
			}
		case gojq.ObjectKeyVal:
			*names = append(*names, strings.TrimPrefix(x.Key, "$"))
		case gojq.PatternObject:
			*names = append(*names, strings.TrimPrefix(x.Key, "$"))
		}
		for i := range v.NumField() {
			collect(v.Field(i), names)
		}
	}
}
