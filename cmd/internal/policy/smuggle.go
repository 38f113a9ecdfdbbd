package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// nameSet holds names by their folded form.
type nameSet map[string][]string

// fold makes names equal that differ only in case, by the folding with which
// encoding/json matches names: the least rune of each orbit.
func fold(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				r = next // the orbit is ascending except for its end
				break
			}
			r = next
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

func (n nameSet) add(name string) {
	k := string(fold(nil, name))
	if !slices.Contains(n[k], name) {
		n[k] = append(n[k], name)
	}
}

// reads notes a name that a rule reads. Two names that differ only in case are a problem:
// an argument with one spelling would not be checked by a rule that reads the other.
func (r *reader) reads(at *yaml.Node, name string) {
	k := string(fold(nil, name))
	first := r.lines[k]
	if first == nil {
		r.lines[k] = at
	} else if known := r.names[k][0]; known != name {
		r.Bad(at, fmt.Sprintf("the name %s differs only by case from %s in line %d", strict.Quote(name), strict.Quote(known), first.Line),
			"one spelling: a server may take the one for the other", "")
	}
	r.names.add(name)
}

// mentions notes the texts in programs that may be names: has("key") reads a key too. They
// are noted after the names that rules read, because those have only one spelling.
func (r *reader) mentions(rules []rule) {
	for _, x := range rules {
		if x.when == nil {
			continue
		}
		for _, s := range x.when.texts {
			if r.lines[string(fold(nil, s))] == nil {
				r.names.add(s)
			}
		}
	}
}

// CaseSmuggled finds a key in the arguments, at any depth, that differs only in case from
// a name that a rule reads, or from another key of the same object. A server that ignores
// case would read a value that the rules did not see.
func (p *Policy) CaseSmuggled(args any) (key string, bad bool) {
	return p.names.smuggled(args, make([]byte, 0, 64), maxDepth)
}

// smallObject is the size up to which keys are compared in pairs.
const smallObject = 8

func (n nameSet) smuggled(v any, buf []byte, left int) (string, bool) {
	if left < 0 {
		return "", true
	}
	switch x := v.(type) {
	case []any:
		for _, y := range x {
			if k, bad := n.smuggled(y, buf, left-1); bad {
				return k, true
			}
		}
	case map[string]any:
		keys := sortedKeys(x)
		seen := map[string]bool{}
		for i, k := range keys {
			buf = fold(buf[:0], k)
			if names := n[string(buf)]; names != nil && !slices.Contains(names, k) {
				return k, true
			}
			if len(keys) > smallObject {
				if seen[string(buf)] {
					return k, true
				}
				seen[string(buf)] = true
				continue
			}
			for _, other := range keys[:i] {
				if strings.EqualFold(other, k) {
					return k, true
				}
			}
		}
		for _, k := range keys {
			if bad, is := n.smuggled(x[k], buf, left-1); is {
				return bad, true
			}
		}
	}
	return "", false
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
