package rego

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

var patchBuiltins = []builtin{{"json.patch", []kind{anything, arr}, patch}}

// gone is the document after it was removed as a whole.
type gone struct{}

var errPath = errors.New("no such place")

// patch applies the operations of JSON Patch (RFC 6902) to a value; paths may also be arrays, and go into sets.
func patch(c *call, a []any) (any, error) {
	v := a[0]
	for _, op := range a[1].([]any) {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		o, is := op.(object)
		if !is {
			return nil, errType
		}
		var err error
		if v, err = patched(v, o); err != nil {
			return nil, err
		}
	}
	if _, is := v.(gone); is {
		return nil, errPath
	}
	return v, nil
}

func patched(v any, o object) (any, error) {
	to, err := pathOf(o, "path")
	if err != nil {
		return nil, err
	}
	name, _ := o.get("op")
	value, has := o.get("value")
	switch name {
	case "move", "copy":
		from, err := pathOf(o, "from")
		if err != nil {
			return nil, err
		}
		if value, err = find(v, from); err != nil {
			return nil, err
		}
		if name == "move" {
			if v, err = remove(v, from); err != nil {
				return nil, err
			}
		}
		return insert(v, to, value)
	case "remove":
		return remove(v, to)
	}
	if !has {
		return nil, errors.New("no value")
	}
	switch name {
	case "add":
		return insert(v, to, value)
	case "replace":
		if v, err = remove(v, to); err != nil {
			return nil, err
		}
		return insert(v, to, value)
	case "test":
		found, err := find(v, to)
		if err == nil && !equal(found, value) {
			err = errors.New("another value")
		}
		return v, err
	}
	return nil, errors.New("an unknown operation")
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// pathOf reads a pointer as text, which may begin with any number of /, or as an array of keys.
func pathOf(o object, name string) ([]any, error) {
	v, _ := o.get(name)
	switch v := v.(type) {
	case []any:
		return v, nil
	case string:
		if v == "" {
			return nil, nil
		}
		path := []any{}
		for part := range strings.SplitSeq(strings.TrimLeft(v, "/"), "/") {
			path = append(path, unescaped.Replace(part))
		}
		return path, nil
	}
	return nil, errPath
}

// index is a key of an array: a number, its digits, or - for the end.
func index(key any, length int) (int, error) {
	if s, is := key.(string); is {
		if s == "-" {
			return length, nil
		}
		n, err := (&text{left: s, size: len(s)}).number()
		if err != nil || string(n) != s || len(s) > 1 && s[0] == '0' {
			return 0, errPath
		}
		key = n
	}
	n, is := key.(json.Number)
	if !is {
		return 0, errPath
	}
	i, err := integer(n)
	if err == nil && (i < 0 || i > length) {
		err = errPath
	}
	return i, err
}

// child is a member of a value.
func child(v, key any) (any, error) {
	switch v := v.(type) {
	case object:
		if m, has := v.get(key); has {
			return m, nil
		}
	case set:
		if v.has(key) {
			return key, nil
		}
	case []any:
		if i, err := index(key, len(v)); err == nil && i < len(v) {
			return v[i], nil
		}
	}
	return nil, errPath
}

func find(v any, path []any) (any, error) {
	for _, key := range path {
		var err error
		if v, err = child(v, key); err != nil {
			return nil, err
		}
	}
	if _, is := v.(gone); is {
		return nil, errPath
	}
	return v, nil
}

// edit changes the parent of the last key of a path.
func edit(v any, path []any, change func(parent, key any) (any, error)) (any, error) {
	if len(path) == 1 {
		return change(v, path[0])
	}
	old, err := child(v, path[0])
	if err != nil {
		return nil, err
	}
	changed, err := edit(old, path[1:], change)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case object:
		return newObject(append(slices.Clone(v), member{path[0], changed})...), nil
	case []any:
		i, err := index(path[0], len(v))
		if err != nil {
			return nil, err
		}
		list := slices.Clone(v)
		list[i] = changed
		return list, nil
	}
	s, _ := remove(v, path[:1])
	return newSet(append(slices.Clone(s.(set)), changed)...), nil
}

func insert(v any, path []any, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	return edit(v, path, func(parent, key any) (any, error) {
		switch p := parent.(type) {
		case object:
			return newObject(append(slices.Clone(p), member{key, value})...), nil
		case set:
			if !equal(key, value) {
				return nil, errPath
			}
			return newSet(append(slices.Clone(p), value)...), nil
		case []any:
			i, err := index(key, len(p))
			if err != nil {
				return nil, err
			}
			return slices.Insert(slices.Clone(p), i, value), nil
		}
		return nil, errPath
	})
}

func remove(v any, path []any) (any, error) {
	if len(path) == 0 {
		if _, is := v.(gone); is {
			return nil, errPath
		}
		return gone{}, nil
	}
	return edit(v, path, func(parent, key any) (any, error) {
		if _, err := child(parent, key); err != nil {
			return nil, err
		}
		same := func(k any) bool { return equal(k, key) }
		switch p := parent.(type) {
		case object:
			return slices.DeleteFunc(slices.Clone(p), func(m member) bool { return same(m.key) }), nil
		case set:
			return slices.DeleteFunc(slices.Clone(p), same), nil
		}
		list := slices.Clone(parent.([]any))
		i, _ := index(key, len(list))
		return slices.Delete(list, i, i+1), nil
	})
}
