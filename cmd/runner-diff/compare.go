package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// change is an item that only one side has.
type change struct {
	*item
	group   string
	of      uint32 // runs of its side
	blocks  bool   // its group is one of --fail-on
	ignored string // the id of the rule that ignores it
}

// flip is a tool of which the policy decided otherwise.
type flip struct {
	Tool string   `json:"tool"`
	Base []string `json:"base"`
	New  []string `json:"new"`
}

// comparison is what two sides differ in.
type comparison struct {
	verdict        string
	base, fresh    *side
	doubts         []doubt
	added, removed []change
	same           uint64 // items that both have
	flaky          uint64 // items of some runs of the baseline that the new run has not
	ignored        uint64
	blocking       uint64
	flips          []flip
}

// compare compares two sides. failOn are the groups that block, ignore says which rule ignores an item.
func compare(base, fresh *side, failOn []string, ignore func(*key, string) (string, error)) (*comparison, error) {
	c := &comparison{base: base, fresh: fresh, doubts: doubtful(base, fresh), flips: []flip{}}
	for _, i := range fresh.sorted() {
		if base.items[i.key] != nil {
			c.same++
			continue
		}
		if err := c.change(&c.added, i, i.group(), fresh, failOn, ignore); err != nil {
			return nil, err
		}
	}
	for _, i := range base.sorted() {
		switch {
		case fresh.items[i.key] != nil:
		case i.in < base.of(i):
			c.flaky++
		default:
			if err := c.change(&c.removed, i, schemas.GroupRemoved, base, failOn, ignore); err != nil {
				return nil, err
			}
		}
	}
	c.flip()
	switch {
	case len(c.doubts) > 0:
		c.verdict = schemas.VerdictInconclusive
	case len(c.added)+len(c.removed) > 0:
		c.verdict = schemas.VerdictChanged
	default:
		c.verdict = schemas.VerdictUnchanged
	}
	return c, nil
}

func (c *comparison) change(to *[]change, i *item, group string, s *side, failOn []string, ignore func(*key, string) (string, error)) error {
	id, err := ignore(&i.key, group)
	if err != nil {
		return err
	}
	if id != "" {
		c.ignored++
		return nil
	}
	x := change{item: i, group: group, of: s.of(i), blocks: slices.Contains(failOn, group)}
	if x.blocks {
		c.blocking++
	}
	*to = append(*to, x)
	return nil
}

// flip finds the tools of which both sides have decisions, and not the same ones.
func (c *comparison) flip() {
	base, fresh := decisions(c.base), decisions(c.fresh)
	for _, i := range c.fresh.sorted() {
		if i.kind != kindTool || len(base[i.value]) == 0 || len(fresh[i.value]) == 0 || slices.Equal(base[i.value], fresh[i.value]) {
			continue
		}
		c.flips = append(c.flips, flip{i.value, base[i.value], fresh[i.value]})
	}
}

// decisions are those of each tool, sorted.
func decisions(s *side) map[string][]string {
	m := map[string][]string{}
	for k := range s.items {
		if k.kind == kindDecision {
			m[k.value] = append(m[k.value], k.how)
		}
	}
	for _, list := range m {
		slices.Sort(list)
	}
	return m
}
