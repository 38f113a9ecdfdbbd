// Package noise is the table of what runner-normalize leaves out of the kernel layer:
// plain reads that loaders and runtimes do all the time.
package noise

import (
	_ "embed"
	"fmt"
)

//go:embed noise.txt
var text string

// New returns the table of noise.txt.
func New() (*Table, error) {
	rules, err := parseRules(text)
	if err != nil {
		return nil, fmt.Errorf("noise.txt: %w", err)
	}
	return newTable(rules), nil
}

// Len is the number of rules.
func (m *Table) Len() int { return len(m.rules) }

// ID is the name of a rule, under which what it drops is counted.
func (m *Table) ID(i int) string { return m.rules[i].id }

// Reason says why the rule is there.
func (m *Table) Reason(i int) string { return m.rules[i].reason }

// Table is the rules, prepared for lookup: for each second byte of a path the rules that
// can apply to it, in table order. For most paths these are the few that look inside.
type Table struct {
	rules []rule
	first [256][]uint16
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

func (m *Table) add(c byte, rule int) { m.first[c] = append(m.first[c], uint16(rule)) }

// Find is the index of the rule that drops an open by process pid, -1 when it
// stays. The path is absolute.
func (m *Table) Find(path []byte, pid uint32) int {
	if len(path) < 2 {
		return -1
	}
	library := isLibrary(path)
	for _, i := range m.first[path[1]] {
		if r := &m.rules[i]; r.matches(path, pid, library) {
			if r.drop {
				return int(i)
			}
			return -1
		}
	}
	return -1
}
