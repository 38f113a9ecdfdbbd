package schemas

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// complete checks what a struct decode cannot see: that every required key is
// there and that nothing is null that must not be. The struct's tags say which.
// A key without omitempty or omitzero is required, and a key with one never
// holds the value that is left out. Null goes only into a pointer that is always
// written. The tag contract:"optional" lets such a key be absent as well.
func complete(v any, t reflect.Type, at string) error {
	switch t.Kind() {
	case reflect.Pointer:
		return complete(v, t.Elem(), at)
	case reflect.Interface:
		return nil
	}
	if v == nil {
		return fmt.Errorf("%s is null", name(at))
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Kind() == reflect.Map {
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if err := complete(v[k], t.Elem(), at+"."+k); err != nil {
					return err
				}
			}
			return nil
		}
		return completeStruct(v, t, at)
	case []any:
		for i, e := range v {
			if err := complete(e, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func completeStruct(v map[string]any, t reflect.Type, at string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			if err := completeStruct(v, f.Type, at); err != nil {
				return err
			}
			continue
		}
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		omit := options == "omitempty" || options == "omitzero"
		e, there := v[key]
		switch {
		case !there && !omit && f.Tag.Get("contract") != "optional":
			return fmt.Errorf("%s is missing", name(at+"."+key))
		case !there, e == nil && !omit && f.Type.Kind() == reflect.Pointer:
			continue
		case e == nil:
			return fmt.Errorf("%s is null", name(at+"."+key))
		case omit && empty(e, f.Type.Kind()):
			return fmt.Errorf("%s is empty", name(at+"."+key))
		}
		if err := complete(e, f.Type, at+"."+key); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether e is the value of an optional key that says nothing, and
// is therefore left out.
func empty(e any, kind reflect.Kind) bool {
	switch e := e.(type) {
	case string:
		return e == ""
	case bool:
		return !e
	case float64:
		return e == 0 && kind != reflect.Pointer
	case []any:
		return len(e) == 0
	}
	return false
}

func name(at string) string { return "key " + strings.TrimPrefix(at, ".") }
