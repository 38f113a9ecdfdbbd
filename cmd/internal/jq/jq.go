// Package jq compiles jq programs that depend only on their input: they see no
// environment, no clock, no other input and no modules, and have no effect.
package jq

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// outside are the functions that read something other than the input, or have an
// effect.
var outside = map[string]bool{
	"input": true, "inputs": true, "debug": true, "stderr": true, "env": true, "$ENV": true,
	"halt": true, "halt_error": true, "input_filename": true, "input_line_number": true,
	"now": true, "localtime": true, "mktime": true, "strflocaltime": true,
	"get_search_list": true, "modulemeta": true,
}

// Compile parses and compiles a program. The error says what is wrong with it.
func Compile(text string) (*gojq.Code, error) {
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	return gojq.Compile(q)
}

// CheckDrop compiles a program of --drop. The error says what is wrong with it.
func CheckDrop(text string) (*Program, error) {
	if !utf8.ValidString(text) || len(text) > maxDrop {
		return nil, fmt.Errorf("expected a program in UTF-8 of at most %d bytes", maxDrop)
	}
	return NewProgram(text, Form{})
}

// maxDrop bounds a program of --drop, in bytes: it is written to the record.
const maxDrop = 64 << 10

func parse(text string) (*gojq.Query, error) {
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, err
	}
	if name := reach(reflect.ValueOf(q)); name != "" {
		return nil, fmt.Errorf("%s is not available: the program may only read its input", name)
	}
	return q, nil
}

// compiled is a program over one object.
type compiled struct {
	*gojq.Code
	known []string // keys of that object, or nil
	uses  *Uses    // nil if the keys of the object are not known
	input uintptr  // the object of the current run
	lacks string   // the unknown key of it that was read, or ""
}

// compile compiles a program. With known, its input is one object with these keys, and a program that
// reads another key of it is refused, or fails when it does so.
func compile(text string, known []string) (*compiled, error) {
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiled{known: known}
	if known != nil {
		if c.uses, err = read(q, known); err != nil {
			return nil, err
		}
	}
	c.Code, err = gojq.Compile(q, gojq.WithFunction(lacks, 1, 1, func(v any, args []any) any {
		m, is := v.(map[string]any)
		is = is && reflect.ValueOf(m).Pointer() == c.input
		if is && c.lacks == "" {
			c.lacks, _ = args[0].(string)
		}
		return is
	}))
	return c, err
}

// reach looks for a forbidden function or an import anywhere in a program, and
// returns its name.
func reach(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return reach(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if name := reach(v.Index(i)); name != "" {
				return name
			}
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case gojq.Import:
			return "a module"
		case gojq.Func:
			if outside[x.Name] {
				return x.Name
			}
		}
		for i := range v.NumField() {
			if name := reach(v.Field(i)); name != "" {
				return name
			}
		}
	}
	return ""
}
