package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// A hard link, in the layer filesystem or in the list of a base, says which name is the first one of its file. These rules look for
// that name: it must be there at the same time, and be the first name of a file. A link comes after the name that it says, but what
// the base was is only known at the end.

// link is a change of a name that says which one is the first name of its file.
type link struct {
	to   uint64 // key of the first name
	at   uint32 // the number of its line
	when uint8
}

// baseLink is the same in the list of a base.
type baseLink struct{ to, of uint64 }

// When a name is the first one of a file: bits in the place of the last two of its key.
const (
	firstBefore = 1 << iota
	firstAfter
	firstBits = firstBefore | firstAfter
)

// firsts is what is kept of the changes to find what links say.
type firsts struct {
	names []uint64 // keys of all names that changed, with when each is the first one of a file
	links []link
	over  bool // there were more than maxNodes names and links: nothing is compared
}

func isFirst(s *schemas.FileState) bool {
	return s != nil && s.Kind == schemas.KindFile && s.Link == ""
}

// add takes the next change.
func (f *firsts) add(key uint64, at int, c *schemas.FileChange) {
	if f.over = f.over || len(f.names)+len(f.links) >= maxNodes; f.over {
		f.names, f.links = nil, nil
		return
	}
	key &^= firstBits
	if isFirst(c.Before) {
		key |= firstBefore
	}
	if isFirst(c.After) {
		key |= firstAfter
	}
	f.names = append(f.names, key)
	if s := c.Before; s != nil && s.Link != "" {
		f.links = append(f.links, link{to: keyOf(untext(s.Link)), when: firstBefore, at: uint32(at)})
	}
	if s := c.After; s != nil && s.Link != "" {
		f.links = append(f.links, link{to: keyOf(untext(s.Link)), when: firstAfter, at: uint32(at)})
	}
}

// find is when a name is the first one of a file. there: it changed. The names must be sorted.
func (f *firsts) find(key uint64) (when uint8, there bool) {
	i, _ := slices.BinarySearch(f.names, key&^firstBits)
	if i == len(f.names) || f.names[i]&^firstBits != key&^firstBits {
		return 0, false
	}
	return uint8(f.names[i] & firstBits), true
}

// wrappedLinks looks for the first names that links of the layer filesystem say. tree is the list of the base, nil if it is not known.
func (v *verifier) wrappedLinks(box *schemas.Box, tree *baseTree) {
	f := &v.wrapped.changes.firsts
	slices.Sort(f.names)
	for _, x := range f.links {
		fault := func(rule, format string) {
			then := map[uint8]string{firstBefore: "before", firstAfter: "after"}[x.when]
			v.add(rule, schemas.MemberChanges, int(x.at), format, then)
		}
		switch when, changed := f.find(x.to); {
		case changed && when&x.when == 0:
			fault(ruleWrappedLines, "%s is a link to something that is not the first name of a file then")
		case changed:
		case box.Base == nil:
			fault(ruleWrappedDocuments, "the workspace was empty, and %s is a link to a name that nothing made")
		case tree != nil && !tree.first(x.to):
			fault(ruleWrappedBlobs, "not a change of this base: %s is a link to something that is not the first name of a file of the base")
		}
	}
	if tree == nil || f.over {
		return
	}
	for _, x := range tree.links {
		if _, changed := f.find(x.of); changed {
			continue
		}
		if when, changed := f.find(x.to); changed && when&firstAfter == 0 {
			v.add(ruleWrappedBlobs, schemas.MemberChanges, 0, "not a change of this base: a link of the base stays, and is to something that is not the first name of a file afterwards")
		}
	}
}

// first reports whether a base has a name that is the first one of a file.
func (t *baseTree) first(key uint64) bool {
	n := t.find(key)
	return n != nil && n.first
}

// loose says what a base lacks: the base itself, or what a link of it is to.
func (t *baseTree) loose() string {
	if n := t.find(keyOf(workspace)); n == nil || !n.dir {
		return "it has no entry of the base itself, which is a directory"
	}
	for _, x := range t.links {
		if !t.first(x.to) {
			return "a link of it is to something that is not the first name of a file of it"
		}
	}
	return ""
}
