package main

import (
	"reflect"

	"github.com/itchyny/gojq"
)

// outside are the functions through which a verdict could depend on anything but
// the archive, or do anything but answer.
var outside = map[string]bool{
	"input": true, "inputs": true, "debug": true, "stderr": true, "env": true, "$ENV": true,
	"halt": true, "halt_error": true, "input_filename": true, "input_line_number": true,
	"now": true, "localtime": true, "mktime": true, "strflocaltime": true,
	"get_search_list": true, "modulemeta": true,
}

// forbidden returns what a program uses of the outside, "" when it is pure.
func forbidden(q *gojq.Query) string { return reach(reflect.ValueOf(q)) }

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
