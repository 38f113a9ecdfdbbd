package main

import (
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// change is an item that only one side has.
type change struct {
	*item
	group  string
	of     uint32 // runs of its side
	blocks bool   // its group is one of --fail-on
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
	added, removed := c.apart(base.items.sorted(), fresh.items.sorted())
	c.added = make([]change, 0, len(added))
	for _, i := range added {
		if err := c.change(&c.added, i, i.group(), fresh, failOn, ignore); err != nil {
			return nil, err
		}
	}
	for _, i := range removed {
		if i.in < base.of(i) {
			c.flaky++
		} else if err := c.change(&c.removed, i, schemas.GroupRemoved, base, failOn, ignore); err != nil {
			return nil, err
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

// apart are the items that only one of two sorted lists has. It counts the others.
func (c *comparison) apart(base, fresh []*item) (added, removed []*item) {
	added = fresh[:0] // what was read makes room for what is kept
	for len(base) > 0 || len(fresh) > 0 {
		order := -1
		switch {
		case len(base) == 0:
			order = 1
		case len(fresh) > 0:
			order = compareKeys(&base[0].key, &fresh[0].key)
		}
		switch {
		case order < 0:
			removed, base = append(removed, base[0]), base[1:]
		case order > 0:
			added, fresh = append(added, fresh[0]), fresh[1:]
		default:
			c.same++
			base, fresh = base[1:], fresh[1:]
		}
	}
	return added, removed
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
	for _, tool := range slices.Sorted(maps.Keys(fresh)) {
		if len(base[tool]) > 0 && !slices.Equal(base[tool], fresh[tool]) {
			c.flips = append(c.flips, flip{tool, base[tool], fresh[tool]})
		}
	}
}

// decisions are those of each tool, sorted.
func decisions(s *side) map[string][]string {
	m := map[string][]string{}
	for i := range s.items.all() {
		if i.kind == kindDecision {
			m[i.value] = append(m[i.value], i.how)
		}
	}
	for _, list := range m {
		slices.Sort(list)
	}
	return m
}
