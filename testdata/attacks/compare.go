//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// fact is one thing that happened, which a faithful record tells in one line.
type fact struct {
	kind   uint32 // event type, such as schemas.EventUnlink
	value  string // path or endpoint; paths that do not begin with "/", "unix:" and the like are below the attack's directory
	failed bool   // it was done (status success), or it was not (status error)
	errno  int    // which error; 0 is any
	unrun  bool   // something answered the call, it did not run: no line, or one that says so
}

// done are things that succeeded, all of one type.
func done(kind uint32, values ...string) (facts []fact) {
	for _, v := range values {
		facts = append(facts, fact{kind: kind, value: v})
	}
	return facts
}

// answered are calls of one type that something answered, so that they did not run.
func answered(kind uint32, values ...string) (facts []fact) {
	for _, v := range values {
		facts = append(facts, fact{kind: kind, value: v, unrun: true})
	}
	return facts
}

// compare compares what happened with the lines of these types in the attack's part of the
// record, each as often as it happened. kinds are further types of which there must be no
// line. Lines that say of themselves that they are not exact make it declared.
func (e *evidence) compare(happened []fact, kinds ...uint32) verdict {
	var lines []told
	for _, f := range happened {
		kinds = append(kinds, f.kind)
	}
	for _, l := range e.own {
		if slices.Contains(kinds, l.Type) && !e.frame(&l) {
			lines = append(lines, l)
		}
	}
	var absent []fact
	for _, f := range happened {
		if f.unrun { // a line of it says that it is unproven: see below
			continue
		}
		i := slices.IndexFunc(lines, func(l told) bool { return l.marked() == "" && e.tells(&l, &f) })
		if i < 0 {
			absent = append(absent, f)
			continue
		}
		lines = slices.Delete(lines, i, i+1)
	}
	var false, marks []string
	for _, l := range lines {
		mark := l.marked()
		if mark == "" {
			false = append(false, e.show(&l))
			continue
		}
		if !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
		// a marked line stands for one thing of its type
		if i := slices.IndexFunc(absent, func(f fact) bool { return f.kind == l.Type }); i >= 0 {
			absent = slices.Delete(absent, i, i+1)
		}
	}
	var wrong []string
	for _, f := range absent {
		wrong = append(wrong, fmt.Sprintf("absent: %d %s", f.kind, strings.ReplaceAll(f.value, e.dir, "DIR")))
	}
	if wrong = wrong[:min(3, len(wrong))]; false != nil {
		wrong = append(wrong, "false: "+strings.Join(false[:min(3, len(false))], ", "))
	}
	switch {
	case wrong != nil:
		return lie("%s", strings.Join(wrong, "; "))
	case marks != nil:
		return declared("%s", strings.Join(marks, ", "))
	}
	return exact()
}

// frame reports whether the line is the frame's doing: the start of the attack's own process.
func (e *evidence) frame(l *told) bool {
	return l.PID == e.pid && l.Type == 4 && len(e.own) > 0 && l.Seq == e.own[0].Seq ||
		strings.HasPrefix(l.text(), e.dir+"/at-")
}

func (e *evidence) tells(l *told, f *fact) bool {
	want := f.value
	if !strings.HasPrefix(want, "/") && !strings.Contains(want, ":") && want != "null" {
		want = strings.TrimSuffix(e.path(want), "/")
	}
	if l.Type != f.kind || l.text() != want || l.Status != map[bool]string{false: "success", true: "error"}[f.failed] {
		return false
	}
	return f.errno == 0 || l.Return != nil && *l.Return == -int64(f.errno)
}

func (e *evidence) show(l *told) string {
	ret := "no result"
	if l.Return != nil {
		ret = fmt.Sprint(*l.Return)
	}
	return fmt.Sprintf("%d %s = %s", l.Type, strings.ReplaceAll(l.text(), e.dir, "DIR"), ret)
}
