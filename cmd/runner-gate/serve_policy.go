package main

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/gatepolicy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// loaded is what the files of the policies say.
type loaded struct {
	*policies
	from  string                   // digest of what was read
	keys  []*attestation.PublicKey // that may approve
	names map[string]string        // of keys, in the policy, by their fingerprint
	err   error
}

// fresh has the policies as their files are now. They are read again when a file has changed: a plan of the old ones is stale then, and
// nobody commits by a policy that is not there any more. What is being done goes on with those it began with.
func (s *server) fresh() *loaded {
	if s.doing != nil {
		return &s.pol
	}
	from, err := s.sources()
	if err == nil && s.pol.err == nil && from == s.pol.from {
		return &s.pol
	}
	if s.pol.policies != nil {
		s.pol.close()
	}
	if err != nil {
		s.pol = loaded{err: err}
		return &s.pol
	}
	s.pol = s.load(from)
	return &s.pol
}

// sources is a digest of all that the flags name.
func (s *server) sources() (string, error) {
	f := s.env.Flag
	var list []string
	for _, flag := range []string{"policy", "policy-wasm", "data"} {
		name := f.String(flag)
		if name == "" {
			continue
		}
		b, err := tool.ReadFile(name, maxWasm+1)
		if err != nil {
			return "", err
		}
		list = append(list, flag+schemas.DigestOf(b))
	}
	if line := f.String("policy-exec"); line != "" {
		x, err := gatepolicy.NewExec(line, nil)
		if err != nil {
			return "", err
		}
		list = append(list, x.Ref().Digest)
	}
	return strings.Join(list, " "), nil
}

// load reads the policies.
func (s *server) load(from string) (l loaded) {
	if from == "" {
		if from, l.err = s.sources(); l.err != nil {
			return l
		}
	}
	l.from, l.names = from, map[string]string{}
	if l.policies, l.err = readPolicies(s.ctx, s.env, true); l.err != nil {
		l.policies = nil
		return l
	}
	for _, k := range l.all.Keys() {
		l.names[k.String()] = k.Name
	}
	l.keys = append(l.policies.keys(), s.extra...)
	if len(l.keys) == 0 { // no policy names anybody: the one who serves may approve
		l.keys = append(l.keys, s.own)
	}
	return l
}

// stale says why a plan is not what the policies and the flags of this server give; "" if it is.
func (s *server) stale(p *gate.Plan) string {
	switch l := s.fresh(); {
	case l.err != nil:
		return "the policy cannot be read: " + l.err.Error()
	case !sameRefs(l.refs(), p.Policies):
		return "other policies decided about this plan than those that are in force now: a policy was edited"
	case p.AcceptPartial != s.partial:
		return fmt.Sprintf("the plan was made with accept_partial %v, and this server has %v", p.AcceptPartial, s.partial)
	}
	return ""
}
