//go:build linux

package main

// matching pairs what is expected with lines whose order is not known.
type matching struct {
	p    *process
	want []expected
	have []told
	line []int // of each expected one, -1 for none
	by   []int // of each line the expected one, -1 for none
}

// inAnyOrder pairs those whose numbers strace shows first, by every rule: one of which it does not show them can agree with any
// of their lines. What is left over then takes the line of another, where that agrees with a further line.
func inAnyOrder(p *process, want []expected, have []told, used map[string]int) (missing []expected, more []told) {
	m := matching{p: p, want: want, have: have, line: none(len(want)), by: none(len(have))}
	for vague := range vaguest + 1 {
		m.take(vague, (*expected).plain)
		for _, r := range rules {
			if r.pair != nil {
				m.take(vague, func(e *expected, l *told) bool { return l.text() == e.value && r.pair(p, e, l) })
				m.take(vague, func(e *expected, l *told) bool { return r.pair(p, e, l) })
			}
		}
	}
	for i := range want {
		if m.line[i] < 0 && !m.exchange(i, make([]bool, len(have))) {
			missing = append(missing, want[i])
		}
	}
	for n, i := range m.by {
		if i < 0 {
			more = append(more, have[n])
		} else if r := m.rule(i, n); r != "" {
			used[r]++
		}
	}
	return missing, more
}

func none(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = -1
	}
	return list
}

// take pairs what is free and agrees, in order.
func (m *matching) take(vague int, agree func(e *expected, l *told) bool) {
	for i := range m.want {
		e := &m.want[i]
		if m.line[i] >= 0 || e.vague() != vague {
			continue
		}
		for n, by := range m.by {
			if by < 0 && agree(e, &m.have[n]) {
				m.line[i], m.by[n] = n, i
				break
			}
		}
	}
}

// exchange finds a line for an expected one, which those that have theirs make free, one after the other.
func (m *matching) exchange(i int, tried []bool) bool {
	for n, by := range m.by {
		if tried[n] || !m.want[i].plain(&m.have[n]) && m.rule(i, n) == "" {
			continue
		}
		tried[n] = true
		if by < 0 || m.exchange(by, tried) {
			m.line[i], m.by[n] = n, i
			return true
		}
	}
	return false
}

// rule is the name of the rule by which they agree; "" if they agree as they are, or not at all.
func (m *matching) rule(i, n int) string {
	e, l := &m.want[i], &m.have[n]
	if e.plain(l) {
		return ""
	}
	for _, r := range rules {
		if r.pair != nil && r.pair(m.p, e, l) {
			return r.name
		}
	}
	return ""
}
