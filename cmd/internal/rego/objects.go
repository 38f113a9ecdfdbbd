package rego

import "errors"

var objectBuiltins = []builtin{
	{"object.subset", []kind{anything, anything}, func(c *call, a []any) (any, error) {
		is, comparable := c.subset(a[0], a[1])
		if !comparable {
			return nil, errors.New("values of other types")
		}
		return is, c.ctx.Err()
	}},
}

// castBuiltins give their argument, if it has the type. They are of old policies.
var castBuiltins = []builtin{
	{"cast_array", []kind{anything}, func(_ *call, a []any) (any, error) {
		list, err := members(a[0])
		return list, err
	}},
	{"cast_set", []kind{anything}, func(_ *call, a []any) (any, error) {
		list, err := members(a[0])
		return newSet(list...), err
	}},
	{"cast_string", []kind{str}, same},
	{"cast_object", []kind{obj}, same},
	{"cast_boolean", []kind{anything}, func(_ *call, a []any) (any, error) {
		if b, is := a[0].(bool); is {
			return b, nil
		}
		return nil, errType
	}},
	{"cast_null", []kind{anything}, func(_ *call, a []any) (any, error) {
		if a[0] != nil {
			return nil, errType
		}
		return nil, nil
	}},
}

func same(_ *call, a []any) (any, error) { return a[0], nil }

// subset tells whether a value has another one: an object its keys with values that have the other's
// values, a set its members, an array its members in a row, or the members of a set. Others cannot be
// compared.
func (c *call) subset(super, sub any) (is, comparable bool) {
	switch sub := sub.(type) {
	case object:
		if o, same := super.(object); same {
			return c.subObject(o, sub), true
		}
	case set:
		if s, same := super.(set); same {
			return subSet(s, sub), true
		}
		if list, same := super.([]any); same {
			return setInArray(list, sub), true
		}
	case []any:
		if list, same := super.([]any); same {
			return subArray(list, sub), true
		}
	}
	return false, false
}

func (c *call) subObject(super, sub object) bool {
	for _, m := range sub {
		v, has := super.get(m.key)
		if !has {
			return false
		}
		if equal(v, m.value) {
			continue
		}
		_, array := v.([]any)
		_, members := m.value.(set)
		if is, _ := c.subset(v, m.value); !is || array && members {
			return false
		}
	}
	return true
}

func subSet(super, sub set) bool {
	for _, m := range sub {
		if !super.has(m) {
			return false
		}
	}
	return true
}

// setInArray counts as OPA does: an equal member of the array counts each time, and an empty set is in no
// empty array.
func setInArray(super []any, sub set) bool {
	n := 0
	for _, m := range super {
		if sub.has(m) {
			n++
		}
	}
	return len(super) > 0 && n >= len(sub)
}

// subArray looks for the members in a row.
func subArray(super, sub []any) bool {
	for from := 0; from+len(sub) <= len(super); from++ {
		n := 0
		for n < len(sub) && equal(super[from+n], sub[n]) {
			n++
		}
		if n == len(sub) {
			return true
		}
	}
	return false
}
