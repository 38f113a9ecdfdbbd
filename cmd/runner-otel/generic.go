package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
)

// object is a line or a document as a tree, with its numbers as they are spelled.
func object(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var tree map[string]any
	return tree, d.Decode(&tree)
}

// fields appends the attributes of an object: the table says which key becomes what.
type fields struct {
	m         *member
	sensitive bool
	dropped   int               // fields that are not in the record
	moved     map[string]string // fields that are no attribute: the place, and the text
	eventType uint32            // of a kernel line
	rename    func(string) string
}

// append appends those of an object that is at a path: "" or a path with its dot.
func (f *fields) append(dst []byte, path string, tree map[string]any) []byte {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		v, field := tree[key], path+key
		if _, whole := f.m.index[field]; !whole {
			if container(v) {
				dst = f.nested(dst, field, v)
				continue
			}
		}
		switch to := f.m.take(field, v == nil, f.sensitive, &f.dropped); to {
		case "":
		case toEventName, toTime, toScope, toRun, "endTimeUnixNano":
			if s, ok := v.(string); ok {
				f.moved[to] = s
			}
		case toValue:
			dst = appendKernelValue(dst, f.eventType, []byte(v.(string)))
		default:
			if f.rename != nil {
				to = f.rename(to)
			}
			dst = otlp.AppendEnd(appendAny(otlp.AppendKey(dst, strings.ReplaceAll(to, "[]", "")), v))
		}
	}
	return dst
}

// container reports whether a value has fields of its own.
func container(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return true
	case []any:
		return len(v) == 0 || slices.ContainsFunc(v, func(e any) bool { _, ok := e.(map[string]any); return ok })
	}
	return false
}

// nested appends an object, or a list of them, as one attribute with the fields that are mapped.
func (f *fields) nested(dst []byte, field string, v any) []byte {
	key := f.m.event + "." + strings.ReplaceAll(field, "[]", "")
	if list, ok := v.([]any); ok {
		dst = append(otlp.AppendKey(dst, key), `{"arrayValue":{"values":[`...)
		for _, e := range list {
			dst = append(f.object(dst, field+"[].", e.(map[string]any)), ',')
		}
		return otlp.AppendEnd(append(otlp.Trim(dst), "]}}"...))
	}
	return otlp.AppendEnd(f.object(otlp.AppendKey(dst, key), field+".", v.(map[string]any)))
}

func (f *fields) object(dst []byte, path string, tree map[string]any) []byte {
	inner := *f
	inner.rename = leaf
	dst = append(dst, `{"kvlistValue":{"values":[`...)
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if o, ok := tree[key].(map[string]any); ok {
			dst = otlp.AppendEnd(inner.object(otlp.AppendKey(dst, key), path+key+".", o))
		} else {
			dst = inner.append(dst, path, map[string]any{key: tree[key]})
		}
	}
	f.dropped = inner.dropped
	return append(otlp.Trim(dst), "]}}"...)
}

// appendAny appends a value of JSON.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return otlp.AppendString(dst, []byte(v))
	case bool:
		return otlp.AppendBool(dst, v)
	case json.Number:
		return appendNumber(dst, string(v))
	case []any:
		dst = append(dst, `{"arrayValue":{"values":[`...)
		for _, e := range v {
			dst = append(appendAny(dst, e), ',')
		}
		return append(otlp.Trim(dst), "]}}"...)
	case map[string]any:
		dst = append(dst, `{"kvlistValue":{"values":[`...)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dst = otlp.AppendEnd(appendAny(otlp.AppendKey(dst, key), v[key]))
		}
		return append(otlp.Trim(dst), "]}}"...)
	}
	return append(dst, "{}"...) // null within a value
}

// appendNumber appends a number. Those that OTLP cannot hold exactly are texts.
func appendNumber(dst []byte, s string) []byte {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return otlp.AppendInt(dst, n)
	}
	return otlp.AppendString(dst, []byte(s))
}
