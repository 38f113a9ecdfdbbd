package main

import (
	"encoding/json"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/apply"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/gatepolicy"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// transaction is all that a plan does: the changes of files and the files that intents write at once, then the requests in their order.
func (c *change) transaction(r *recorded) (*journal.Transaction, error) {
	list, err := apply.Transitions(r.changes)
	if err != nil {
		return nil, tool.Fail(tool.ExitInput, err)
	}
	written := map[string][]byte{}
	tx := &journal.Transaction{ID: c.digest, Dir: c.to, Content: c.content(r, written)}
	for i, in := range r.intents {
		switch in.IntentType {
		case schemas.IntentFilesWrite:
			x, content, err := c.write(r, in, c.plan.Intents[i].Before)
			if err != nil {
				return nil, tool.Fail(tool.ExitInput, fmt.Errorf("intent %d: %w", in.Seq, err))
			}
			written[x.To.SHA256] = content
			list = append(list, x)
		case schemas.IntentHTTPRequest:
			e, err := c.request(in)
			if err != nil {
				return nil, tool.Fail(tool.ExitInput, fmt.Errorf("intent %d: %w", in.Seq, err))
			}
			tx.Effects = append(tx.Effects, e)
		default: // a plan with one is refused
			return nil, tool.Failf(tool.ExitInput, "intent %d: nothing here knows how to do %s", in.Seq, in.IntentType)
		}
	}
	tx.Transitions = list
	return tx, nil
}

// write is an intent to write a file.
func (c *change) write(r *recorded, in *schemas.Intent, before string) (x journal.Transition, content []byte, err error) {
	w, err := in.FileWrite()
	if err != nil {
		return x, nil, err
	}
	path, err := schemas.Untext(w.Path)
	if err != nil {
		return x, nil, err
	}
	x = journal.Transition{Path: string(path), To: &journal.State{Kind: tree.File, Mode: w.Mode, UID: -1, GID: -1, Size: uint64(len(w.Content)), SHA256: schemas.DigestOf(w.Content)}}
	switch before {
	case beforeAbsent:
	case beforeUnknown:
		x.From = journal.Unknown
	default:
		if x.From, err = apply.State(r.base[w.Path]); err == nil && x.From == nil {
			err = fmt.Errorf("the base has no %s", w.Path)
		}
	}
	return x, w.Content, err
}

// order is all that is needed to make a request. It is kept in the journal, and has no secrets.
type order struct {
	Method  string           `json:"method"`
	URL     string           `json:"url"`
	Headers []schemas.Header `json:"headers"`
	Body    []byte           `json:"body"` // null: none
	Key     string           `json:"idempotency_key"`
}

// request is an intent to make a request.
func (c *change) request(in *schemas.Intent) (journal.Effect, error) {
	q, err := in.HTTPRequest()
	if err != nil {
		return journal.Effect{}, err
	}
	o := order{Method: q.Method, URL: q.URL, Headers: q.Headers, Body: q.Body, Key: in.IdempotencyKey}
	b, err := json.Marshal(&o)
	return journal.Effect{Key: effectKey(in.Seq), Data: b}, err
}

// effectKey is the name of an intent in the journal, and in the plan.
func effectKey(seq uint64) string { return fmt.Sprintf("intent-%d", seq) }

// driver makes the requests of the plan, and knows how to take them back.
func (c *change) driver() (*requests, error) {
	d := &requests{sender: c.sender, back: map[string]*gatepolicy.Rollback{}}
	for i := range c.plan.Intents {
		in := &c.plan.Intents[i]
		if in.Rollback.Rule == "" {
			continue
		}
		if c.pol.none() {
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("%s can be taken back by rule %s of the policy, which is not given", in.ID, in.Rollback.Rule), "runner-gate commit … --policy gate.yaml")
		}
		b, found := c.pol.all.Rollback(in)
		if !found {
			return nil, tool.Failf(tool.ExitNo, "%w: no policy has the rule %s by which %s is taken back", gate.ErrStale, in.Rollback.Rule, in.ID)
		}
		d.back[in.ID] = b
	}
	return d, nil
}
