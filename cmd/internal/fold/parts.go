package fold

import "strings"

// finder looks for the parts of rules in a value, for all of them at once: nearly all values have none.
type finder struct {
	pairs [1 << 16]uint8 // by the first two bytes of a part: the place of its list in lists, from 1
	lists [][]part
}

// part is a part of a rule.
type part struct {
	text  string
	rules uint64 // a bit for each rule, by its place in the set
}

// finderOf is the finder for rules. There are at most 64.
func finderOf(rules []*rule) *finder {
	f := &finder{}
	for i, r := range rules {
		for _, text := range r.parts {
			f.add(text, 1<<i)
		}
	}
	return f
}

func (f *finder) add(text string, rules uint64) {
	at := &f.pairs[pair(text[0], text[1])]
	if *at == 0 {
		f.lists = append(f.lists, nil)
		*at = uint8(len(f.lists))
	}
	list := &f.lists[*at-1]
	for i := range *list {
		if (*list)[i].text == text {
			(*list)[i].rules |= rules
			return
		}
	}
	*list = append(*list, part{text, rules})
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// find is the rules of which a part is in a value.
func (f *finder) find(value string) (rules uint64) {
	if f == nil || value == "" {
		return 0
	}
	before := value[0]
	for i := 1; i < len(value); i++ {
		at := f.pairs[pair(before, value[i])]
		if before = value[i]; at == 0 {
			continue
		}
		for _, p := range f.lists[at-1] {
			if strings.HasPrefix(value[i-1:], p.text) {
				rules |= p.rules
			}
		}
	}
	return rules
}
