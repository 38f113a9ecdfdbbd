package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/runner-evidence/runner/cmd/internal/gatepolicy"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/schemas"
)

// requests does the requests of a transaction.
type requests struct {
	*sender
	back map[string]*gatepolicy.Rollback // by the key of an effect: how the policy says to take it back
}

// receipt is what a server said to a request.
type receipt struct {
	Status         int    `json:"status"`
	Attempts       int    `json:"attempts"`
	IdempotencyKey string `json:"idempotency_key"`
	Bytes          int    `json:"bytes"` // of the answer
	SHA256         string `json:"sha256"`
	Undo           *undo  `json:"undo,omitempty"`    // how it is taken back; absent if no rule of the policy says it
	NoUndo         string `json:"no_undo,omitempty"` // why the rule of the policy does not say it
}

// undo is a request that takes another one back.
type undo struct {
	Rule    string              `json:"rule"`
	Method  string              `json:"method"`
	URL     string              `json:"url"`
	Headers []schemas.NetHeader `json:"headers"`
}

func readOrder(e journal.Effect) (*order, error) {
	o := new(order)
	if err := json.Unmarshal(e.Data, o); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Key, err)
	}
	return o, nil
}

// Do makes a request. An answer other than 2xx is an error, as is none at all.
func (d *requests) Do(ctx context.Context, e journal.Effect) (json.RawMessage, error) {
	o, err := readOrder(e)
	if err != nil {
		return nil, err
	}
	a, err := d.send(ctx, &message{method: o.Method, url: o.URL, key: o.Key, headers: o.Headers, body: o.Body})
	if err != nil {
		return nil, err
	}
	if a.status < 200 || a.status > 299 {
		more := ""
		if a.status >= 300 && a.status < 400 {
			more = ", and redirects are not followed"
		}
		return nil, fmt.Errorf("%s %s: it answered %d%s", o.Method, o.URL, a.status, more)
	}
	r := receipt{Status: a.status, Attempts: a.attempts, IdempotencyKey: o.Key, Bytes: len(a.body), SHA256: schemas.DigestOf(a.body)}
	if back := d.back[e.Key]; back != nil {
		if r.Undo, err = undoOf(back, a); err != nil {
			r.NoUndo = err.Error()
		}
	}
	return json.Marshal(&r)
}

// undoOf is the request that takes back what was answered so.
func undoOf(back *gatepolicy.Rollback, a *answer) (*undo, error) {
	id, err := back.IDFrom(a.header, a.body)
	if err != nil {
		return nil, err
	}
	u := &undo{Rule: back.Rule()}
	u.Method, u.URL, u.Headers, err = back.Request(id)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Undo takes a request back, as the registry of the policy said when it was made.
func (d *requests) Undo(ctx context.Context, e journal.Effect, b json.RawMessage) error {
	if why := d.CannotUndo(e, b); why != "" {
		return errors.New(why)
	}
	o, r, err := readBoth(e, b)
	if err != nil || r.Undo == nil { // it changed nothing
		return err
	}
	m := &message{method: r.Undo.Method, url: r.Undo.URL}
	if o.Key != "" {
		m.key = o.Key + ".undo"
	}
	for _, h := range r.Undo.Headers {
		m.headers = append(m.headers, schemas.Header(h))
	}
	a, err := d.send(ctx, m)
	switch {
	case err != nil:
		return err
	case a.status >= 200 && a.status <= 299, a.status == http.StatusNotFound, a.status == http.StatusGone:
		return nil // gone is gone
	}
	return fmt.Errorf("%s %s: it answered %d", m.method, m.url, a.status)
}

func readBoth(e journal.Effect, b json.RawMessage) (*order, *receipt, error) {
	o, err := readOrder(e)
	if err != nil {
		return nil, nil, err
	}
	r := new(receipt)
	if len(b) > 0 {
		if err := json.Unmarshal(b, r); err != nil {
			return nil, nil, fmt.Errorf("%s: its receipt: %w", e.Key, err)
		}
	}
	return o, r, nil
}

// CannotUndo says why a request cannot be taken back. One that changes nothing needs no way back.
func (d *requests) CannotUndo(e journal.Effect, b json.RawMessage) string {
	o, r, err := readBoth(e, b)
	switch {
	case err != nil:
		return err.Error()
	case o.Method == http.MethodGet || o.Method == http.MethodHead || r.Undo != nil:
		return ""
	case r.NoUndo != "":
		return fmt.Sprintf("%s %s: %s", o.Method, o.URL, r.NoUndo)
	case len(b) == 0:
		return fmt.Sprintf("%s %s: its answer is not known", o.Method, o.URL)
	}
	return fmt.Sprintf("%s %s: no rule of the policy says how to take it back", o.Method, o.URL)
}
