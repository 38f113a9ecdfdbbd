package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// firstValues keeps the first values of all, in byte order, for codes of one kind.
type firstValues struct {
	found []string // sorted, at most schemas.MaxCodesOfKind
	more  bool
}

func (f *firstValues) add(value []byte) {
	if n := len(f.found); n == schemas.MaxCodesOfKind && string(value) > f.found[n-1] {
		f.more = true // of very many values most are here
		return
	}
	i, ok := slices.BinarySearchFunc(f.found, value, func(a string, b []byte) int { return strings.Compare(a, string(b)) })
	if ok {
		return
	}
	if len(f.found) == schemas.MaxCodesOfKind {
		f.more = true
		f.found = f.found[:len(f.found)-1]
	}
	f.found = slices.Insert(f.found, i, string(value))
}

// addCodes adds a code for each value, and one for the rest.
func (f *firstValues) addCodes(c codes, code string) {
	for _, value := range f.found {
		c.addFor(code, value)
	}
	if f.more {
		c.addFor(code, schemas.MoreCodes)
	}
}
