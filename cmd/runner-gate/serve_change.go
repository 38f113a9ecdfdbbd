package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// doing is a commit or a revert that is being done.
type doing struct {
	word, plan string
	before     map[string]transacted // what the journal said when it began
}

func (d *doing) says() string { return "a " + d.word + " is being done: ask again when it is done" }

// seen is what a request names: the plan that the person saw.
type seen struct {
	Plan string `json:"plan"`
}

// matches reads an archive, of which the plan has to be the one that was seen.
func (s *server) matches(id, plan string) (*view, error) {
	v, err := s.view(id)
	switch {
	case err != nil:
		return nil, err
	case plan != v.Digest:
		return nil, because(gate.ErrStale.Error(), "the request is about another plan than the one that is here now: plan is to be its digest")
	}
	return v, nil
}

// approve signs a plan, for or against it, or takes what was signed elsewhere.
func (s *server) approve(w http.ResponseWriter, r *http.Request) (any, error) {
	var o struct {
		seen
		Verdict       string `json:"verdict"`
		Actor         string `json:"actor"`
		Comment       string `json:"comment"`
		PolicyVersion string `json:"policyVersion"`
		Approvals     string `json:"approvals"` // lines that runner-gate approve wrote, in place of a verdict
	}
	if err := asked(w, r, &o); err != nil {
		return nil, err
	}
	v, err := s.matches(r.PathValue("id"), o.Plan)
	switch {
	case err != nil:
		return nil, err
	case o.PolicyVersion != "" && o.PolicyVersion != v.Plan.Decision.PolicyVersion:
		return nil, because(gate.ErrStale.Error(), "the request is about another version of the policy than the plan")
	case v.Stale != "":
		return nil, because(gate.ErrStale.Error(), v.Stale)
	case v.Status != statusPending && v.Status != statusApproved && v.Status != statusDenied:
		return nil, because(codeStatus, "the archive is "+v.Status)
	case o.Approvals != "" && (o.Verdict != "" || o.Actor != "" || o.Comment != ""):
		return nil, because(codeBody, "approvals has all of an approval: the body has other keys, too")
	case o.Approvals != "":
		return s.takeApprovals(v, o.Approvals)
	case o.Verdict != gate.Approve && o.Verdict != gate.Deny:
		return nil, because(codeBody, "verdict is to be "+gate.Approve+" or "+gate.Deny)
	case !v.MayApprove:
		return nil, because(codeKey, "the key of this server, "+v.Key+", is not one that may approve")
	}
	if o.Actor == "" {
		o.Actor = s.env.Flag.String("actor")
	}
	var said bytes.Buffer
	line, err := signed(s.quiet(&said), v.Plan, v.Digest, s.key, o.Verdict == gate.Deny, signer{o.Actor, o.Comment})
	if err != nil {
		return nil, err
	}
	return s.addApprovals(v.ID, line)
}

// takeApprovals takes what people signed elsewhere, all of it or nothing.
func (s *server) takeApprovals(v *view, text string) (any, error) {
	list, err := attestation.Parse([]byte(text))
	if err != nil {
		return nil, &problem{code: codeBody, err: err}
	}
	var lines []byte
	now := time.Now()
	for _, e := range list {
		if _, err := gate.ReadApproval(e, v.Plan, v.Digest, s.fresh().keys, now); err != nil {
			return nil, err
		}
		line, err := e.Line(false)
		if err != nil {
			return nil, &problem{code: codeBody, err: err}
		}
		lines = append(lines, line...)
	}
	return s.addApprovals(v.ID, lines)
}

// addApprovals writes approvals behind those that are there.
func (s *server) addApprovals(id string, lines []byte) (any, error) {
	name := filepath.Join(s.place(id), fileApprovals)
	before, err := tool.ReadFile(name, attestation.MaxFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(before)+len(lines) >= attestation.MaxFile {
		return nil, because(codeTooLong, "there are too many approvals")
	}
	if err := tool.WriteFile(name, tool.Bytes(append(before, lines...))); err != nil {
		return nil, err
	}
	return s.view(id)
}

// change does a commit or a revert of the plan that the request names, one at a time. Others can look meanwhile.
func (s *server) change(w http.ResponseWriter, r *http.Request, word string, do func(*view) error) (any, error) {
	var o seen
	if err := asked(w, r, &o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != nil {
		return nil, because(codeBusy, s.doing.says())
	}
	v, err := s.matches(r.PathValue("id"), o.Plan)
	if err != nil {
		return nil, err
	}
	before, err := s.steps(v.Digest)
	if err != nil {
		return nil, err
	}
	t := before[v.Digest]
	t.status = statusUnder
	before[v.Digest] = t
	s.doing = &doing{word: word, plan: v.Digest, before: before}
	defer func() { s.doing = nil }()
	if err := s.unlocked(v, do); err != nil {
		return nil, err
	}
	s.doing = nil
	return s.view(v.ID)
}

// unlocked does something that takes long, while others look.
func (s *server) unlocked(v *view, do func(*view) error) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	return do(v)
}

// commit makes the changes of an archive. What is begun goes on when the browser goes away. One that is committed stays as it is.
func (s *server) commit(w http.ResponseWriter, r *http.Request) (any, error) {
	return s.change(w, r, wordCommit, func(v *view) error {
		switch {
		case v.Status == statusCommitted:
			return nil
		case v.Stale != "":
			return because(gate.ErrStale.Error(), v.Stale)
		}
		var said bytes.Buffer
		c := &change{archive: filepath.Join(s.place(v.ID), fileArchive), plan: v.Plan, digest: v.Digest, pol: s.pol.policies, keys: s.pol.keys, approvals: v.Approvals, to: s.to, journal: s.journal, sender: s.sender}
		_, err := c.commit(s.ctx, s.quiet(&said))
		return spoken(err, &said)
	})
}

// revert takes the changes back. It needs no policy.
func (s *server) revert(w http.ResponseWriter, r *http.Request) (any, error) {
	return s.change(w, r, wordRevert, func(v *view) error {
		if v.Status != statusCommitted && v.Status != statusUnder {
			return because(codeStatus, "the archive is "+v.Status+": there is nothing to take back")
		}
		var said bytes.Buffer
		_, err := takeBack(s.ctx, s.quiet(&said), s.journal, v.Digest, s.sender)
		return spoken(err, &said)
	})
}
