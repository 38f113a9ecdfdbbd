package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// At most maxFindings are reported, and maxAlike of one rule in one member, so
// that one broken layer does not hide what else is wrong. All are counted.
const (
	maxFindings = 100
	maxAlike    = 10
	maxMessage  = 400 // characters
)

type findings struct {
	list  []archive.Finding
	total int
	alike map[[2]string]int // rule, member → how many
}

func (f *findings) add(rule, member string, line int, format string, a ...any) {
	f.total++
	if f.alike == nil {
		f.alike = map[[2]string]int{}
	}
	key := [2]string{rule, member}
	f.alike[key]++
	if f.alike[key] > maxAlike || len(f.list) >= maxFindings {
		return
	}
	f.list = append(f.list, archive.Finding{Rule: rule, Member: member, Line: line, Message: verdict.Printable(fmt.Sprintf(format, a...), maxMessage)})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
