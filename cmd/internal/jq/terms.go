package jq

import (
	"strings"

	"github.com/itchyny/gojq"
)

// term follows the input through one term and its suffixes.
func (r *reading) term(t *gojq.Term, in place) place {
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

// parts are the values of an object. Those of the input are not the input.
func (r *reading) parts(at place) place {
	if r.takes(at); at == input {
		return inner
	}
	return at
}

func (r *reading) head(t *gojq.Term, in place) place {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeRecurse, gojq.TermTypeFormat:
		if t.Str != nil {
			r.texts(t.Str, in)
			return inner
		}
		return r.takes(in)
	case gojq.TermTypeIndex:
		return r.index(t.Index, t, in, in)
	case gojq.TermTypeFunc:
		return r.call(t.Func, in)
	case gojq.TermTypeObject:
		return r.object(t.Object, in)
	case gojq.TermTypeArray:
		return r.takes(r.query(t.Array.Query, in))
	case gojq.TermTypeUnary:
		r.term(t.Unary.Term, in)
		return inner
	case gojq.TermTypeString:
		r.texts(t.Str, in)
		return inner
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	case gojq.TermTypeIf, gojq.TermTypeTry, gojq.TermTypeReduce, gojq.TermTypeForeach, gojq.TermTypeLabel:
		return r.block(t, in)
	}
	return inner
}

// block is a term with programs in it.
func (r *reading) block(t *gojq.Term, in place) place {
	switch {
	case t.If != nil:
		r.query(t.If.Cond, in)
		out := r.query(t.If.Then, in)
		for _, e := range t.If.Elif {
			r.query(e.Cond, in)
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
		r.bind(t.Reduce.Patterns, r.query(t.Reduce.Query, in))
		return r.state(r.query(t.Reduce.Start, in), t.Reduce.Update)
	case t.Foreach != nil:
		r.bind(t.Foreach.Patterns, r.query(t.Foreach.Query, in))
		out := r.state(r.query(t.Foreach.Start, in), t.Foreach.Update)
		if t.Foreach.Extract != nil {
			return r.query(t.Foreach.Extract, out)
		}
		return out
	}
	return r.query(t.Label.Body, in)
}

// state is what a loop hands on from one turn to the next.
func (r *reading) state(start place, update *gojq.Query) place {
	out := r.query(update, start)
	if out != start {
		out = r.query(update, maybe)
	}
	return join(start, out)
}

// object is an object that the program makes. {key} is short for {key: .key}.
func (r *reading) object(o *gojq.Object, in place) place {
	out := inner
	for _, kv := range o.KeyVals {
		if kv.KeyString != nil {
			r.texts(kv.KeyString, in)
		}
		r.query(kv.KeyQuery, in)
		if kv.Val == nil && kv.Key != "" && !strings.HasPrefix(kv.Key, "$") {
			kv.Val = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Name: kv.Key}}}
		}
		switch {
		case kv.Val != nil:
			out = max(out, r.takes(r.query(kv.Val, in)))
		case strings.HasPrefix(kv.Key, "$"):
			out = max(out, r.takes(r.variable(kv.Key)))
		default:
			out = max(out, r.takes(in))
		}
	}
	return out
}

func (r *reading) variable(name string) place {
	if at, known := r.vars[name]; known {
		return at
	}
	return maybe
}

// How a builtin treats its input and its arguments.
const (
	blindly  = iota // it looks at neither
	outer           // its arguments are programs over its input
	each            // the first is one over its input, the others over what that gives
	elements        // its argument is one over the parts of its input
	filter          // its argument is one over its input, which it passes on
)

var builtins = map[string]int{
	"true/0": blindly, "false/0": blindly, "null/0": blindly, "empty/0": blindly, "not/0": blindly, "error/0": blindly,
	"first/1": outer, "last/1": outer, "isempty/1": outer, "limit/2": outer, "skip/2": outer, "add/1": outer, "error/1": outer, "range/1": outer, "range/2": outer,
	"any/2": each, "all/2": each,
	"any/1": elements, "all/1": elements, "map/1": elements, "any/0": elements, "all/0": elements,
	"select/1": filter,
}

// call follows the input into a function.
func (r *reading) call(f *gojq.Func, in place) place {
	if strings.HasPrefix(f.Name, "$") {
		return r.variable(f.Name)
	}
	kind, known := builtins[f.Name+"/"+string(rune('0'+min(len(f.Args), 9)))]
	if !known || r.own[f.Name] {
		for _, a := range f.Args {
			r.query(a, r.loose(in))
		}
		return r.takes(in)
	}
	switch kind {
	case outer:
		out := inner
		for _, a := range f.Args {
			out = max(out, r.query(a, in))
		}
		return r.loose(out)
	case each:
		r.query(f.Args[1], r.query(f.Args[0], in))
	case elements:
		for _, a := range f.Args {
			r.query(a, r.parts(in))
		}
		r.takes(in)
		if f.Name == "map" {
			return r.loose(r.parts(in))
		}
	case filter:
		r.query(f.Args[0], in)
		return in
	}
	return inner
}
