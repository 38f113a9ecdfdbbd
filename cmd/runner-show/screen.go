package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// screen writes the folded views.
type screen struct {
	printer
	m   *model
	opt Options
	rep *verdict.Report
}

func (s *screen) print() {
	s.head()
	if s.m.all.acts == 0 {
		s.nothing()
	} else if s.opt.View != viewTree {
		s.summary(&s.m.all, 0)
		s.line("")
	}
	if s.opt.Filter.empty() && s.opt.View == "" {
		s.behind()
		s.calls()
		s.aboutNoCall()
	}
	s.tree()
	s.foot()
}

// head says whether the record can be believed, and what was run.
func (s *screen) head() {
	rec := s.rep.Record
	how, style := state(rec)
	s.line("%s: %s, %s", s.paint(bold, verdict.Printable(s.rep.Archive, 200)), s.paint(green, "valid"), s.paint(style, how))
	s.prose("command    ", dim, verdict.Ending(rec))
	s.line("%s%s", s.paint(dim, "record     "), s.m.size(rec, &s.opt.Filter))
	if s.m.filtered > 0 {
		s.prose("left out   ", dim, counted(s.m.filtered, "value")+" as noise of loaders and runtimes: runner-show --filtered")
	}
	for _, note := range verdict.Remarkable(rec.Notes) {
		s.prose("note       ", amber, verdict.Printable(note, maxShownName))
	}
	if !s.opt.Filter.empty() {
		s.items(0, "filter     ", dim, []string{strings.Join(s.opt.Filter.words, " ")})
	}
	s.line("")
}

// state says whether a record can be believed, and with which style.
func state(rec *verdict.Record) (how, style string) {
	how, style = "complete", green
	switch rec.KernelLayer {
	case schemas.LayerAbsent:
		how, style = "the kernel layer is absent", amber
	case schemas.LayerPartial:
		how, style = "partial: events were lost", red
	}
	if rec.CgroupCorrelation != schemas.CorrelationClean {
		how, style = how+", cgroup "+rec.CgroupCorrelation, red
	}
	return how, style
}

func (s *screen) nothing() {
	switch {
	case !s.opt.Filter.empty():
		s.line("No operation of this record fits the filter.")
	case s.rep.Record.KernelLayer == schemas.LayerAbsent:
		s.line("Nothing is known of what the command did: the kernel layer is absent.")
	default:
		s.line("The kernel layer holds no event.")
	}
}

// summary writes what was done, group by group: what was refused first.
func (s *screen) summary(sum *summary, indent int) {
	if sum.refused.acts > 0 {
		s.fold(indent, "refused", counted(sum.refused.acts, "time"), red, &sum.refused)
	}
	for g := range acts.Groups {
		f := &sum.groups[g]
		if f.acts == 0 || indent > 0 && acts.Group(g) == acts.Executed {
			continue
		}
		count := ""
		if len(f.times) != 1 || f.lost > 0 {
			count = f.atLeast() + counted(uint64(len(f.times)), acts.Words[g].Thing)
		}
		s.fold(indent, acts.Words[g].Group, count, bold, f)
	}
	for _, name := range errorsByNumber(sum) {
		f := sum.failed[name]
		s.fold(indent, "failed", fmt.Sprintf("%s%d %s", f.atLeast(), len(f.times), name), amber, f)
	}
	if sum.unsure > 0 {
		s.items(indent, "unproven   ", amber, []string{counted(sum.unsure, "operation") + ": nothing shows that they were done"})
	}
	if sum.doubts > 0 {
		s.items(indent, "in doubt   ", amber, []string{counted(sum.doubts, "operation") + ": the names could have changed meanwhile"})
	}
}

// fold writes one group: how many names, and which. Of what was refused it is how many times. Under a process on the first screen it has one line.
func (s *screen) fold(indent int, group, count, style string, f *fold) {
	most := s.opt.Top
	if group == acts.Words[acts.Executed].Group {
		most = 2 * min(most, math.MaxInt/2)
	}
	rows := s.m.rows(f, most)
	title := fmt.Sprintf("%-10s ", group)
	if count != "" {
		title += fmt.Sprintf("%-12s ", count)
	}
	room, short := s.width-indent-columns(title), indent > 0 && s.opt.View == "" && s.width > 0
	if short && len(rows) > 1 {
		room -= len(moreItem)
	}
	var items []string
	for _, r := range rows {
		if r.names > 1 {
			items = append(items, fmt.Sprintf("%s %d", r.name, r.names))
		} else {
			items = append(items, single(r.name))
		}
	}
	if s.width > 0 {
		items = shortenAll(items, room)
	}
	show := min(len(items), most)
	if short {
		show = max(min(1, show), fits(items[:show], s.width-indent-columns(title))) // all names can be lost
	}
	more := 0
	for _, r := range rows[show:] {
		more += r.names
	}
	items = items[:show]
	if more > 0 {
		items = append(items, fmt.Sprintf("+%d more", more))
	}
	if f.lost > 0 {
		items = append(items, "and "+counted(f.lost, "operation")+" on more names")
	}
	s.items(indent, title, style, items)
}

// tree writes the processes. On the screen only those with the most operations.
func (s *screen) tree() {
	shown := s.m.processes
	if len(shown) > s.opt.Top && s.opt.View == "" {
		shown = busiest(shown, s.opt.Top)
	}
	if len(shown) > 0 {
		title := "Processes"
		if len(shown) < len(s.m.processes) {
			title = fmt.Sprintf("The %d busiest processes", len(shown))
		}
		switch {
		case s.m.layered && s.opt.View == viewTree:
			title += ", each below its parent or the nearest one above that is shown"
		case s.m.together || s.m.layered:
			title += ", in the order of the fork tree"
		}
		s.line("%s", s.paint(bold, title))
	}
	for _, p := range shown {
		s.process(p)
	}
	if more := len(s.m.processes) - len(shown) + s.m.left; more > 0 {
		s.line("… and %s: --tree shows all", counted(uint64(more), "process"))
	}
}

// busiest are the n processes with the most operations, in the order of the record.
func busiest(all []*process, n int) []*process {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].acts, all[a].acts) })
	order = order[:n]
	slices.Sort(order)
	var list []*process
	for _, i := range order {
		list = append(list, all[i])
	}
	return list
}

// maxDepth is how far the tree is indented.
const maxDepth = 10

func (s *screen) process(p *process) {
	var names []string
	if words := noExec(p, s.opt.Filter.empty()); words != "" {
		names = append(names, words)
	}
	for _, name := range p.programs {
		if p.number == 0 {
			name = single(name)
		}
		if len(names) > 0 {
			name = "→ " + name
		}
		names = append(names, strings.Split(name, beforeMark)...)
	}
	if p.more > 0 {
		names = append(names, fmt.Sprintf("→ … %d more", p.more))
	}
	indent := 2
	if s.opt.View == viewTree {
		indent += 2 * min(p.depth, maxDepth)
	}
	s.items(indent, fmt.Sprintf("%-8d ", p.pid), bold, names)
	if s.opt.View == "" && len(s.m.processes) == 1 {
		return // the whole run is above
	}
	s.summary(&p.summary, indent+2)
}

// foot says what this screen does not say.
func (s *screen) foot() {
	if s.m.all.acts == 0 || !s.opt.Filter.empty() {
		return
	}
	s.line("")
	var words []string
	if !s.m.layered {
		words = append(words, "Who started whom is not in this record.")
	}
	if s.m.all.pending > 0 {
		words = append(words, "Of a pending connect the record has no end.")
	}
	seen := "Not all that happens is seen:"
	if len(words) > 0 {
		seen = "Nor is all that happens seen:"
	}
	s.prose("", dim, strings.Join(append(words, seen, "runner-verify -v", verdict.Printable(s.rep.Archive, 200)), " "))
}

// calls writes what each layer says of the first tool calls.
func (s *screen) calls() {
	x := s.rep.Explanation
	if x == nil || len(x.Calls) == 0 {
		return
	}
	short := *s.rep
	explanation := *x
	n := min(len(x.Calls), s.opt.Top)
	explanation.Calls = slices.Clone(x.Calls[:n])
	for i := range explanation.Calls {
		c := &explanation.Calls[i]
		if c.Kernel != nil && len(c.Kernel.Effects) > s.opt.Top {
			kernel := *c.Kernel
			kernel.Effects, kernel.Cut = append(slices.Clone(kernel.Effects[:s.opt.Top]), fmt.Sprintf("… %d more: --all", len(kernel.Effects)-s.opt.Top)), c.Kernel.Cut
			c.Kernel = &kernel
		}
	}
	short.Explanation = &explanation
	var text strings.Builder
	verdict.WriteCalls(&text, &short)
	for line := range strings.Lines(text.String()) {
		s.wrapped(strings.TrimSuffix(line, "\n"))
	}
	if more := len(x.Calls) - n; more > 0 {
		s.line("… and %s: --all shows all", counted(uint64(more), "tool call"))
	}
	s.line("")
}

// wrapped writes a line of a text that has its own layout: what does not fit is indented below
// the words that come after its first one.
func (s *screen) wrapped(line string) {
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	title := ""
	if word, rest, ok := strings.Cut(body, "  "); ok && indent > 0 && !strings.Contains(word, " ") {
		text := strings.TrimLeft(rest, " ")
		title, body = body[:len(body)-len(text)], text
	}
	s.wrap(indent, title, "", " ", strings.Fields(body))
}
