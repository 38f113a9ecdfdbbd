// Package gate has the documents of runner-gate: the plan of what a recorded run would change, the decision of a policy about
// it, and the approval of a person.
package gate

import (
	"encoding/json"
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// SchemaPlan is the schema of a plan.
const SchemaPlan = "runner.gate_plan.v0"

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
	PolicyYAML = "yaml"
	PolicyWasm = "wasm"
	PolicyExec = "exec"
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
	Text string `json:"text"` // unified, lines in text form, without the two lines of names
	Cut  bool   `json:"cut"`  // there is more than the bound allows
}

// Intent is what the run asks to have done outside.
type Intent struct {
	Index          int             `json:"index"`
	ID             string          `json:"id"` // "intent-" and its seq
	Type           string          `json:"type"`
	Payload        json.RawMessage `json:"payload"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Labels         []string        `json:"labels"`
	Amount         *uint64         `json:"amount,omitempty"` // as in the layer; nil: none
	Before         string          `json:"before,omitempty"` // of files.write: what is at the path by the evidence: "absent", "unknown", or a digest
	Rollback       Rollback        `json:"rollback"`
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
