// Package gate has the documents of runner-gate: the plan of what a recorded run would change, the decision of a policy about
// it, and the approval of a person.
package gate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas"
)

// Bounds of a plan.
const (
	MaxPlan  = 64 << 20 // bytes
	MaxItems = 1 << 20  // of one class
)

// Plan is what a commit of one archive would do. It follows from the archive, the policies and the flags of the call alone: the
// same ones give the same bytes, and commit makes it again to compare.
type Plan struct {
	Schema        string        `json:"schema"`
	RunID         string        `json:"run_id"`
	Archive       string        `json:"archive"`  // identity: "sha256:" and 64 hexadecimal digits, as all digests
	Policies      []PolicyRef   `json:"policies"` // that decided, in order
	AcceptPartial bool          `json:"accept_partial"`
	Evidence      Evidence      `json:"evidence"`
	Base          *Base         `json:"base,omitempty"` // of the workspace; absent if it was empty or there was none
	Files         []File        `json:"files"`
	Intents       []Intent      `json:"intents"`
	Network       []Exchange    `json:"network"`
	Calls         []Call        `json:"calls"`
	Blocked       []string      `json:"blocked"` // what cannot be committed, whatever is decided, sorted
	Decision      Decision      `json:"decision"`
	Approvals     []Requirement `json:"approvals"` // what the decision demands; empty if nobody has to approve
}

// Kinds of policies.
const (
	PolicyYAML = schemas.GateYAML
	PolicyWasm = schemas.GateWasm
	PolicyExec = schemas.GateExec
)

// PolicyRef names a policy by what it is, not by its version.
type PolicyRef struct {
	Kind   string `json:"kind"`
	Digest string `json:"digest"`         // of the file; of a command: of its program and its words
	Data   string `json:"data,omitempty"` // digest of the data of a wasm policy
}

// Evidence is how well the run was observed, and how it ended.
type Evidence struct {
	Complete    bool     `json:"complete"` // nothing below is in doubt
	Doubts      []string `json:"doubts"`   // why not, in words that are the same each time
	Origin      string   `json:"origin"`
	KernelLayer string   `json:"kernel_layer"`
	Correlation string   `json:"correlation"`
	Command     []string `json:"command"`
	ExitCode    *int     `json:"exit_code"` // nil: killed by a signal, or not known
	Signal      *int     `json:"signal"`
}

// Base is what the workspace began with.
type Base struct {
	Digest string `json:"digest"`
	Listed bool   `json:"listed"` // the archive has its list
}

// File is a name of the workspace that differs at the end. Names and targets are in text form.
type File struct {
	Index  int                `json:"index"`
	Op     string             `json:"op"` // one of schemas.FileChanges
	Path   string             `json:"path"`
	Before *schemas.FileState `json:"before,omitempty"`
	After  *schemas.FileState `json:"after,omitempty"`
	Diff   *TextDiff          `json:"diff,omitempty"` // of a file whose content was text before and after, or is new
}

// TextDiff shows how a text changed.
type TextDiff struct {
	Text string `json:"text"` // unified, as the contents have it, without the two lines of names
	Cut  bool   `json:"cut"`  // there is more than the bound allows
}

// Intent is what the run asks to have done outside.
type Intent struct {
	Index          int            `json:"index"`
	ID             string         `json:"id"` // "intent-" and its seq
	Type           string         `json:"type"`
	Payload        jsontext.Value `json:"payload"`
	IdempotencyKey string         `json:"idempotency_key,omitempty"`
	Labels         []string       `json:"labels"`
	Amount         *uint64        `json:"amount,omitempty"`
	Before         string         `json:"before,omitempty"` // of files.write: what is at the path by the evidence: "absent", "unknown", or a digest
	Rollback       Rollback       `json:"rollback"`
}

// Rollback is how a commit of an intent can be undone.
type Rollback struct {
	Available    bool     `json:"available"`
	Rule         string   `json:"rule,omitempty"` // of the registry; "" for what the journal undoes by itself
	Method       string   `json:"method,omitempty"`
	PathTemplate string   `json:"path_template,omitempty"`
	RequiresID   bool     `json:"requires_id"`
	IDSources    []string `json:"id_sources"`
}

// Exchange is a request of the run, which happened already or was refused then.
type Exchange struct {
	Index    int    `json:"index"`
	Decision string `json:"decision"` // one of schemas.NetDecisions
	Rule     string `json:"rule,omitempty"`
	Scheme   string `json:"scheme"`
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
	Method   string `json:"method,omitempty"`
	Path     string `json:"path,omitempty"`
	URL      string `json:"url"`
	Sent     uint64 `json:"sent"` // bytes of the request's body
	Status   uint16 `json:"status,omitzero"`
	Failure  string `json:"failure,omitempty"`
}

// Call is a tool call of the run, as its policy decided it.
type Call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Tool     string `json:"tool"`
	Decision string `json:"decision"`
	Rule     string `json:"rule,omitempty"`
}

// Bytes is the plan's byte form: one line.
func (p *Plan) Bytes() ([]byte, error) {
	b, err := schemas.Marshal(p)
	if err == nil && len(b) >= MaxPlan {
		err = fmt.Errorf("the plan has %d bytes, at most %d", len(b), MaxPlan)
	}
	return append(b, '\n'), err
}

// ParsePlan reads a plan and the digest of its bytes. A plan has one byte form: another one is refused, so that whoever signs the
// digest signs what is shown.
func ParsePlan(b []byte) (*Plan, string, error) {
	p := new(Plan)
	if err := schemas.Unmarshal(bytes.TrimSuffix(b, []byte("\n")), p); err != nil {
		return nil, "", fmt.Errorf("not a plan: %w", err)
	}
	if p.Schema != schemas.SchemaGatePlan {
		return nil, "", fmt.Errorf("schema is %.100q, expected %q", p.Schema, schemas.SchemaGatePlan)
	}
	if err := p.check(); err != nil {
		return nil, "", err
	}
	own, err := p.Bytes()
	if err != nil {
		return nil, "", err
	}
	if !bytes.Equal(own, b) {
		return nil, "", errors.New("the plan is not in the form in which runner-gate writes it: it was changed or written again")
	}
	return p, schemas.DigestOf(b), nil
}

// check checks that there is a decision about each item, in order, and that nothing is missing that is always there.
func (p *Plan) check() error {
	d := &p.Decision
	for _, x := range []struct {
		what         string
		items, about int
	}{{"files", len(p.Files), len(d.Files)}, {"intents", len(p.Intents), len(d.Intents)}, {"network", len(p.Network), len(d.Network)}, {"calls", len(p.Calls), len(d.Calls)}} {
		if x.items != x.about || x.items > MaxItems {
			return fmt.Errorf("%d %s and %d decisions about them, expected one for each, of at most %d", x.items, x.what, x.about, MaxItems)
		}
	}
	for i := range p.Files {
		f := &p.Files[i]
		if f.Index != i || d.Files[i].Index != i || f.Before == nil && f.After == nil {
			return fmt.Errorf("files[%d] is not in its place, or has no state", i)
		}
	}
	for i := range p.Intents {
		if p.Intents[i].Index != i || d.Intents[i].Index != i || p.Intents[i].Payload.Kind() != '{' {
			return fmt.Errorf("intents[%d] is not in its place, or its payload is no object", i)
		}
	}
	for i := range p.Network {
		if p.Network[i].Index != i || d.Network[i].Index != i {
			return fmt.Errorf("network[%d] is not in its place", i)
		}
	}
	for i := range p.Calls {
		if p.Calls[i].Index != i || d.Calls[i].Index != i {
			return fmt.Errorf("calls[%d] is not in its place", i)
		}
	}
	for _, r := range p.Approvals {
		if r.Count < 1 {
			return fmt.Errorf("approvals: %.100q demands %d people", r.Why, r.Count)
		}
	}
	return nil
}

// Refused says why a plan cannot be committed, whoever approves it; nothing if it can.
func (p *Plan) Refused() []string {
	list := append([]string{}, p.Blocked...)
	if !p.Evidence.Complete && !p.AcceptPartial {
		list = append(list, "the evidence is in doubt: "+strings.Join(p.Evidence.Doubts, ", "))
	}
	d := &p.Decision
	denied := func(x ItemDecision) bool { return !x.Allowed }
	item := slices.ContainsFunc(d.Files, denied) || slices.ContainsFunc(d.Intents, denied) || slices.ContainsFunc(d.Calls, denied) ||
		slices.ContainsFunc(d.Network, func(x NetworkDecision) bool { return !x.Allowed })
	if d.Bundle.Allowed && !item {
		return list
	}
	if len(d.Bundle.Reasons) == 0 {
		return append(list, "the policies deny it")
	}
	return append(list, d.Bundle.Reasons...)
}
