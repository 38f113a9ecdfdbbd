package fold

import "strings"

// finder looks for the parts of rules in a value, for all of them at once: nearly all values have none.
type finder struct {
	chains [256]uint8 // by the first byte of a part: the place of its list in lists, from 1
	lists  [][]part
}

// part is a part of a rule.
type part struct {
	text  string
	rules uint64 // a bit for each rule, by its place in the set
}

// finderOf is the finder for rules. There are at most 64.
func finderOf(rules []*rule) finder {
	var f finder
	for i, r := range rules {
		for _, text := range r.parts {
			f.add(text, 1<<i)
		}
	}
	return f
}

func (f *finder) add(text string, rules uint64) {
	at := &f.chains[text[0]]
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

// find is the rules of which a part is in a value.
func (f *finder) find(value string) (rules uint64) {
	for i := range len(value) - 1 {
		at := f.chains[value[i]]
		if at == 0 {
			continue
		}
		list := f.lists[at-1]
		for j := range list {
			if p := &list[j]; p.text[1] == value[i+1] && strings.HasPrefix(value[i:], p.text) {
				rules |= p.rules
			}
		}
	}
	return rules
}
