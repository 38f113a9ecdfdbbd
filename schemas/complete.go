package schemas

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// complete checks what decoding into a struct does not check: that every required key is
// present, and that no key is null unless it may be. This follows from the struct's tags.
// A key without omitempty and omitzero is required. A key with one of them must not have
// the empty value, because it would not be written then. Null is valid only for a pointer
// that is always written. With the tag contract:"optional" such a key may also be absent.
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

// empty reports whether e is the empty value, with which an optional key is not written.
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
