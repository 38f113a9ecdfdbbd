package main

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// This file makes the mutants of one JSON value, by its type and by where it is.

// mutator knows what can stand at each place: the closed sets of the schemas, and what the
// good archives have there.
type mutator struct {
	form  schemas.Form
	enums map[string][]string       // key → the closed set of its values
	keys  []string                  // all that the schema knows
	seen  map[string]map[string]any // place → rendered → value
}

// placed is one value, its place without numbers, and how to put another one there.
type placed struct {
	at  string
	v   any
	set func(any)
}

type try func(at, what string)

const (
	maxSeen     = 10 // values of other archives that are tried at a place
	maxElements = 24 // elements of an array that are changed one by one
)

// numbers that every number is replaced by.
var numbers = []string{"-1", "0", "1", "9007199254740992", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616"}

// note of the places that a value has, for the mutants of other archives.
func (m *mutator) learn(at string, v any) {
	if m.seen[at] == nil {
		m.seen[at] = map[string]any{}
	}
	m.seen[at][render(v)] = v
	switch x := v.(type) {
	case *object:
		for i, k := range x.keys {
			m.learn(m.below(at, k), x.values[i])
		}
	case *[]any:
		for _, e := range *x {
			m.learn(elementAt(at, e), e)
		}
	}
}

// below is the place of a key. The manifest's keys are names of members.
func (m *mutator) below(at, key string) string {
	if strings.Contains(key, ".") {
		key = "*"
	}
	return at + "/" + key
}

var code = regexp.MustCompile(`^[a-z0-9_]+`)

// elementAt is the place of an array's element. Notes and ambiguities are of kinds.
func elementAt(at string, e any) string {
	s, ok := e.(string)
	if ok && (strings.HasSuffix(at, "/notes") || strings.HasSuffix(at, "/ambiguities")) {
		return at + "/" + code.FindString(s)
	}
	return at + "/*"
}

// others are values that other archives have at the place.
func (m *mutator) others(at string, v any) (list []any) {
	all := m.seen[at]
	keys := slices.DeleteFunc(sortedKeys(all), func(k string) bool { return k == render(v) })
	for i, k := range keys {
		if len(keys) <= maxSeen || i%(len(keys)/maxSeen+1) == 0 {
			list = append(list, all[k])
		}
	}
	return list
}

// mutate calls try for every mutant of a value. The tree is as before when it returns.
func (m *mutator) mutate(p placed, try try) {
	to := func(v any, what string) {
		p.set(v)
		try(p.at, what)
		p.set(p.v)
	}
	word := p.at[strings.LastIndexByte(p.at, '/')+1:]
	if _, ok := p.v.(string); ok || p.v == nil {
		for _, w := range m.enums[word] {
			to(w, "="+w)
		}
	}
	switch x := p.v.(type) {
	case *object:
		m.object(p, x, try)
	case *[]any:
		m.array(p, x, try)
	case string:
		m.text(p, x, to)
	case json.Number:
		for _, n := range shifted(x.String()) {
			to(json.Number(n[1]), n[0])
		}
		to(json.Number(x.String()+".5"), "fraction")
		to(json.Number(x.String()+".0"), "float")
	case bool:
		to(!x, "flipped")
	}
	for _, other := range m.others(p.at, p.v) {
		to(other, "other")
	}
	for _, o := range []struct {
		what string
		v    any
	}{{"null", nil}, {"number", json.Number("7")}, {"text", "free text"}, {"empty text", ""}, {"true", true}, {"array", &[]any{}}, {"object", &object{}}} {
		to(o.v, o.what)
	}
}

// shifted are numbers near n and at the borders of types, each with its name.
func shifted(n string) (list [][2]string) {
	if i, ok := new(big.Int).SetString(n, 10); ok {
		list = append(list, [2]string{"+1", new(big.Int).Add(i, big.NewInt(1)).String()}, [2]string{"-1", new(big.Int).Sub(i, big.NewInt(1)).String()})
	}
	for _, s := range numbers {
		list = append(list, [2]string{"=" + s, s})
	}
	return list
}

func (m *mutator) object(p placed, x *object, try try) {
	keys, values := x.keys, x.values
	restore := func() { x.keys, x.values = keys, values }
	insert := func(at int, k string, v any) {
		x.keys, x.values = slices.Insert(slices.Clone(keys), at, k), slices.Insert(slices.Clone(values), at, v)
	}
	for i, k := range keys {
		at := m.below(p.at, k)
		x.keys, x.values = slices.Delete(slices.Clone(keys), i, i+1), slices.Delete(slices.Clone(values), i, i+1)
		try(at, "removed")
		insert(i, k, values[i])
		try(at, "doubled")
		if i > 0 {
			insert(i-1, k, values[i])
			x.keys, x.values = slices.Delete(x.keys, i+1, i+2), slices.Delete(x.values, i+1, i+2)
			try(p.at, "keys swapped")
		}
		restore()
	}
	insert(len(keys), "x", json.Number("1"))
	try(p.at, "unknown key")
	for _, k := range m.keys {
		if slices.Contains(keys, k) || len(m.seen[m.below(p.at, k)]) == 0 && strings.Count(p.at, "/") > 0 {
			continue
		}
		for _, v := range append(m.others(m.below(p.at, k), nil), json.Number("0"), json.Number("7"), "x", true) {
			for i := range len(keys) + 1 {
				insert(i, k, v)
				try(m.below(p.at, k), "added")
			}
		}
	}
	restore()
	for i, k := range keys {
		values = slices.Clone(values)
		x.values = values
		m.mutate(placed{m.below(p.at, k), values[i], func(v any) { values[i] = v }}, try)
	}
	restore()
}

func (m *mutator) array(p placed, x *[]any, try try) {
	list := *x
	as := func(l []any, at, what string) {
		*x = l
		try(at, what)
	}
	for i := range min(len(list), maxElements) {
		at := elementAt(p.at, list[i])
		without := slices.Delete(slices.Clone(list), i, i+1)
		as(without, at, "removed")
		as(append(without[:len(without):len(without)], list[i]), at, "moved to the end")
		as(slices.Insert(slices.Clone(list), i, list[i]), at, "doubled")
		if i > 0 {
			as(slices.Insert(slices.Clone(without), i-1, list[i]), at, "swapped")
		}
		changed := slices.Clone(list)
		*x = changed
		m.mutate(placed{at, list[i], func(v any) { changed[i] = v }}, try)
	}
	as([]any{}, p.at, "emptied")
	for _, place := range sortedKeys(m.seen) {
		if parent := place[:max(0, strings.LastIndexByte(place, '/'))]; parent != p.at {
			continue
		}
		for _, v := range m.others(place, nil) {
			for i := range min(len(list), maxElements) + 1 {
				as(slices.Insert(slices.Clone(list), i, v), place, "added")
			}
		}
	}
	*x = list
}

var word = regexp.MustCompile(`^([A-Za-z0-9_.]+=)?([0-9]+)$`)

// text changes a text, and in notes and codes also their words and numbers.
func (m *mutator) text(p placed, s string, to func(any, string)) {
	to(s+"x", "longer")
	if s != "" {
		to(s[:len(s)-1], "shorter")
	}
	if strings.Contains(p.at, "/notes/") {
		m.words(s, to)
	}
	if _, arg, ok := strings.Cut(s, ":"); ok && strings.Contains(p.at, "/ambiguities/") {
		for _, a := range schemas.Ambiguities() {
			to(a.Code+":"+arg, "="+a.Code)
			to(a.Code, "="+a.Code)
		}
	}
}

// words changes the items of a note: its texts, or its NAME=VALUE words and numbers.
func (m *mutator) words(s string, to func(any, string)) {
	head, rest, _ := strings.Cut(s, ": ")
	by, name := "; ", func(string) string { return "item" }
	if !strings.Contains(rest, by) {
		by, name = " ", func(w string) string { k, _, _ := strings.Cut(w, "="); return k }
	}
	words := strings.Split(rest, by)
	for i, w := range words {
		n := word.FindStringSubmatch(w)
		if by == " " && n == nil && !strings.Contains(w, "=") {
			continue
		}
		as := func(list []string, what string) { to(head+": "+strings.Join(list, by), name(w)+" "+what) }
		without := slices.Delete(slices.Clone(words), i, i+1)
		as(without, "removed")
		as(slices.Insert(slices.Clone(words), i, w), "doubled")
		if i > 0 {
			as(slices.Insert(slices.Clone(without), i-1, w), "swapped")
		}
		if n == nil {
			continue
		}
		for _, other := range shifted(n[2]) {
			changed := slices.Clone(words)
			changed[i] = n[1] + other[1]
			to(head+": "+strings.Join(changed, by), strings.TrimLeft(strings.TrimSuffix(n[1], "=")+" "+other[0], " "))
		}
	}
}
