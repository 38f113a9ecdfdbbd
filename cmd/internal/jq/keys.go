package jq

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// UnknownKeyError is a program that reads a key which its input never has there. jq itself gives null,
// so that a misspelt key makes "nothing is like that" true.
type UnknownKeyError struct {
	Key   string
	Known []string // the keys that there are; nil of an array
	Place string   // what a program writes to get to the object; "" is the input
}

func (e *UnknownKeyError) Error() string {
	at, keys := "", "; the keys are"
	if e.Place != "" {
		at, keys = " in "+e.Place, "; the keys there are"
	}
	text := "there is no " + dot(fmt.Sprintf("%.60s", e.Key)) + at
	if e.Known == nil {
		return text + ", which is an array: write " + e.Place + "[] for each of its elements"
	}
	if near := nearest.Word(e.Key, e.Known); near != "" {
		text += ", did you mean " + dot(near) + "?"
	}
	for _, key := range e.Known {
		keys += " " + dot(key)
	}
	return text + keys
}

var plainKey = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// dot is what a program writes to read a key.
func dot(key string) string {
	if plainKey.MatchString(key) {
		return "." + key
	}
	return "." + text(key)
}

// unknown is the error of a key of an object or an array.
func unknown(key string, s *Shape) *UnknownKeyError {
	e := &UnknownKeyError{Key: key, Place: s.Place}
	if !s.Array {
		e.Known = s.sorted()
	}
	return e
}

// Uses is what a program reads of an input that is one object with known keys.
type Uses struct {
	keys  map[string]bool
	whole bool
}

// Key reports whether the program may read a key of its input.
func (u *Uses) Key(name string) bool { return u.whole || u.keys[name] }

// reading follows the input of a program through it.
type reading struct {
	Uses
	root   *Shape
	names  map[string]bool            // all keys of all objects in the input, and of those that the program makes
	fault  *UnknownKeyError           // the first unknown key that is surely read, or nil
	writes bool                       // the path is one that an assignment writes to
	loops  int                        // that the program is in
	scope  *function                  // functions that the program defines, the last first
	calls  int                        // of functions that were followed
	vars   map[string]value           // what variables hold
	lists  map[*Shape]*Shape          // arrays of values of the input that the program makes
	later  map[*gojq.Index]*gojq.Term // keys to look at when the program runs
}

// read finds out what a program reads. The keys that only a run can tell are given to the function lacks.
func read(q *gojq.Query, root *Shape) (*reading, error) {
	r := &reading{Uses: Uses{keys: map[string]bool{}}, root: root, names: map[string]bool{}, vars: map[string]value{},
		lists: map[*Shape]*Shape{}, later: map[*gojq.Index]*gojq.Term{}}
	root.within(func(s *Shape) {
		for key := range s.Keys {
			r.names[key] = true
		}
	})
	r.makes(reflect.ValueOf(q))
	r.query(q, one(root))
	if r.fault != nil {
		return nil, r.fault
	}
	return r, r.guard()
}

// makes adds the keys of objects that the program makes: with those of the input in one list, it may look for them in both.
// A text can be a key that it makes, too. What it only reads is none.
func (r *reading) makes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.makes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.makes(v.Index(i))
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case gojq.String:
			r.names[x.Str] = true
		case gojq.Index:
			if t := onlyTerm(x.Start); t == nil || t.Type != gojq.TermTypeString {
				r.makes(reflect.ValueOf(x.Start))
			}
			r.makes(reflect.ValueOf(x.End))
			return
		case gojq.PatternObject:
			r.makes(reflect.ValueOf(x.KeyQuery))
			r.makes(reflect.ValueOf(x.Val))
			return
		case gojq.ObjectKeyVal:
			name, variable := strings.CutPrefix(x.Key, "$")
			if x.KeyString != nil {
				name = x.KeyString.Str
			}
			if x.Val == nil && !variable || x.Val != nil && strings.ReplaceAll(x.Val.String(), `"`, "") == "."+name { // it is read
				r.makes(reflect.ValueOf(x.KeyQuery))
				return
			}
			r.names[name] = true
		}
		for i := range v.NumField() {
			r.makes(v.Field(i))
		}
	}
}

func (r *reading) refuse(key string, s *Shape) {
	if r.fault == nil {
		r.fault = unknown(key, s)
	}
}

func (r *reading) query(q *gojq.Query, in value) value {
	if q == nil {
		return made
	}
	if len(q.FuncDefs) > 0 {
		before := r.scope
		r.define(q.FuncDefs)
		defer func() { r.scope = before }()
	}
	if q.Term != nil {
		return r.term(q.Term, in)
	}
	if q.Right == nil {
		return in
	}
	switch q.Op {
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		before := r.writes
		r.writes = true
		left := r.query(q.Left, in)
		if r.writes = before; q.Op == gojq.OpModify {
			r.asks(q.Right, r.loose(left))
		} else {
			r.asks(q.Right, in)
		}
		return r.takes(in) // the changed input
	}
	left := r.query(q.Left, in)
	switch {
	case q.Op == gojq.OpPipe && q.Patterns != nil:
		r.bind(q.Patterns, left)
		return r.query(q.Right, in)
	case q.Op == gojq.OpPipe:
		return r.query(q.Right, left)
	}
	right := r.query(q.Right, in)
	switch q.Op {
	case gojq.OpComma, gojq.OpAlt:
		return join(left, right)
	case gojq.OpAnd, gojq.OpOr:
		return made
	}
	r.takes(left)
	r.takes(right)
	both := join(left, right)
	switch {
	case q.Op != gojq.OpAdd && q.Op != gojq.OpSub && q.Op != gojq.OpMul && q.Op != gojq.OpDiv && q.Op != gojq.OpMod:
		return made
	case !both.part && !slices.ContainsFunc(both.shapes, func(s *Shape) bool { return !s.Array }):
		return both // arrays, one after the other
	}
	return r.loose(both)
}

// asks follows the input through a program that is not part of a path.
func (r *reading) asks(q *gojq.Query, in value) value {
	before := r.writes
	r.writes = false
	out := r.query(q, in)
	r.writes = before
	return out
}

// bind notes what variables hold. A key in a pattern is read like any other.
func (r *reading) bind(patterns []*gojq.Pattern, at value) {
	for _, p := range patterns {
		if p.Name != "" {
			r.vars[p.Name] = join(r.vars[p.Name], at)
			continue
		}
		if p.Array != nil {
			r.bind(p.Array, r.elements(at))
		}
		for _, o := range p.Object {
			var of value
			switch {
			case o.Key != "" && !strings.HasPrefix(o.Key, "$"):
				of, _ = r.key(o.Key, at)
			case o.Key != "":
				of, _ = r.key(o.Key[1:], at)
				r.vars[o.Key] = join(r.vars[o.Key], of)
			case o.KeyString != nil && o.KeyString.Queries == nil:
				of, _ = r.key(o.KeyString.Str, at)
			default:
				of = r.takes(at)
				r.query(o.KeyQuery, r.loose(at))
			}
			if o.Val != nil {
				r.bind([]*gojq.Pattern{o.Val}, of)
			}
		}
	}
}

// elements are those of an array. The input is none.
func (r *reading) elements(v value) value {
	if v.has(r.root) && !v.part && !v.other && len(v.shapes) == 1 {
		return nothing
	}
	return r.parts(v)
}

// index is a value's part. The index itself is a program over in.
func (r *reading) index(x *gojq.Index, of *gojq.Term, at, in value) value {
	if t := onlyTerm(x.Start); t != nil && !x.IsSlice && t.Type == gojq.TermTypeString && t.SuffixList == nil {
		x.Str, x.Start = t.Str, nil // .["key"] is ."key"
	}
	name, constant := x.Name, x.Name != ""
	if x.Str != nil && x.Str.Queries == nil {
		name, constant = x.Str.Str, true
	}
	if constant {
		out, later := r.key(name, at)
		if later {
			r.later[x] = of
		}
		return out
	}
	if x.Start != nil {
		r.asks(x.Start, in)
	}
	if x.End != nil {
		r.asks(x.End, in)
	}
	if x.Str != nil {
		r.texts(x.Str, in)
	}
	if r.takes(at); x.IsSlice {
		return at
	}
	return r.parts(at)
}

func onlyTerm(q *gojq.Query) *gojq.Term {
	if q == nil || q.FuncDefs != nil {
		return nil
	}
	return q.Term
}

func (r *reading) texts(s *gojq.String, in value) {
	for _, q := range s.Queries {
		r.takes(r.asks(q, in))
	}
}

// guard makes the program ask, where only a run can tell, whether a value is the input.
func (r *reading) guard() error {
	for x, of := range r.later {
		name := nameOf(x)
		check, err := gojq.Parse(fmt.Sprintf("if %s(%s) then error else . end", lacks, text(name)))
		if err != nil {
			return err
		}
		get := &gojq.Index{Name: x.Name, Str: x.Str}
		if of.Index == x { // .key
			of.Type, of.Index = gojq.TermTypeQuery, nil
			of.Query = &gojq.Query{Op: gojq.OpPipe, Left: check, Right: &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: get}}}
			continue
		}
		at := slices.IndexFunc(of.SuffixList, func(s *gojq.Suffix) bool { return s.Index == x })
		before := *of // TERM.key: what is before the key becomes a program of its own
		before.SuffixList = slices.Clone(of.SuffixList[:at])
		rest := slices.Clone(of.SuffixList[at:])
		*of = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: rest,
			Query: &gojq.Query{Op: gojq.OpPipe, Left: &gojq.Query{Term: &before}, Right: check}}
		for other, term := range r.later { // keys before this one are in the new term
			if term == of && (before.Index == other || slices.ContainsFunc(before.SuffixList, func(s *gojq.Suffix) bool { return s.Index == other })) {
				r.later[other] = &before
			}
		}
	}
	return nil
}

// lacks is the function that a guarded program asks: is this value of the input, which has no such key there?
// It fails if so.
const lacks = "_runner_lacks"

// nameOf is the key that a constant index reads.
func nameOf(x *gojq.Index) string {
	if x.Str != nil {
		return x.Str.Str
	}
	return x.Name
}

func text(s string) string {
	q := gojq.String{Str: s}
	return q.String()
}

// sorted are the keys that the program surely reads, for tests.
func (u *Uses) sorted() []string { return slices.Sorted(maps.Keys(u.keys)) }
