package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/schemas"
)

// Statuses of an archive.
const (
	statusDenied    = "denied"
	statusPending   = "pending"
	statusApproved  = "approved"
	statusStale     = "stale" // its plan is that of other policies
	statusCommitted = schemas.GateCommitted
	statusReverted  = schemas.GateReverted
	statusFailed    = schemas.GateFailed  // a commit failed, and not all of it could be taken back
	statusUnder     = schemas.GateStarted // a commit or a revert was cut, or is being done: it goes on when it is asked for again
	statusUnread    = "unreadable"
)

// summary is what the list has of an archive.
type summary struct {
	ID      string `json:"id"`
	RunID   string `json:"run_id"`
	Status  string `json:"status"`
	Files   int    `json:"files"`
	Intents int    `json:"intents"`
}

// named is a key that may approve, with its name in the policy.
type named struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// view is all that is known of an archive.
type view struct {
	summary
	Plan       *gate.Plan       `json:"plan"`
	Digest     string           `json:"digest"`
	Refused    []string         `json:"refused"`      // why nobody can approve it
	Stale      string           `json:"stale"`        // why the plan is to be made again; "" if it is not
	Approvals  []*gate.Approval `json:"approvals"`    // that are in force
	NotInForce []string         `json:"not_in_force"` // why others are not
	Keys       []named          `json:"keys"`         // that may approve
	Key        string           `json:"key"`          // that this server signs with
	MayApprove bool             `json:"may_approve"`  // it is one of them
	Doing      string           `json:"doing"`        // commit or revert, while it is being done
	To         string           `json:"to"`
	Why        string           `json:"why"`         // the last commit was taken back, or why it is being taken back
	Left       []string         `json:"left"`        // what could not be taken back
	CannotUndo []string         `json:"cannot_undo"` // what a revert would leave
}

// view reads the files of an archive.
func (s *server) view(id string) (*view, error) {
	b, err := s.brief(id)
	if err != nil {
		return nil, err
	}
	p, _, _, err := readPlan(filepath.Join(s.place(id), filePlan))
	if err != nil {
		return nil, err
	}
	v := &view{Plan: p, Digest: b.digest, Refused: b.refused, Stale: s.stale(p), Keys: []named{}, Key: s.own.String(), To: schemas.Text(s.real)}
	if v.Approvals, v.NotInForce, err = s.approvals(b); err != nil {
		return nil, err
	}
	at, err := s.steps(b.digest)
	if err != nil {
		return nil, err
	}
	v.summary = s.summed(b, v.Approvals, at)
	t := at[b.digest]
	v.Why, v.Left, v.CannotUndo = t.why, append([]string{}, t.left...), append([]string{}, t.cannot...)
	if s.doing != nil && s.doing.plan == b.digest {
		v.Doing = s.doing.word
	}
	for _, k := range s.pol.keys {
		if !slices.ContainsFunc(v.Keys, func(n named) bool { return n.Key == k.String() }) {
			v.Keys = append(v.Keys, named{k.String(), s.pol.names[k.String()]})
		}
		v.MayApprove = v.MayApprove || k.String() == v.Key
	}
	return v, nil
}

// summed says how far an archive came: the journal first, then the policies, then people.
func (s *server) summed(b *brief, approvals []*gate.Approval, at map[string]transacted) summary {
	sum := b.summary
	switch t := at[b.digest]; {
	case t.status != "":
		sum.Status = t.status
	case s.stale(&b.plan) != "":
		sum.Status = statusStale
	case len(b.refused) > 0 || slices.ContainsFunc(approvals, func(a *gate.Approval) bool { return a.Verdict == gate.Deny }):
		sum.Status = statusDenied
	case gate.Enough(b.plan.Approvals, approvals, s.pol.keys) == nil:
		sum.Status = statusApproved
	default:
		sum.Status = statusPending
	}
	return sum
}

// transacted is what the journal says of a plan.
type transacted struct {
	status string // "": nothing was begun, or all was undone
	why    string
	left   []string
	cannot []string // of the one plan that was asked for
}

// steps is what the journal says of all plans; there may be none yet. While a change is being done, the journal belongs to that.
func (s *server) steps(id string) (map[string]transacted, error) {
	if s.doing != nil {
		return s.doing.before, nil
	}
	all := map[string]transacted{}
	if _, err := os.Stat(s.journal); os.IsNotExist(err) {
		return all, nil
	}
	j, err := journal.Open(s.journal)
	if err != nil {
		return nil, journalError(err)
	}
	defer j.Close()
	for _, x := range j.Status() {
		t := transacted{status: statusOf(x.Step), why: x.Why, left: x.Left}
		if t.status == statusUnder && !x.Unfinished { // it was killed before it changed anything
			t.status = ""
		}
		if x.Tx == id && (t.status == statusCommitted || t.status == statusUnder) {
			if t.cannot, err = j.CannotUndo(id, &requests{}); err != nil {
				return nil, journalError(err)
			}
		}
		all[x.Tx] = t
	}
	return all, nil
}
