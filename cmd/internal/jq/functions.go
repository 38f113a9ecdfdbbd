package jq

import (
	"fmt"
	"maps"
	"strings"

	"github.com/itchyny/gojq"
)

// function is a function that the program defines, or a parameter of one: a program that its caller gives.
type function struct {
	name  string // with the number of its arguments: f/1
	def   *gojq.FuncDef
	body  *gojq.Query // of a parameter
	scope *function   // what its body sees
	next  *function   // what was defined before it
	loose bool        // a parameter of which nothing is known

	calls *calling // the calls of a function without parameters that are being followed, or nil
	busy  bool     // a call of it is being followed
	known bool     // its body was followed for any input
}

// calling is what is known of the calls of a function while its body is followed. It may call itself.
type calling struct {
	in, out value
	itself  bool // it calls itself, so that what it takes and gives may be more than was thought
}

// A program in which functions call functions many times is followed for some of the calls, and for any input after that.
const maxCalls = 2000

// maxTurns bounds how often more is found that a function which calls itself may take or give.
const maxTurns = 12

func nameOfFunc(name string, args int) string { return fmt.Sprintf("%s/%d", name, args) }

// define makes functions known to the programs after them, and to themselves.
func (r *reading) define(defs []*gojq.FuncDef) {
	for _, d := range defs {
		f := &function{name: nameOfFunc(d.Name, len(d.Args)), def: d, next: r.scope}
		f.scope = f
		r.scope = f
	}
}

func (r *reading) function(name string, args int) *function {
	name = nameOfFunc(name, args)
	for f := r.scope; f != nil; f = f.next {
		if f.name == name {
			return f
		}
	}
	return nil
}

// inScope follows the input through a program that sees other functions.
func (r *reading) inScope(scope *function, q *gojq.Query, in value) value {
	before := r.scope
	r.scope = scope
	out := r.query(q, in)
	r.scope = before
	return out
}

// own follows the input into a function that the program defines, as if its body were in the place of the call: what is an object
// of another kind there is not taken for the whole input.
func (r *reading) own(f *function, args []*gojq.Query, in value) value {
	r.calls++
	switch {
	case f.loose:
		r.takes(in)
		return r.anything()
	case r.calls > maxCalls:
		return r.ownLoose(f, args, in)
	case f.def == nil:
		return r.inScope(f.scope, f.body, in)
	case len(args) == 0:
		return r.recursive(f, in)
	case f.busy:
		return r.ownLoose(f, args, in)
	}
	f.busy = true
	defer func() { f.busy = false }()
	scope := f.scope
	for i, a := range f.def.Args {
		if strings.HasPrefix(a, "$") {
			r.vars[a] = join(r.vars[a], r.asks(args[i], in))
		}
		scope = &function{name: nameOfFunc(strings.TrimPrefix(a, "$"), 0), body: args[i], scope: r.scope, next: scope}
	}
	return r.inScope(scope, f.def.Body, in)
}

// recursive follows the input into a function without parameters, which may call itself.
func (r *reading) recursive(f *function, in value) value {
	if c := f.calls; c != nil {
		c.itself = true
		c.in = join(c.in, in)
		return c.out
	}
	c := &calling{in: in, out: nothing}
	f.calls = c
	defer func() { f.calls = nil }()
	found := r.found()
	for range maxTurns {
		took := c.in
		out := r.inScope(f.scope, f.def.Body, took)
		if !c.itself {
			return out
		}
		if took.covers(c.in) && c.out.covers(out) {
			return c.out
		}
		c.out = join(c.out, out)
		r.forget(found)
	}
	c.in, c.out = r.anything(), r.anything()
	r.inScope(f.scope, f.def.Body, c.in)
	return r.takes(c.in)
}

// findings are what is wrong with a program, or may be.
type findings struct {
	fault *UnknownKeyError
	later map[*gojq.Index]*gojq.Term
}

func (r *reading) found() findings { return findings{r.fault, maps.Clone(r.later)} }

// forget goes back to what was found before a turn that did not know yet all that its input can be: a key that the first input
// lacks can be one of the others, as with all that is in the input.
func (r *reading) forget(f findings) { r.fault, r.later = f.fault, maps.Clone(f.later) }

// ownLoose is a call of which nothing is followed but that it may take and give anything.
func (r *reading) ownLoose(f *function, args []*gojq.Query, in value) value {
	for _, a := range args {
		r.asks(a, r.anything())
	}
	if r.takes(in); f.def == nil {
		if !f.known {
			f.known = true
			before := r.scope
			r.scope = f.scope
			r.asks(f.body, r.anything())
			r.scope = before
		}
		return r.anything()
	}
	if !f.known {
		f.known = true
		scope := f.scope
		for _, a := range f.def.Args {
			if strings.HasPrefix(a, "$") {
				r.vars[a] = r.anything()
			}
			scope = &function{name: nameOfFunc(strings.TrimPrefix(a, "$"), 0), loose: true, next: scope}
		}
		before := r.scope
		r.scope = scope
		r.asks(f.def.Body, r.anything())
		r.scope = before
	}
	return r.anything()
}

// repeated is what a program gives that is applied to what it gives itself, and the first input.
func (r *reading) repeated(q *gojq.Query, in value) value {
	found := r.found()
	for range maxTurns {
		if r.calls++; r.calls > maxCalls {
			break
		}
		out := r.query(q, in)
		if in.covers(out) {
			return in
		}
		in = join(in, out)
		r.forget(found)
	}
	r.query(q, r.anything())
	return r.anything()
}
