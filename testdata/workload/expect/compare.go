package expect

import (
	"fmt"
	"strings"
)

// Result is how a record differs from what was made.
type Result struct {
	Missing  []Missing
	Surplus  []Line   // recorded, but the workload did not do it
	Statuses []string // lines whose status does not fit their return value
}

// Missing is an event that the record has not, or not often enough.
type Missing struct {
	Event
	Lacks int
	Near  string // a line that is left over and looks like it; it helps to read a failure
}

// Same reports whether the record holds exactly the lines that were made.
func (r Result) Same() bool { return len(r.Missing)+len(r.Surplus)+len(r.Statuses) == 0 }

// Problems says in at most n sentences of each kind what differs.
func (r Result) Problems(n int) (all []string) {
	for i, m := range r.Missing {
		if i == n {
			all = append(all, fmt.Sprintf("… and %d more kinds of lines are missing", len(r.Missing)-n))
			break
		}
		s := fmt.Sprintf("missing %d of %d: %v", m.Lacks, m.Count, m.Event)
		if m.Near != "" {
			s += "\n    near: " + m.Near
		}
		all = append(all, s)
	}
	for i, l := range r.Surplus {
		if i == n {
			all = append(all, fmt.Sprintf("… and %d more lines are not expected", len(r.Surplus)-n))
			break
		}
		all = append(all, fmt.Sprintf("recorded, but the workload did not do it: %v", l))
	}
	return append(all, r.Statuses[:min(n, len(r.Statuses))]...)
}

// Compare finds for each made event as many lines as it has, each line for one event only.
func Compare(made []Event, lines []Line) Result {
	var r Result
	index := map[string][]int{}
	byType := map[int][]int{}
	for i, l := range lines {
		index[key(l.Type, l.Value)] = append(index[key(l.Type, l.Value)], i)
		byType[l.Type] = append(byType[l.Type], i)
		if want := status(l); l.Status != want {
			r.Statuses = append(r.Statuses, fmt.Sprintf("status %q, expected %q: %v", l.Status, want, l))
		}
	}
	used := make([]bool, len(lines))
	take := func(e Event) {
		candidates := index[key(e.Type, e.Value)]
		if e.Any || e.Suffix {
			candidates = byType[e.Type]
		}
		left := e.Count
		for _, i := range candidates {
			if left == 0 {
				return
			}
			if !used[i] && e.matches(lines[i]) {
				used[i] = true
				left--
			}
		}
		if left > 0 {
			r.Missing = append(r.Missing, Missing{Event: e, Lacks: left, Near: near(e, lines, used)})
		}
	}
	for _, exact := range []bool{true, false} { // first those that match one line only
		for _, e := range made {
			if exact == (!e.Any && !e.Suffix && e.Pid != 0) {
				take(e)
			}
		}
	}
	for i, l := range lines {
		if !used[i] {
			r.Surplus = append(r.Surplus, l)
		}
	}
	return r
}

// key is the index key of a line: there are hundreds of thousands of lines to match.
func key(typ int, value *string) string {
	if value == nil {
		return fmt.Sprint(typ)
	}
	return fmt.Sprint(typ, *value)
}

func near(e Event, lines []Line, used []bool) string {
	if e.Value == nil {
		return ""
	}
	name := (*e.Value)[strings.LastIndexByte(*e.Value, '/')+1:]
	for i, l := range lines {
		if !used[i] && l.Value != nil && (*l.Value == *e.Value || l.Type == e.Type && strings.HasSuffix(*l.Value, name)) {
			return l.String()
		}
	}
	return ""
}

// status is what a line's return value says. A pending connect has no status.
func status(l Line) string {
	switch {
	case l.Ret == nil || *l.Ret == -115:
		return ""
	case *l.Ret >= 0:
		return "success"
	}
	return "error"
}
