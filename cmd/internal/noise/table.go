// Package noise is the table of what runner-normalize leaves out of the kernel layer:
// plain reads that loaders and runtimes do all the time.
package noise

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

//go:embed noise.txt
var text string

//go:embed packages.txt
var packages string

// New returns one of the tables of schemas.NoiseTables: v0 is that of noise.txt, loader has
// the rules of packages.txt before it.
func New(name string) (*Table, error) {
	var rules []rule
	for _, part := range []struct {
		file, text string
		of         []string
	}{
		{"packages.txt", packages, []string{schemas.NoiseLoader}},
		{"noise.txt", text, []string{schemas.NoiseLoader, schemas.NoiseV0}},
	} {
		if !slices.Contains(part.of, name) {
			continue
		}
		more, err := parseRules(part.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.file, err)
		}
		rules = append(rules, more...)
	}
	return newTable(rules), nil
}

// IDs are the ids of all rules that leave something out by its path, sorted and unique.
// schemas.FilterLoad is one of them: its rule is not in a table.
func IDs() ([]string, error) {
	t, err := New(schemas.NoiseV0)
	if err != nil {
		return nil, err
	}
	ids := []string{schemas.FilterLoad}
	for _, r := range t.rules {
		if r.drop {
			ids = append(ids, r.id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Len is the number of rules.
func (m *Table) Len() int { return len(m.rules) }

// ID is the name of a rule, under which what it drops is counted.
func (m *Table) ID(i int) string { return m.rules[i].id }

// Reason says why the rule is there.
func (m *Table) Reason(i int) string { return m.rules[i].reason }

// Table is the rules, prepared for lookup: for each second byte of a path the rules that
// can apply to it, in table order: to any path, and to one that is no library. For most paths the latter are the few that look inside.
type Table struct {
	rules        []rule
	first, other [256][]uint16
}

func newTable(rules []rule) *Table {
	m := &Table{rules: rules}
	for i, r := range rules {
		switch r.form {
		case formExact, formPrefix:
			m.add(r.parts[0][1], i)
		case formProcess:
			m.add(procDir[1], i)
		default:
			for c := range m.first {
				m.add(byte(c), i)
			}
		}
	}
	return m
}

func (m *Table) add(c byte, rule int) {
	m.first[c] = append(m.first[c], uint16(rule))
	if m.rules[rule].form != formLibrary {
		m.other[c] = append(m.other[c], uint16(rule))
	}
}

// Find is the index of the rule that drops an open by process pid, -1 when it
// stays. The path is absolute.
func (m *Table) Find(path []byte, pid uint32) int {
	if len(path) < 2 {
		return -1
	}
	rules := m.other[path[1]]
	if isLibrary(path) {
		rules = m.first[path[1]]
	}
	for _, i := range rules {
		if r := &m.rules[i]; r.matches(path, pid) {
			if r.drop {
				return int(i)
			}
			return -1
		}
	}
	return -1
}
