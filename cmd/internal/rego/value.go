package rego

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A value of Rego is nil, bool, json.Number (its text as it was written), string, []any, set or object.

// set has its members in Rego's order, each once.
type set []any

// object has its members in the order of their keys, each key once.
type object []member

// member is one key of an object with its value.
type member struct{ key, value any }

// newSet is the set of these members.
func newSet(members ...any) set {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, compare)
	return slices.CompactFunc(sorted, equal)
}

func (s set) has(v any) bool {
	_, is := slices.BinarySearchFunc(s, v, compare)
	return is
}

// newObject is the object of these members. Of a key that is there twice, the last one counts.
func newObject(members ...member) object {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b member) int { return compare(a.key, b.key) })
	o := sorted[:0]
	for _, m := range sorted {
		if n := len(o); n > 0 && equal(o[n-1].key, m.key) {
			o[n-1] = m
		} else {
			o = append(o, m)
		}
	}
	return o
}

func (o object) get(key any) (any, bool) {
	i, is := slices.BinarySearchFunc(o, key, func(m member, k any) int { return compare(m.key, k) })
	if !is {
		return nil, false
	}
	return o[i].value, true
}

func equal(a, b any) bool { return compare(a, b) == 0 }

// rank orders values of different types, as Rego does.
func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case json.Number:
		return 2
	case string:
		return 3
	case []any:
		return 4
	case object:
		return 5
	}
	return 6
}

// compare is the order of all values of Rego.
func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case bool:
		return cmp.Compare(truth(a), truth(b.(bool)))
	case json.Number:
		return compareNumbers(a, b.(json.Number))
	case string:
		return strings.Compare(a, b.(string))
	case []any:
		return slices.CompareFunc(a, b.([]any), compare)
	case set:
		return slices.CompareFunc(a, b.(set), compare)
	case object:
		return compareObjects(a, b.(object))
	}
	return 0
}

// compareObjects takes the first key or value that differs, then the sizes.
func compareObjects(a, b object) int {
	return slices.CompareFunc(a, b, func(x, y member) int {
		if c := compare(x.key, y.key); c != 0 {
			return c
		}
		return compare(x.value, y.value)
	})
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
