// Package gatepolicy reads policies of runner-gate and decides plans with them (schemas/GATE.md, "Policies"): policy files,
// policies in WebAssembly, and commands. A decision follows from its input alone, and what cannot be decided is denied.
package gatepolicy

import (
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Policy is a checked policy file.
type Policy struct {
	digest    string // of the file
	version   string
	byDefault action
	threshold int
	keys      []Key
	rules     []rule
	require   []requirement
	rollbacks []rollbackRule

	asking sync.Mutex // its programs answer one question at a time
}

// Key is a key of a person who may approve.
type Key struct {
	Name string
	*attestation.PublicKey
}

// action is what becomes of an item.
type action string

const (
	actAllow   action = schemas.DecisionAllow
	actDeny    action = schemas.DecisionDeny
	actApprove action = schemas.GateApprove
)

// Open reads and checks a policy file. Its error has an exit code: 3 for a file that is not valid, whose message lists all
// problems, 5 for one that cannot be read.
func Open(file string) (*Policy, error) {
	b, err := tool.ReadFile(file, strict.MaxFile+1)
	if err != nil {
		return nil, err
	}
	p, err := Parse(file, b)
	if err != nil {
		return nil, tool.Fail(tool.ExitInput, err)
	}
	return p, nil
}

// Parse checks a policy file; name is its name in problems. The error is *strict.Problems.
func Parse(name string, b []byte) (*Policy, error) {
	r := &reader{Reader: strict.Reader{File: name, What: "a gate policy", First: "schema: " + schemas.SchemaGatePolicy, Meant: meant}, ids: map[string]int{}}
	p := r.policy(b)
	if bad := r.Problems(); bad != nil {
		return nil, bad
	}
	p.digest = schemas.DigestOf(b)
	if p.version == "" {
		p.version = versionOf(p.digest)
	}
	return p, nil
}

// versionOf is the version of a policy that says none.
func versionOf(digest string) string {
	const prefix, digits = len("sha256:"), 12
	return digest[prefix : prefix+digits]
}

// Keys are those of the people who may approve, sorted by name.
func (p *Policy) Keys() []Key { return p.keys }

// Ref names the policy.
func (p *Policy) Ref() gate.PolicyRef { return gate.PolicyRef{Kind: gate.PolicyYAML, Digest: p.digest} }

// Close ends the processes of the policy's programs. A later decision starts them again.
func (p *Policy) Close() error {
	p.asking.Lock()
	defer p.asking.Unlock()
	for i := range p.rules {
		p.rules[i].when.close()
	}
	for i := range p.require {
		p.require[i].that.close()
	}
	return nil
}

// requirementOf is the requirement of a rule: so many of these keys, or as many as the policy asks for in general.
func (p *Policy) requirementOf(why string, count int, keys []string) gate.Requirement {
	if count == 0 {
		count = p.threshold
	}
	if keys == nil {
		keys = p.fingerprints()
	}
	return gate.Requirement{Why: why, Count: count, Keys: keys}
}

// fingerprints are those of all keys, sorted.
func (p *Policy) fingerprints() []string {
	list := []string{}
	for _, k := range p.keys {
		list = append(list, k.String())
	}
	return set(list)
}
