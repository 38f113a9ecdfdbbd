package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/page"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of the folded parts of a page. Its tables have the rest.
const (
	pageProcesses = 2000
	pageNames     = 24     // of a group
	pageFirst     = 5      // of a group, before the others are unfolded
	pageAlerts    = 6      // contradictions at the head
	pageCodes     = 20     // of each level, that are about no single call
	pageFewNames  = 2      // of a group, once the page has so many:
	pageAllNames  = 20_000 // of the tree
	pageCalls     = 500
	pageEffects   = 50
)

// Kinds of facts.
const (
	kindGood = "good"
	kindWarn = "warn"
	kindBad  = "bad"
)

// page says what the collector took, in the words of the screen.
func (c *collector) page(rep *verdict.Report) *page.Page {
	rec := rep.Record
	how, style := state(rec)
	notes := verdict.Remarkable(rec.Notes)
	p := &page.Page{
		Title: rep.Archive, Kind: map[string]string{green: kindGood, amber: kindWarn, red: kindBad}[style], Verdict: "valid, " + how,
		Command: verdict.Ending(rec), Size: c.size(rec), Health: healthFacts(rec), Facts: recordFacts(rep), Notes: notes, AllNotes: rec.Notes,
		Claims: rep.Claims, NonClaim: rep.NonClaims, Filter: strings.Join(c.opt.Filter.words, " "),
		Summary: c.groups(&c.model.all, pageNames), Data: c.data,
		Order: "Who started whom is not in this record.",
		Foot:  "runner-verify checks the archive; this page is a view of it and proves nothing. Identity of the archive: " + rep.Identity,
	}
	switch {
	case c.model.layered:
		p.Order = "In the order of the fork tree: each process is below the one that started it, or that started one in between, which did nothing that is on this page."
	case c.model.together:
		p.Order = "In the order of the fork tree. " + p.Order
	}
	c.calls(p, rep)
	c.tree(p)
	if c.timeline.Recorded() {
		c.timeline.Finish(c.data, c.model.program)
		p.Timeline = &c.timeline
	}
	return p
}

// size says how much the record and the page have.
func (c *collector) size(rec *verdict.Record) string {
	words := c.model.size(rec, &c.opt.Filter)
	if n := rec.PolicyEvents; n > 0 {
		words += ", " + counted(n, "policy decision")
	}
	return words
}

// healthFacts say how well the run was observed.
func healthFacts(rec *verdict.Record) []page.Fact {
	kernel := map[string]string{schemas.LayerComplete: kindGood, schemas.LayerPartial: kindBad, schemas.LayerAbsent: kindWarn}[rec.KernelLayer]
	cgroup, drops := kindGood, ""
	if rec.CgroupCorrelation != schemas.CorrelationClean {
		cgroup = kindBad
	}
	if rec.RingbufDrops > 0 {
		drops = kindBad
	}
	return []page.Fact{
		{Key: "Kernel layer", Value: rec.KernelLayer, Kind: kernel},
		{Key: "Lost events", Value: fmt.Sprint(rec.RingbufDrops), Kind: drops},
		{Key: "Cgroup", Value: rec.CgroupCorrelation, Kind: cgroup},
		{Key: "Policy layer", Value: rec.PolicyLayer},
		{Key: "SDK layer", Value: rec.SDKLayer},
		{Key: "Correlation", Value: rec.Correlation},
	}
}

// recordFacts say which record this is.
func recordFacts(rep *verdict.Report) []page.Fact {
	rec := rep.Record
	facts := []page.Fact{
		{Key: "Network", Value: "coverage " + rec.NetworkCoverage + ", claim scope " + rec.EndpointScope},
		{Key: "Lines", Value: fmt.Sprintf("%d kernel, %d policy, %d SDK", rec.KernelEvents, rec.PolicyEvents, rec.SDKEvents)},
		{Key: "Run", Value: rep.RunID},
		{Key: "Platform", Value: rec.Platform},
		{Key: "Origin", Value: rec.Origin},
		{Key: "Identity", Value: rep.Identity},
	}
	if rep.IdentityWithoutTimes != "" {
		facts = append(facts, page.Fact{Key: "… without times", Value: rep.IdentityWithoutTimes})
	}
	return facts
}

// pageOrder is the order of the groups on the page: first what changed or left the machine.
var pageOrder = [acts.Groups]acts.Group{acts.Reached, acts.Wrote, acts.Created, acts.Removed, acts.Renamed, acts.Changed,
	acts.Listened, acts.Bound, acts.Executed, acts.Read, acts.Other}

// groups are the folds of a summary, what was refused first.
func (c *collector) groups(sum *summary, most int) (list []page.Group) {
	add := func(name, count, kind string, f *fold) {
		g := page.Group{Name: name, Count: count, Kind: kind}
		shown := 0
		for _, r := range c.model.rows(f, most) {
			if len(g.Rows)+len(g.Rest) == most {
				break
			}
			row := page.Row{Name: r.name, Names: r.names}
			if shown += r.names; len(g.Rows) < pageFirst {
				g.Rows = append(g.Rows, row)
			} else {
				g.Rest = append(g.Rest, row)
			}
		}
		if more := len(f.times) - shown; more > 0 {
			g.More = fmt.Sprintf("… and %d more", more)
		}
		if f.lost > 0 {
			g.More = strings.TrimSpace(g.More + " and " + counted(f.lost, "operation") + " on more names")
		}
		list = append(list, g)
	}
	if sum.refused.acts > 0 {
		add("refused", counted(sum.refused.acts, "time"), kindBad, &sum.refused)
	}
	for _, g := range pageOrder {
		if f := &sum.groups[g]; f.acts > 0 {
			add(acts.Words[g].Group, f.atLeast()+counted(uint64(len(f.times)), acts.Words[g].Thing), "", f)
		}
	}
	for _, name := range errorsByNumber(sum) {
		f := sum.failed[name]
		add("failed "+name, f.atLeast()+counted(uint64(len(f.times)), "name"), kindWarn, f)
	}
	for _, x := range []struct {
		n    uint64
		name string
	}{{sum.unsure, "unproven: nothing shows that it was done"}, {sum.doubts, "in doubt: the names could have changed meanwhile"}} {
		if x.n > 0 {
			list = append(list, page.Group{Name: x.name, Count: counted(x.n, "operation"), Kind: kindWarn})
		}
	}
	return list
}

// errorsByNumber are the names of the errors of a summary, that of the most names first.
func errorsByNumber(sum *summary) []string {
	return slices.SortedFunc(maps.Keys(sum.failed), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(sum.failed[b].times), len(sum.failed[a].times)), strings.Compare(a, b))
	})
}

// tree adds the processes.
func (c *collector) tree(p *page.Page) {
	names := 0
	for i, proc := range c.model.processes {
		if i == pageProcesses {
			break
		}
		most := pageNames
		if names > pageAllNames {
			most = pageFewNames
		}
		x := page.Process{Index: i, PID: proc.pid, Programs: slices.Clone(proc.programs), More: proc.more, Count: counted(proc.acts, "operation"),
			Refused: proc.refused.acts, Groups: c.groups(&proc.summary, most)}
		for j := range x.Programs {
			x.Programs[j] = strings.Replace(x.Programs[j], beforeMark, " ", 1)
		}
		if words := noExec(proc, c.opt.Filter.empty()); words != "" {
			x.Programs = append([]string{words}, x.Programs...)
		}
		if x.Depth = min(proc.depth, page.MaxDepth); proc.above >= 0 {
			x.Below = c.model.processes[proc.above].pid
		}
		for _, f := range proc.failed {
			x.Failed += f.acts
		}
		for _, g := range x.Groups {
			names += len(g.Rows) + len(g.Rest)
		}
		p.Tree = append(p.Tree, x)
	}
	p.MoreTree = len(c.model.processes) - len(p.Tree) + c.model.left
}

// calls adds the tool calls with what each layer says.
func (c *collector) calls(p *page.Page, rep *verdict.Report) {
	if rep.Explanation == nil {
		return
	}
	all := rep.Explanation.Calls
	for i := range all[:min(len(all), pageCalls)] {
		call := &all[i]
		x := page.Call{Number: i + 1, ID: call.ToolCallID, Listed: c.listed[call.ToolCallID]}
		x.Asked, x.SDK, x.Policy, x.Kernel = verdict.CallWords(call, rep.Record)
		switch {
		case call.Policy != nil:
			x.Tool = call.Policy.Tool
			x.Kind = map[string]string{schemas.DecisionAllow: kindGood, schemas.DecisionDeny: kindBad}[call.Policy.Decision]
		case call.SDK != nil:
			x.Tool = call.SDK.Tool
		}
		if k := call.Kernel; k != nil {
			n := min(len(k.Effects), pageEffects)
			x.Effects = k.Effects[:n]
			switch more := len(k.Effects) - n; {
			case k.Cut:
				x.MoreEffects = "… and others, which the record does not name"
			case more > 0:
				x.MoreEffects = fmt.Sprintf("… and %d more", more)
			}
		}
		x.Notes = noteWords(call.Notes)
		for _, entry := range call.Ambiguities {
			words := verdict.InWords(entry)
			if x.But = append(x.But, words); len(p.Alerts) < pageAlerts {
				p.Alerts = append(p.Alerts, page.Alert{Call: x.Number, ID: x.ID, Words: words})
			} else {
				p.MoreAlerts++
			}
		}
		p.Calls = append(p.Calls, x)
	}
	p.MoreCall = len(all) - len(p.Calls)
	for _, entry := range rep.Explanation.Ambiguities[:min(len(rep.Explanation.Ambiguities), pageCodes)] {
		p.InDoubt = append(p.InDoubt, plainWords(entry))
	}
	p.Noted = noteWords(rep.Explanation.Notes[:min(len(rep.Explanation.Notes), pageCodes)])
}

// program is the name of the first program that a process executed, without its folders.
func (m *model) program(index int) string {
	if index >= len(m.processes) || len(m.processes[index].programs) == 0 {
		return ""
	}
	if p := m.processes[index]; p.number > 0 {
		return p.first
	}
	return path.Base(m.processes[index].programs[0])
}
