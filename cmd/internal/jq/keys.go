package jq

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
)

// UnknownKeyError is a program that reads a key which its input never has. jq itself gives null there,
// so that a misspelt key makes "nothing is like that" true.
type UnknownKeyError struct {
	Key   string
	Known []string
}

func (e *UnknownKeyError) Error() string { return unknownKey(e.Key, e.Known) }

func unknownKey(key string, known []string) string {
	text := fmt.Sprintf("there is no .%.60s", key)
	if near := nearest.Word(key, known); near != "" {
		text += ", did you mean ." + near + "?"
	}
	return text + "; the keys are ." + strings.Join(known, " .")
}

// Uses is what a program reads of an input that is one object with known keys.
type Uses struct {
	keys  map[string]bool
	whole bool
}

// Key reports whether the program may read a key of its input.
func (u *Uses) Key(name string) bool { return u.whole || u.keys[name] }

// place says whether a value in the program is its whole input.
type place int

const (
	inner place = iota // it is not
	input              // it is
	maybe              // that shows only when the program runs
)

func join(a, b place) place {
	if a != b {
		return maybe
	}
	return a
}

// reading follows the input of a program through it.
type reading struct {
	Uses
	known   []string
	unknown string                     // the first unknown key that is surely read, or ""
	own     map[string]bool            // functions that the program defines
	vars    map[string]place           // what variables hold
	later   map[*gojq.Index]*gojq.Term // keys to look at when the program runs
}

// read finds out what a program reads. The keys that only a run can tell are given to the function lacks.
func read(q *gojq.Query, known []string) (*Uses, error) {
	r := &reading{Uses: Uses{keys: map[string]bool{}}, known: known, own: map[string]bool{}, vars: map[string]place{},
		later: map[*gojq.Index]*gojq.Term{}}
	r.query(q, input)
	if r.unknown != "" {
		return nil, &UnknownKeyError{r.unknown, known}
	}
	return &r.Uses, r.guard()
}

// takes notes that a value is looked at as a whole.
func (r *reading) takes(at place) place {
	if at != inner {
		r.whole = true
		return maybe
	}
	return inner
}

// key notes that a key of a value is read.
func (r *reading) key(name string, at place) {
	switch known := slices.Contains(r.known, name); {
	case at == inner:
	case known:
		r.keys[name] = true
	case at == input && r.unknown == "":
		r.unknown = name
	}
}

func (r *reading) query(q *gojq.Query, in place) place {
	if q == nil {
		return inner
	}
	for _, f := range q.FuncDefs {
		r.own[f.Name] = true
		for _, a := range f.Args {
			r.own[a] = true
			r.vars["$"+strings.TrimPrefix(a, "$")] = maybe
		}
	}
	for _, f := range q.FuncDefs {
		r.query(f.Body, maybe)
	}
	if q.Term != nil {
		return r.term(q.Term, in)
	}
	if q.Right == nil {
		return in
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
		return inner
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpGe, gojq.OpLt, gojq.OpLe, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod, gojq.OpAdd:
		return max(r.takes(left), r.takes(right))
	}
	return r.takes(in) // an assignment gives the changed input
}

// loose is what a function may get that is called with a value.
func (r *reading) loose(at place) place {
	if at != inner {
		return maybe
	}
	return inner
}

// bind notes what variables hold. A key in a pattern is read like any other.
func (r *reading) bind(patterns []*gojq.Pattern, at place) {
	for _, p := range patterns {
		if p.Name != "" {
			if old, twice := r.vars[p.Name]; twice {
				at = join(old, at)
			}
			r.vars[p.Name] = at
			continue
		}
		rest := inner
		if at == maybe {
			rest = r.takes(at)
		}
		r.bind(p.Array, rest)
		for _, o := range p.Object {
			switch {
			case o.Key != "" && !strings.HasPrefix(o.Key, "$"):
				r.key(o.Key, at)
			case o.Key != "":
				r.key(o.Key[1:], at)
				r.vars[o.Key] = rest
			case o.KeyString != nil && o.KeyString.Queries == nil:
				r.key(o.KeyString.Str, at)
			default:
				r.takes(at)
				r.query(o.KeyQuery, r.loose(at))
			}
			if o.Val != nil {
				r.bind([]*gojq.Pattern{o.Val}, rest)
			}
		}
	}
}

// index is a value's part. The index itself is a program over in.
func (r *reading) index(x *gojq.Index, of *gojq.Term, at, in place) place {
	if t := onlyTerm(x.Start); t != nil && !x.IsSlice && t.Type == gojq.TermTypeString && t.SuffixList == nil {
		x.Str, x.Start = t.Str, nil // .["key"] is ."key"
	}
	name, constant := x.Name, x.Name != ""
	if x.Str != nil && x.Str.Queries == nil {
		name, constant = x.Str.Str, true
	}
	if !constant {
		r.query(x.Start, in)
		r.query(x.End, in)
		if x.Str != nil {
			r.texts(x.Str, in)
		}
		return r.takes(at)
	}
	if r.key(name, at); at == maybe && !slices.Contains(r.known, name) {
		r.later[x] = of
	}
	if at == maybe {
		return maybe
	}
	return inner
}

func onlyTerm(q *gojq.Query) *gojq.Term {
	if q == nil || q.FuncDefs != nil {
		return nil
	}
	return q.Term
}

func (r *reading) texts(s *gojq.String, in place) {
	for _, q := range s.Queries {
		r.takes(r.query(q, in))
	}
}

// guard makes the program ask, where only a run can tell, whether a value is the input.
func (r *reading) guard() error {
	for x, of := range r.later {
		name := x.Name
		if x.Str != nil {
			name = x.Str.Str
		}
		check, err := gojq.Parse(fmt.Sprintf("if %s(%s) then error(%s) else . end", lacks, text(name), text(unknownKey(name, r.known))))
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

// lacks is the function that a guarded program asks: is this value the input, which has no such key?
const lacks = "_runner_lacks"

func text(s string) string {
	q := gojq.String{Str: s}
	return q.String()
}

// sorted are the keys that the program surely reads, for tests.
func (u *Uses) sorted() []string { return slices.Sorted(maps.Keys(u.keys)) }
