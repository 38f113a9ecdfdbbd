package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// maxItems bounds each class of items of a plan.
const maxItems = gate.MaxItems

// What is at the path of an intent to write a file, where it is not a digest.
const (
	beforeAbsent  = "absent"
	beforeUnknown = "unknown" // whatever is there is replaced
)

// makePlan makes all of a plan but what policies say.
func (r *recorded) makePlan(acceptPartial bool) (*gate.Plan, error) {
	p := &gate.Plan{Schema: schemas.SchemaGatePlan, RunID: r.runID, Archive: r.identity, Policies: []gate.PolicyRef{}, AcceptPartial: acceptPartial, Evidence: r.evidenceOf(),
		Files: []gate.File{}, Intents: []gate.Intent{}, Network: []gate.Exchange{}, Calls: []gate.Call{}, Blocked: []string{}, Approvals: []gate.Requirement{}}
	if r.box != nil && r.box.Base != nil {
		p.Base = &gate.Base{Digest: r.box.Base.Digest, Listed: r.has(r.box.Base.List)}
	}
	d := &diffs{r: r, left: maxAllDiffs}
	for i, c := range r.changes {
		diff, err := d.of(c)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, gate.File{Index: i, Op: c.Op, Path: c.Path, Before: c.Before, After: c.After, Diff: diff})
		if why := r.cannot(c); why != "" {
			p.Blocked = append(p.Blocked, fmt.Sprintf("file %s: %s", c.Path, why))
		}
	}
	if err := r.planIntents(p); err != nil {
		return nil, err
	}
	for i, e := range r.requests {
		p.Network = append(p.Network, gate.Exchange{Index: i, Decision: e.Decision, Rule: e.Rule, Scheme: e.Scheme, Host: e.Host, Port: e.Port, Method: e.Method, Path: e.Path,
			URL: exchange.URL(e), Sent: e.Request.Bytes, Status: e.Status, Failure: e.Failure})
	}
	for _, c := range r.calls {
		call := gate.Call{Index: len(p.Calls), ID: c.ToolCallID}
		switch {
		case c.Policy != nil:
			call.Tool, call.Decision, call.Rule = c.Policy.Tool, c.Policy.Decision, c.Policy.RuleID
		case c.SDK != nil:
			call.Tool = c.SDK.Tool
		}
		p.Calls = append(p.Calls, call)
	}
	slices.Sort(p.Blocked)
	return p, nil
}

// cannot says why a change cannot be made in another directory; "" if it can.
func (r *recorded) cannot(c *schemas.FileChange) string {
	for _, s := range []*schemas.FileState{c.Before, c.After} {
		switch {
		case s == nil:
		case s.Unread != "":
			return "its content is not known: " + s.Unread
		case s.Mount:
			return "another file system is mounted there"
		}
	}
	if s := c.After; s != nil {
		switch s.Kind {
		case schemas.KindSocket, schemas.KindChar, schemas.KindBlock:
			return "a " + s.Kind + " cannot be made again"
		case schemas.KindFile:
			if s.SHA256 != "" && *s.Size > 0 && !r.has(s.SHA256) {
				return "the archive does not have its content"
			}
		}
	}
	return ""
}

// planIntents plans what the run asks for.
func (r *recorded) planIntents(p *gate.Plan) error {
	wanted, after := map[string]bool{}, map[string]*schemas.FileChange{}
	for _, in := range r.intents {
		if w, err := in.FileWrite(); err == nil {
			wanted[w.Path] = true
		}
	}
	for _, c := range r.changes {
		after[c.Path] = c
	}
	known := false
	if len(wanted) > 0 {
		var err error
		if known, err = r.readBase(wanted); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i, in := range r.intents {
		x := gate.Intent{Index: i, ID: effectKey(in.Seq), Type: in.IntentType, Payload: in.Payload, IdempotencyKey: in.IdempotencyKey, Labels: append([]string{}, in.Labels...), Amount: in.Amount,
			Rollback: gate.Rollback{IDSources: []string{}}}
		var why string
		switch in.IntentType {
		case schemas.IntentFilesWrite:
			x.Rollback.Available = true
			x.Before, why = r.planWrite(in, known, after, seen)
		case schemas.IntentHTTPRequest:
			if _, err := in.HTTPRequest(); err != nil {
				why = err.Error()
			}
		default:
			why = "nothing here knows how to do " + in.IntentType
		}
		if why != "" {
			p.Blocked = append(p.Blocked, fmt.Sprintf("%s (%s): %s", x.ID, in.IntentType, why))
		}
		p.Intents = append(p.Intents, x)
	}
	return nil
}

// planWrite says what an intent to write a file replaces, and why it cannot be done.
func (r *recorded) planWrite(in *schemas.Intent, known bool, after map[string]*schemas.FileChange, seen map[string]bool) (before, why string) {
	w, err := in.FileWrite()
	if err != nil {
		return "", err.Error()
	}
	for at := w.Path; ; {
		if c := after[at]; c != nil && (at == w.Path || c.After == nil || c.After.Kind != schemas.KindDir) {
			why = "the run itself changed " + at
		}
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			break
		}
		at = at[:cut]
	}
	if seen[w.Path] {
		why = "another intent writes " + w.Path
	}
	seen[w.Path] = true
	switch s := r.base[w.Path]; {
	case !known:
		before = beforeUnknown
	case s == nil:
		before = beforeAbsent
	case s.Kind != schemas.KindFile || s.SHA256 == "":
		before, why = beforeUnknown, "at "+w.Path+" is a "+s.Kind+", or a file with several names"
	default:
		before = s.SHA256
	}
	return before, why
}
