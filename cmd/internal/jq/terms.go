package jq

import (
	"strings"

	"github.com/itchyny/gojq"
)

// term follows the input through one term and its suffixes.
func (r *reading) term(t *gojq.Term, in value) value {
	at := r.head(t, in)
	for _, s := range t.SuffixList {
		switch {
		case s.Index != nil:
			at = r.index(s.Index, t, at, in)
		case s.Iter:
			at = r.parts(at)
		}
	}
	return at
}

func (r *reading) head(t *gojq.Term, in value) value {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeRecurse:
		return r.deep(in)
	case gojq.TermTypeFormat:
		if t.Str != nil {
			r.texts(t.Str, in)
			return made
		}
		r.takes(in)
		return made
	case gojq.TermTypeIndex:
		return r.index(t.Index, t, in, in)
	case gojq.TermTypeFunc:
		return r.call(t.Func, in)
	case gojq.TermTypeObject:
		return r.object(t.Object, in)
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return made
		}
		return r.list(r.asks(t.Array.Query, in))
	case gojq.TermTypeUnary:
		r.term(t.Unary.Term, in)
		return made
	case gojq.TermTypeString:
		r.texts(t.Str, in)
		return made
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	case gojq.TermTypeIf, gojq.TermTypeTry, gojq.TermTypeReduce, gojq.TermTypeForeach, gojq.TermTypeLabel:
		return r.block(t, in)
	case gojq.TermTypeBreak:
		return nothing
	}
	return made
}

// block is a term with programs in it.
func (r *reading) block(t *gojq.Term, in value) value {
	switch {
	case t.If != nil:
		r.asks(t.If.Cond, in)
		out := r.query(t.If.Then, in)
		for _, e := range t.If.Elif {
			r.asks(e.Cond, in)
			out = join(out, r.query(e.Then, in))
		}
		if t.If.Else == nil {
			return join(out, in)
		}
		return join(out, r.query(t.If.Else, in))
	case t.Try != nil:
		out := r.query(t.Try.Body, in)
		if t.Try.Catch == nil {
			return out
		}
		return join(out, r.query(t.Try.Catch, r.loose(in)))
	case t.Reduce != nil:
		r.bind(t.Reduce.Patterns, r.asks(t.Reduce.Query, in))
		return r.state(r.query(t.Reduce.Start, in), t.Reduce.Update)
	case t.Foreach != nil:
		r.bind(t.Foreach.Patterns, r.asks(t.Foreach.Query, in))
		out := r.state(r.query(t.Foreach.Start, in), t.Foreach.Update)
		if t.Foreach.Extract != nil {
			return r.query(t.Foreach.Extract, out)
		}
		return out
	}
	return r.query(t.Label.Body, in)
}

// maxLoops bounds loops in loops of which each turn is looked at twice.
const maxLoops = 4

// state is what a loop hands on from one turn to the next.
func (r *reading) state(start value, update *gojq.Query) value {
	r.loops++
	defer func() { r.loops-- }()
	if r.loops > maxLoops {
		return join(r.anything(), r.query(update, r.anything()))
	}
	out := r.query(update, start)
	if start.covers(out) {
		return start
	}
	all := join(within, r.loose(join(start, out)))
	return join(all, r.query(update, all))
}

// object is an object that the program makes. {key} is short for {key: .key}.
func (r *reading) object(o *gojq.Object, in value) value {
	out := made
	for _, kv := range o.KeyVals {
		if kv.KeyString != nil {
			r.texts(kv.KeyString, in)
		}
		if kv.KeyQuery != nil {
			r.asks(kv.KeyQuery, in)
		}
		if kv.Val == nil && kv.Key != "" && !strings.HasPrefix(kv.Key, "$") {
			kv.Val = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Name: kv.Key}}}
		}
		switch {
		case kv.Val != nil:
			out = join(out, r.takes(r.asks(kv.Val, in)))
		case strings.HasPrefix(kv.Key, "$"):
			out = join(out, r.takes(r.variable(kv.Key)))
		default:
			out = join(out, r.takes(in))
		}
	}
	return out
}

func (r *reading) variable(name string) value {
	if at, known := r.vars[name]; known {
		return at
	}
	return r.anything()
}

// How a builtin treats its input and its arguments.
const (
	ends     = iota // it gives no result
	throws          // and what it looks at is what a catch gets
	blindly         // it looks at nothing
	plainly         // it looks at its input, and gives nothing of it
	outer           // its arguments are programs over its input; it gives what the last gives
	sums            // its arguments are programs over its input; it makes something of what they give
	each            // the first is one over its input, the others over what that gives
	elements        // its argument is one over the parts of its input
	mapped          // and it makes an array of what that gives
	orders          // and it gives its input in another order, or less of it
	groups          // and it gives an array of such arrays
	picks           // and it gives one of the parts
	filter          // its argument is one over its input, which it passes on
)

var builtins = map[string]int{
	"empty/0": ends, "error/0": throws, "error/1": throws,
	"true/0": blindly, "false/0": blindly, "null/0": blindly, "not/0": blindly,
	"length/0": plainly, "keys/0": plainly, "keys_unsorted/0": plainly, "type/0": plainly, "tostring/0": plainly, "tojson/0": plainly, "has/1": plainly,
	"first/1": outer, "last/1": outer, "limit/2": outer, "skip/2": outer,
	"isempty/1": sums, "add/1": sums, "range/1": sums, "range/2": sums,
	"any/2": each, "all/2": each,
	"any/1": elements, "all/1": elements, "any/0": elements, "all/0": elements,
	"map/1":  mapped,
	"sort/0": orders, "sort_by/1": orders, "unique/0": orders, "unique_by/1": orders, "reverse/0": orders,
	"group_by/1": groups,
	"first/0":    picks, "last/0": picks, "min/0": picks, "max/0": picks, "min_by/1": picks, "max_by/1": picks,
	"select/1": filter, "values/0": filter, "objects/0": filter, "arrays/0": filter, "scalars/0": filter, "strings/0": filter, "numbers/0": filter,
	"booleans/0": filter, "iterables/0": filter, "nulls/0": filter,
}

// call follows the input into a function.
func (r *reading) call(f *gojq.Func, in value) value {
	if strings.HasPrefix(f.Name, "$") {
		return r.variable(f.Name)
	}
	if own := r.function(f.Name, len(f.Args)); own != nil {
		return r.own(own, f.Args, in)
	}
	switch {
	case f.Name == "recurse" && len(f.Args) == 0:
		return r.deep(in) // it is ..
	case f.Name == "recurse" && len(f.Args) == 1:
		return r.repeated(f.Args[0], in)
	}
	kind, known := builtins[f.Name+"/"+string(rune('0'+min(len(f.Args), 9)))]
	if !known {
		for _, a := range f.Args {
			r.asks(a, r.loose(in))
		}
		return r.takes(in)
	}
	of := in
	switch kind {
	case elements, mapped, orders, groups, picks:
		of = r.parts(in)
	}
	out := in
	for i, a := range f.Args {
		if kind == outer && i == len(f.Args)-1 {
			return r.query(a, in) // it can be a path
		}
		out = r.asks(a, of)
		if kind == each {
			of = out
		}
	}
	switch kind {
	case throws:
		r.takes(out)
		return nothing
	case ends:
		return nothing
	case plainly:
		r.takes(in)
	case sums:
		return r.loose(join(out, made))
	case mapped:
		return r.list(out)
	case orders:
		return in
	case groups:
		return r.list(r.list(of))
	case picks:
		return of
	case filter:
		return in
	}
	return made
}
