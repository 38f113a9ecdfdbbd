package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// doubts are what the rules say that they hardly mean.
func (p *Policy) doubts(file string) (list []string) {
	if missing(p.RelativeTo) {
		list = append(list, fmt.Sprintf("%s: relative_to: there is no %s", file, p.RelativeTo))
	}
	for i := range p.rules {
		r := &p.rules[i]
		warn := func(format string, a ...any) {
			list = append(list, fmt.Sprintf("%s:%d: rule %s: ", file, r.line, r.id)+fmt.Sprintf(format, a...))
		}
		if r.open {
			warn("only: false lets every other argument pass, also other names of files; also: [$.NAME] names those that may be there")
		}
		for _, g := range r.tools {
			if strings.Contains(g.text, ".*") {
				warn("the pattern %q needs a dot: here * is any text by itself", g.text)
			}
		}
		if by := p.hiddenBy(i); by != nil {
			warn("no call reaches it: rule %s decides about all of its tools", by.id)
		}
		for _, c := range r.args {
			for _, d := range c.under {
				if missing(d.text) {
					warn("there is no %s", d.text)
				}
			}
		}
		if r.when == nil {
			continue
		}
		if q, err := gojq.Parse(r.when.text); err == nil {
			if !mayBool(q) {
				warn("the jq program can give neither true nor false, so each call is denied")
			}
			if at := bareLess(reflect.ValueOf(q)); at != "" {
				warn("%s is less than every number when it is null or not there; a condition {at: $%s, number: {max: N}} is not", at, strings.TrimPrefix(at, ".arguments"))
			}
		}
	}
	return list
}

func missing(dir string) bool {
	if dir == "" {
		return false
	}
	_, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// hiddenBy is an earlier rule that decides whatever a rule could decide.
func (p *Policy) hiddenBy(i int) *rule {
	for j := range i {
		r := &p.rules[j]
		if len(r.args) > 0 || r.when != nil || r.digests != nil {
			continue
		}
		if all := len(p.rules[i].tools) > 0; all && !slices.ContainsFunc(p.rules[i].tools, func(g glob) bool {
			return !slices.ContainsFunc(r.tools, func(h glob) bool { return h.holds(g) })
		}) {
			return r
		}
	}
	return nil
}

// noBool are functions that give no boolean.
var noBool = []string{"length", "utf8bytelength", "keys", "keys_unsorted", "values", "tostring", "tonumber", "type", "ascii_downcase", "ascii_upcase",
	"ltrimstr", "rtrimstr", "map", "to_entries", "from_entries", "with_entries", "join", "split", "sort", "unique", "reverse", "tojson", "floor", "sqrt",
	"min_by", "max_by", "group_by", "explode", "implode", "indices", "gsub", "sub", "match", "capture", "scan", "range", "empty", "error", "now"}

// mayBool reports whether a program could give true or false.
func mayBool(q *gojq.Query) bool {
	switch {
	case q == nil:
		return true
	case q.Term != nil:
		return mayBoolTerm(q.Term)
	}
	switch q.Op {
	case gojq.OpPipe:
		return mayBool(q.Right)
	case gojq.OpComma, gojq.OpAlt:
		return mayBool(q.Left) || mayBool(q.Right)
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod, gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd,
		gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		return false
	}
	return true
}

func mayBoolTerm(t *gojq.Term) bool {
	if len(t.SuffixList) > 0 {
		return true
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeNumber, gojq.TermTypeString, gojq.TermTypeFormat, gojq.TermTypeArray, gojq.TermTypeObject, gojq.TermTypeUnary:
		return false
	case gojq.TermTypeFunc:
		return !slices.Contains(noBool, t.Func.Name)
	case gojq.TermTypeQuery:
		return mayBool(t.Query)
	case gojq.TermTypeIf:
		some := mayBool(t.If.Then) || t.If.Else == nil || mayBool(t.If.Else)
		for _, e := range t.If.Elif {
			some = some || mayBool(e.Then)
		}
		return some
	}
	return true
}

// bareLess finds an argument that a program compares as the lesser, which it is when it is
// not there.
func bareLess(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return bareLess(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if s := bareLess(v.Index(i)); s != "" {
				return s
			}
		}
	case reflect.Struct:
		if q, ok := v.Interface().(gojq.Query); ok {
			side := map[gojq.Operator]*gojq.Query{gojq.OpLt: q.Left, gojq.OpLe: q.Left, gojq.OpGt: q.Right, gojq.OpGe: q.Right}[q.Op]
			if side != nil && strings.HasPrefix(side.String(), ".arguments.") {
				return side.String()
			}
		}
		for i := range v.NumField() {
			if s := bareLess(v.Field(i)); s != "" {
				return s
			}
		}
	}
	return ""
}
