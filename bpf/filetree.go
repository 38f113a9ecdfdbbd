package bpf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The nodes that every tree has, as files.h numbers them: the top of all mounts, what holds
// for a path that is not known, and what holds for an object without a path.
const (
	nodeTop, nodeUnknown, nodeUnnamed = 0, 1, 2

	maxNames = 128 // of a rule's path, NAMES of files.h
)

// fileTree has the paths of rules as the kernel compares them: name by name, from the top
// of all mounts or of one file system.
type fileTree struct {
	rules   *schemas.FileRules
	nodes   []*fileNode
	numbers []uint32 // of entries: the defaults of files and exec, then the rules
}

type fileNode struct {
	parent   uint32
	children map[string]uint32
	rules    []int // which end here, as places in the rule set
	merged   []int // instead of what the way here says
}

// fileVerdict is a struct file_node: what the rules say at a node and below it.
type fileVerdict struct {
	ops               [len(schemas.RuleOps)]uint32
	below, allowBelow uint32
}

func newFileTree(rules *schemas.FileRules) *fileTree {
	t := &fileTree{rules: rules, numbers: []uint32{0, 0}}
	for range nodeUnnamed + 1 {
		t.root()
	}
	for i := range rules.Rules {
		if n := rules.Rules[i].Number; !slices.Contains(t.numbers, n) {
			t.numbers = append(t.numbers, n)
		}
	}
	return t
}

// root adds a node without one above it.
func (t *fileTree) root() uint32 {
	id := uint32(len(t.nodes))
	t.nodes = append(t.nodes, &fileNode{parent: id, children: map[string]uint32{}})
	return id
}

// merge adds a node for an object to which several places belong.
func (t *fileTree) merge(nodes []uint32) uint32 {
	id := t.root()
	for _, n := range nodes {
		t.nodes[id].merged = append(t.nodes[id].merged, t.matched(n)...)
	}
	slices.Sort(t.nodes[id].merged)
	return id
}

func names(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// add says that a rule is about a path below a root.
func (t *fileTree) add(root uint32, path string, rule int) error {
	parts := names(path)
	if len(parts) > maxNames {
		return fmt.Errorf("rule %d (%s): a path of %d names, at most %d", t.rules.Rules[rule].Number, t.rules.Rules[rule].ID, len(parts), maxNames)
	}
	at := root
	for _, name := range parts {
		next, ok := t.nodes[at].children[name]
		if !ok {
			next = t.root()
			t.nodes[next].parent = at
			t.nodes[at].children[name] = next
		}
		at = next
	}
	if n := t.nodes[at]; !slices.Contains(n.rules, rule) {
		n.rules = append(n.rules, rule)
	}
	return nil
}

// find returns the deepest node on the way to a path, and whether that is above the path.
func (t *fileTree) find(root uint32, path string) (node uint32, above bool) {
	node = root
	for _, name := range names(path) {
		next, ok := t.nodes[node].children[name]
		if !ok {
			return node, true
		}
		node = next
	}
	return node, false
}

// matched are the rules about a node's path, in their order.
func (t *fileTree) matched(id uint32) (out []int) {
	n := t.nodes[id]
	if n.merged != nil {
		return n.merged
	}
	for {
		out = append(out, n.rules...)
		if n.parent == id {
			break
		}
		id = n.parent
		n = t.nodes[id]
	}
	slices.Sort(out)
	return out
}

// further are the rules about what is below a node, in their order.
func (t *fileTree) further(id uint32) map[int]uint32 {
	out := map[int]uint32{}
	for _, c := range t.nodes[id].children {
		for _, r := range t.nodes[c].rules {
			out[r] = c
		}
		for r, at := range t.further(c) {
			out[r] = at
		}
	}
	return out
}

// entry is where a rule's refusals are counted. An automatic rule has none.
func (t *fileTree) entry(number uint32) uint32 {
	if number == 0 {
		return 0
	}
	return uint32(2 + slices.Index(t.numbers[2:], number))
}

// first is the verdict of the first of some rules that is about an operation.
func (t *fileTree) first(rules []int, op string) uint32 {
	for _, i := range rules {
		if r := &t.rules.Rules[i]; slices.Contains(r.On, op) {
			return verdictOf(t.entry(r.Number), r.Action)
		}
	}
	if op == schemas.HookExec {
		return verdictOf(1, t.rules.ExecDefault)
	}
	return verdictOf(0, t.rules.FilesDefault)
}

func verdictOf(entry uint32, action string) uint32 {
	if action == schemas.DecisionDeny {
		return entry<<1 | 1
	}
	return entry << 1
}

// verdict is what the kernel's table says about a node.
func (t *fileTree) verdict(id uint32) (v fileVerdict) {
	matched := t.matched(id)
	switch id {
	case nodeUnknown: // a path that is not known can be one that a rule denies
		for i := range t.rules.Rules {
			if t.rules.Rules[i].Action == schemas.DecisionDeny {
				matched = append(matched, i)
			}
		}
	case nodeUnnamed:
		v.ops[slices.Index(schemas.RuleOps[:], schemas.HookExec)] = t.first(nil, schemas.HookExec)
		return v
	}
	for i, op := range schemas.RuleOps {
		v.ops[i] = t.first(matched, op)
	}
	further := t.further(id)
	for i := range t.rules.Rules {
		at, ok := further[i]
		if !ok {
			continue
		}
		r := &t.rules.Rules[i]
		for op, name := range schemas.RuleOps {
			if !slices.Contains(r.On, name) {
				continue
			}
			if r.Action != schemas.DecisionDeny {
				v.allowBelow |= 1 << op
			} else if d := t.first(t.matched(at), name); d&1 != 0 && v.below == 0 {
				v.below = d
			}
		}
	}
	return v
}

// path is a rule's path as bytes.
func (t *fileTree) path(rule int) (string, error) {
	b, err := schemas.Untext(t.rules.Rules[rule].Path)
	return string(b), err
}

func (t *fileTree) denies(rule int) bool {
	return t.rules.Rules[rule].Action == schemas.DecisionDeny
}

// closed reports whether something is denied that no rule is about.
func (t *fileTree) closed() bool {
	return t.rules.FilesDefault == schemas.DecisionDeny || t.rules.ExecDefault == schemas.DecisionDeny
}
