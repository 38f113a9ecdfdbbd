package jq

import "slices"

// value is what a value in a program can be. With nothing in it, there is none.
type value struct {
	shapes []*Shape // a value of the input, or an array of such values
	part   bool     // something that may be from within the input
	other  bool     // something that the program made, with nothing of the input in it
}

var (
	nothing = value{}
	made    = value{other: true}
	within  = value{part: true, other: true}
)

func one(s *Shape) value {
	if s == nil {
		return made
	}
	return value{shapes: []*Shape{s}}
}

func (v value) has(s *Shape) bool { return slices.Contains(v.shapes, s) }

func join(list ...value) value {
	var out value
	for _, v := range list {
		out.part, out.other = out.part || v.part, out.other || v.other
		for _, s := range v.shapes {
			if !out.has(s) {
				out.shapes = append(out.shapes, s)
			}
		}
	}
	return out
}

// covers reports whether v says all that w can be.
func (v value) covers(w value) bool {
	for _, s := range w.shapes {
		if !v.has(s) {
			return false
		}
	}
	return (v.part || !w.part) && (v.other || !w.other)
}

// anything is a value of which nothing is known: it can also be the input.
func (r *reading) anything() value { return join(one(r.root), within) }

// loose is what a function may make of a value.
func (r *reading) loose(v value) value {
	switch {
	case v.has(r.root):
		return r.anything()
	case v.part || len(v.shapes) > 0:
		return within
	}
	return v
}

// takes notes that a value is looked at as a whole, and returns what can be made of it.
func (r *reading) takes(v value) value {
	if v.has(r.root) {
		r.whole = true
	}
	return r.loose(v)
}

// parts are the values of an object or an array.
func (r *reading) parts(v value) value {
	if v.has(r.root) {
		if r.whole = true; v.part { // it can be something with the input in it
			return r.anything()
		}
	}
	out := value{part: v.part, other: v.other}
	for _, s := range v.shapes {
		if s.Each != nil || s.Keys == nil {
			out = join(out, one(s.Each))
		}
		for _, key := range s.sorted() {
			out = join(out, one(s.Keys[key]))
		}
	}
	return out
}

// list is an array that the program makes.
func (r *reading) list(of value) value {
	if of.has(r.root) || of.part || len(of.shapes) > 0 && of.other {
		return r.takes(of)
	}
	if len(of.shapes) == 0 {
		return made
	}
	var out value
	for _, s := range of.shapes {
		l := r.lists[s]
		if l == nil {
			l = &Shape{Place: "[" + s.Place + "]", Array: true, Each: s}
			r.lists[s] = l
		}
		out = join(out, one(l))
	}
	return out
}

// deep is a value and all that is in it.
func (r *reading) deep(v value) value {
	r.takes(v)
	if v.part {
		return r.loose(v)
	}
	out := v
	for _, s := range v.shapes {
		s.within(func(in *Shape) { out = join(out, one(in)) })
	}
	out.other = true // strings and numbers have no keys, but what has unknown ones is like them
	return out
}

// key notes that a key of a value is read, and returns what it has. The second result says that only a
// run can tell whether that is wrong.
func (r *reading) key(name string, v value) (value, bool) {
	out, known := value{part: v.part, other: v.other || v.part}, false
	if r.writes { // the program makes it, perhaps in some objects of a list only
		r.names[name] = true
	}
	var lacking *Shape
	for _, s := range v.shapes {
		switch {
		case s.Array, s.lacks(name):
			if lacking == nil {
				lacking = s
			}
		case s.Keys == nil:
			out, known = join(out, one(s.Each)), true
		default:
			if s == r.root {
				r.keys[name] = true
			}
			out, known = join(out, one(s.Keys[name])), true
		}
	}
	open := v.part || v.other
	if v.has(r.root) && v.part {
		out = r.anything()
	}
	switch {
	case r.writes && lacking != r.root: // a key that the program adds
		return join(out, made), false
	case lacking != nil && !known && !open:
		r.refuse(name, lacking)
	case lacking != nil && !known || v.part:
		return out, !r.names[name] || v.has(r.root) && r.root.lacks(name)
	case v.has(r.root) && r.root.lacks(name): // among all that is in the input
		return out, !r.names[name]
	}
	return out, false
}
