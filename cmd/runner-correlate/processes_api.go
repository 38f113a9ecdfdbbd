package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// Sessions of runner-proc (schemas/PROC.md, "Decision log").

// ofProcesses reports whether it is a session of runner-proc.
func (s *session) ofProcesses() bool { return s.source == schemas.LogSourceProc }

// ofProcesses are the sessions of runner-proc, in the order of their starts.
func (p *policyLog) ofProcesses() (list []*session) {
	for _, s := range p.sessions {
		if s.ofProcesses() {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *session) int { return cmp.Compare(a.ktime, b.ktime) })
	return list
}

// nameProcesses gives the calls of runner-proc ids that are the same in each run: the random name of a session in them
// becomes its number.
func (p *policyLog) nameProcesses() {
	number := map[*session]int{}
	for i, s := range p.ofProcesses() {
		number[s] = i
	}
	for _, d := range p.decisions {
		if d.session == nil || !d.session.ofProcesses() || d.rawID != schemas.ProcessCallID(d.session.hex, d.number) {
			continue
		}
		d.rawID = schemas.ProcessCallID(strconv.Itoa(number[d.session]), d.number)
		d.event.ToolCallID = d.rawID
	}
}
