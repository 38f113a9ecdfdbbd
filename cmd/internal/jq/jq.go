// Package jq compiles jq programs that depend only on their input: they see no
// environment, no clock, no other input and no modules, and have no effect.
package jq

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/runner-evidence/runner/schemas"
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
	return NewProgram(text, Form{Shape: OfForm(kernelLine)})
}

// kernelLine is the form of what a program of --drop sees.
var kernelLine, _ = schemas.MemberOf(schemas.MemberKernel)

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

// compiled is a program over one value.
type compiled struct {
	*gojq.Code
	shape *Shape   // of that value, or nil
	read  *reading // nil if nothing is known of the value
	deep  bool     // keys of what is in the value are to be looked at when the program runs

	input   any                // the value of the current run, kept so that no other object can be where its objects are
	objects map[uintptr]*Shape // the objects in it
	lacks   *UnknownKeyError   // the first unknown key that was read, or nil
}

// compile compiles a program. With a shape, its input is one object, and a program that reads a key which
// that does not have is refused, or fails when it does so.
func compile(text string, shape *Shape) (*compiled, error) {
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiled{shape: shape}
	if shape != nil {
		if c.read, err = read(q, shape); err != nil {
			return nil, err
		}
		for x := range c.read.later {
			c.deep = c.deep || !c.read.names[nameOf(x)]
		}
	}
	c.Code, err = gojq.Compile(q, gojq.WithFunction(lacks, 1, 1, func(v any, args []any) any {
		name, _ := args[0].(string)
		if err := c.unknown(v, name); err != nil {
			if c.lacks == nil {
				c.lacks = err
			}
			return err
		}
		return false
	}))
	return c, err
}

// take makes the program look at a value.
func (c *compiled) take(input any) {
	c.input, c.objects, c.lacks = input, map[uintptr]*Shape{}, nil
	register := func(m map[string]any, s *Shape) { c.objects[reflect.ValueOf(m).Pointer()] = s }
	if m, is := input.(map[string]any); c.deep {
		c.shape.objects(input, register)
	} else if is {
		register(m, c.shape)
	}
}

// unknown reports that a value is an object of the input which never has a key. A key that objects elsewhere in
// the input have can be meant for them.
func (c *compiled) unknown(v any, name string) *UnknownKeyError {
	m, is := v.(map[string]any)
	if !is {
		return nil
	}
	s := c.objects[reflect.ValueOf(m).Pointer()]
	if !s.lacks(name) || s != c.shape && c.read.names[name] {
		return nil
	}
	return unknown(name, s)
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
