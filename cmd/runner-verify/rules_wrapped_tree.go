package main

import (
	"cmp"
	"fmt"
	"hash/maphash"
	slash "path"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The changes of a workspace make one tree of another: these rules compare them with each other, and with the list of the base.

// workspace is the path of the workspace itself.
const workspace = "."

// twig is a name of a sorted list.
type twig struct {
	length   int    // of its path
	key      uint64 // hash of its path
	had, has bool   // it was a directory before, it is one afterwards
	below    uint32 // names of the list that were directly in it before
	at       int    // its place among the nodes of a base
}

// branch is those names of a list, sorted by the bytes of its paths, with which the last path begins. They follow from its text, so
// that only their lengths are kept.
type branch struct {
	last  string
	names []twig
}

// to goes to a path, and leaves the names that it does not begin with. It returns the name of the directory that the path is in, nil
// if the list does not have that.
func (b *branch) to(path string, leave func(path string, t *twig)) (above *twig) {
	same := 0
	for same < len(path) && same < len(b.last) && path[same] == b.last[same] {
		same++
	}
	for n := len(b.names); n > 0 && b.names[n-1].length > same; n = len(b.names) {
		if leave != nil {
			leave(b.last[:b.names[n-1].length], &b.names[n-1])
		}
		b.names = b.names[:n-1]
	}
	b.last = path
	i, found := slices.BinarySearchFunc(b.names, len(slash.Dir(path)), func(t twig, n int) int { return cmp.Compare(t.length, n) })
	if !found || slash.Dir(path) == workspace {
		return nil
	}
	return &b.names[i]
}

// node is a name of a base.
type node struct {
	key, state uint64 // hashes of its path and of what it is
	below      uint32 // names directly in it
	dir        bool
	first      bool // it is the first name of a file
}

// Bounds of what is kept of lists of bases to compare the changes with.
const (
	maxNodes = 1 << 20 // names of all lists together
	maxTrees = 64      // lists
)

// baseTree is the names of a list of a base.
type baseTree struct {
	branch
	nodes  []node
	links  []baseLink
	sorted bool   // by their keys
	wrong  string // the list is no tree
	fault  string // the first change that is none of this base
}

var seed = maphash.MakeSeed()

func keyOf(path string) uint64 { return maphash.String(seed, path) }

func stateOf(s *schemas.FileState) uint64 {
	b, err := schemas.Marshal(s)
	if err != nil {
		return 0
	}
	return maphash.Bytes(seed, b)
}

// plant begins to keep the names of a list, nil if there are too many lists.
func (b *blobs) plant() *baseTree {
	if len(b.trees) == maxTrees {
		return nil
	}
	t := new(baseTree)
	b.trees = append(b.trees, t)
	return t
}

// fell forgets the names of a list.
func (b *blobs) fell(t *baseTree) {
	if i := slices.Index(b.trees, t); i >= 0 {
		b.trees = slices.Delete(b.trees, i, i+1)
		b.nodes -= len(t.nodes)
		*t = baseTree{}
	}
}

func isDir(s *schemas.FileState) bool { return s != nil && s.Kind == schemas.KindDir }

// isText reports whether names are escapes of byte strings.
func isText(list ...string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !schemas.IsText([]byte(s)) })
}

// add takes the next name of the list.
func (t *baseTree) add(e *schemas.BaseEntry) {
	path := untext(e.Path)
	after := t.last
	above := t.to(path, nil)
	switch {
	case !isText(e.Path, e.Target, e.Link, e.Unread):
		t.wrong = fmt.Sprintf("%.200q has a name that is not the escape of any byte string", e.Path)
	case len(t.nodes) > 0 && path <= after:
		t.wrong = fmt.Sprintf("%.200q is a repetition, or not in byte order", e.Path)
	case slash.Clean(path) != path || path == "..":
		t.wrong = fmt.Sprintf("%.200q is no path below it", e.Path)
	case path != workspace && slash.Dir(path) != workspace && (above == nil || !above.has):
		t.wrong = fmt.Sprintf("%.200q is in no directory of it", e.Path)
	case e.Link != "" && untext(e.Link) >= path:
		t.wrong = fmt.Sprintf("%.200q is a link to %.200q, which is not the first name of a file in byte order", e.Path, e.Link)
	}
	if above != nil {
		t.nodes[above.at].below++
	}
	if e.Link != "" {
		t.links = append(t.links, baseLink{to: keyOf(untext(e.Link)), of: keyOf(path)})
	}
	t.nodes = append(t.nodes, node{keyOf(path), stateOf(&e.FileState), 0, isDir(&e.FileState), isFirst(&e.FileState)})
	t.names = append(t.names, twig{length: len(path), has: isDir(&e.FileState), at: len(t.nodes) - 1})
}

// find is the name of a base with this hash of its path, nil if there is none.
func (t *baseTree) find(key uint64) *node {
	if !t.sorted {
		slices.SortFunc(t.nodes, func(a, b node) int { return cmp.Compare(a.key, b.key) })
		t.sorted = true
	}
	i, found := slices.BinarySearchFunc(t.nodes, key, func(n node, key uint64) int { return cmp.Compare(n.key, key) })
	if !found {
		return nil
	}
	return &t.nodes[i]
}

// change compares a change with the base.
func (t *baseTree) change(c *schemas.FileChange, key uint64, dir string, listed bool) {
	was, in := t.find(key), (*node)(nil)
	if dir != workspace && !listed {
		in = t.find(keyOf(dir))
	}
	switch {
	case t.fault != "":
	case c.Before == nil && was != nil:
		t.fault = fmt.Sprintf("%.200q is new, and the base has it", c.Path)
	case c.Before != nil && was == nil:
		t.fault = fmt.Sprintf("%.200q was there before, and the base does not have it", c.Path)
	case c.Before != nil && was.state != stateOf(c.Before):
		t.fault = fmt.Sprintf("%.200q is not before what it is in the base", c.Path)
	case dir != workspace && !listed && (in == nil || !in.dir):
		t.fault = fmt.Sprintf("%.200q is in no directory of the base, and of none that was made", c.Path)
	}
}

// left compares a directory that went away with the base: what was in it has lines, too.
func (t *baseTree) left(path string, x *twig) {
	if n := t.find(x.key); t.fault == "" && n != nil && n.below != x.below {
		t.fault = fmt.Sprintf("%.200q goes away with %d names in it, and the base has %d there", schemas.Text(path), x.below, n.below)
	}
}

// changes is what is known of the lines of the layer filesystem.
type changes struct {
	branch
	firsts firsts
	unread uint64 // names that are not known in full afterwards
	ofBase string // the first path that only a base can have
}

// changeInTree compares a change with those of the directory that it is in, and with the bases that were listed.
func (v *verifier) changeInTree(l *archive.Line, c *schemas.FileChange) {
	w := &v.wrapped
	path := untext(c.Path)
	dir, key := slash.Dir(path), keyOf(path)
	x := twig{length: len(path), key: key, had: isDir(c.Before), has: isDir(c.After)}
	above := w.changes.to(path, w.left)
	if path == workspace && (!x.had || !x.has) {
		v.faultWrapped(l, "the workspace itself is not a directory before and after")
	}
	if above != nil && (c.Before != nil && !above.had || c.After != nil && !above.has) {
		v.faultWrapped(l, "%.200q is in something that is no directory then", c.Path)
	}
	if above != nil && c.Before != nil {
		above.below++
	}
	if path != workspace && w.changes.ofBase == "" && (c.Before != nil || above == nil && dir != workspace) {
		w.changes.ofBase = c.Path
	}
	if s := c.After; s != nil && (s.Unread != "" || s.Mount) {
		w.changes.unread++
	}
	w.changes.firsts.add(key, l.Number, c)
	for _, list := range w.trees {
		if path != workspace || c.Before != nil {
			list.change(c, key, dir, above != nil)
		}
	}
	w.changes.names = append(w.changes.names, x)
}

// left is called for a directory when all below it was seen.
func (w *wrappedLayers) left(path string, x *twig) {
	if !x.had || x.has {
		return
	}
	for _, list := range w.trees {
		list.left(path, x)
	}
}
