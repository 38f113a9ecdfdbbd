package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/schemas"
)

// ApprovalType is the predicate of an approval.
const ApprovalType = "https://github.com/runner-evidence/runner/attestation/gate-approval/v0.1"

// Verdicts of an approval.
const (
	Approve = schemas.GateVerdictApprove
	Deny    = schemas.GateVerdictDeny
)

// maxEarly is how far in the future an approval may have been made: clocks of two machines differ.
const maxEarly = 5 * time.Minute

// Approval is what a person signs about a plan. It names the plan, the archive and the policies by their digests.
type Approval struct {
	Schema   string      `json:"schema"`
	RunID    string      `json:"run_id"`
	Archive  string      `json:"archive"`
	Plan     string      `json:"plan"` // digest of the file
	Policies []PolicyRef `json:"policies"`
	Verdict  string      `json:"verdict"`
	Accepted []string    `json:"accepted"` // doubts about the evidence that are accepted, all of the plan
	Key      string      `json:"key"`      // fingerprint of the key that signs
	Actor    string      `json:"actor"`    // who signs, as they say; only the key is proved
	Comment  string      `json:"comment"`
	Made     string      `json:"made"`    // RFC 3339, UTC
	Expires  string      `json:"expires"` // RFC 3339, UTC
}

// NewApproval is the approval of a plan.
func NewApproval(p *Plan, digest, verdict string, key *attestation.PublicKey, made, expires time.Time) *Approval {
	a := &Approval{Schema: schemas.SchemaGateApproval, RunID: p.RunID, Archive: p.Archive, Plan: digest, Policies: p.Policies, Verdict: verdict, Accepted: []string{}, Key: key.String(),
		Made: made.UTC().Format(time.RFC3339), Expires: expires.UTC().Format(time.RFC3339)}
	if p.AcceptPartial {
		a.Accepted = p.Evidence.Doubts
	}
	return a
}

// Sign makes the envelope of an approval.
func (a *Approval) Sign(k *attestation.PrivateKey) (*attestation.Envelope, error) {
	body, err := schemas.Marshal(a)
	if err != nil {
		return nil, err
	}
	bare := func(d string) map[string]string { return map[string]string{"sha256": strings.TrimPrefix(d, "sha256:")} }
	s := attestation.Statement{Type: attestation.StatementType, PredicateType: ApprovalType, Predicate: body,
		Subject: []attestation.Subject{{Name: "plan.json", Digest: bare(a.Plan)}, {Name: a.RunID + ".tar", Digest: bare(a.Archive)}}}
	b, err := schemas.Marshal(&s)
	if err != nil {
		return nil, err
	}
	e := attestation.Seal(b)
	return e, e.Sign(k)
}

// Errors of approvals, each with its stable code.
var (
	ErrMissing = errors.New("gate_approval_missing")
	ErrStale   = errors.New("gate_approval_stale")
	ErrDenied  = errors.New("gate_denied")
	// ErrConflict is the directory that is no more as the plan has it.
	ErrConflict = errors.New("gate_conflict")
)

// ReadApproval reads an envelope that one of the keys signed, and checks that it is about this plan, and in force. The error is ErrStale
// for one that is about something else, or not in force, or signed by nobody who counts.
func ReadApproval(e *attestation.Envelope, p *Plan, digest string, keys []*attestation.PublicKey, now time.Time) (*Approval, error) {
	s, err := attestation.ParseStatement(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStale, err)
	}
	if s.PredicateType != ApprovalType {
		return nil, fmt.Errorf("%w: predicateType is %.200q, expected %s", ErrStale, s.PredicateType, ApprovalType)
	}
	a := new(Approval)
	if err := schemas.Unmarshal(s.Predicate, a); err != nil {
		return nil, fmt.Errorf("%w: predicate: %w", ErrStale, err)
	}
	if a.Schema != schemas.SchemaGateApproval {
		return nil, fmt.Errorf("%w: schema is %.100q, expected %s", ErrStale, a.Schema, schemas.SchemaGateApproval)
	}
	signed := slices.ContainsFunc(e.Signers(keys), func(k *attestation.PublicKey) bool { return k.String() == a.Key })
	if !signed {
		return nil, fmt.Errorf("%w: it says that %.200s signed it; no key with this fingerprint that counts did", ErrStale, a.Key)
	}
	return a, a.fits(p, digest, now)
}

// fits checks that an approval is about a plan, and in force.
func (a *Approval) fits(p *Plan, digest string, now time.Time) error {
	stale := func(format string, args ...any) error {
		return fmt.Errorf("%w: the approval of %.200s %s", ErrStale, a.Key, fmt.Sprintf(format, args...))
	}
	accepted := []string{}
	if p.AcceptPartial {
		accepted = p.Evidence.Doubts
	}
	switch {
	case a.Archive != p.Archive || a.RunID != p.RunID:
		return stale("is about the archive %.100s, this one is %s", a.Archive, p.Archive)
	case !slices.Equal(a.Policies, p.Policies):
		return stale("is about other policies than those that decided: was a policy edited?")
	case a.Plan != digest:
		return stale("is about the plan %.100s, this one is %s", a.Plan, digest)
	case !slices.Equal(a.Accepted, accepted):
		return stale("does not accept the doubts that the plan accepts")
	case a.Verdict != Approve && a.Verdict != Deny:
		return stale("has the verdict %.100q, expected %s or %s", a.Verdict, Approve, Deny)
	}
	made, err := time.Parse(time.RFC3339, a.Made)
	expires, err2 := time.Parse(time.RFC3339, a.Expires)
	switch {
	case err != nil || err2 != nil:
		return stale("has no times: made %.100q, expires %.100q", a.Made, a.Expires)
	case made.After(now.Add(maxEarly)):
		return stale("was made in the future, %s", a.Made)
	case !now.Before(expires):
		return stale("has expired, %s", a.Expires)
	}
	return nil
}

// Enough checks that the approvals are what a plan demands. Each key counts once, and who denies stops everything. A requirement that
// names no keys counts those in all.
func Enough(required []Requirement, approvals []*Approval, all []*attestation.PublicKey) error {
	said := map[string]string{}
	for _, a := range approvals {
		if a.Verdict == Deny {
			return fmt.Errorf("%w: %s denies it", ErrDenied, a.who())
		}
		said[a.Key] = a.Verdict
	}
	for _, r := range required {
		keys := r.Keys
		if len(keys) == 0 {
			for _, k := range all {
				keys = append(keys, k.String())
			}
		}
		n := 0
		for _, k := range slices.Compact(slices.Sorted(slices.Values(keys))) {
			if said[k] == Approve {
				n++
			}
		}
		if n < r.Count {
			return fmt.Errorf("%w: %s demands %d of %d keys to approve, and %d did", ErrMissing, r.Why, r.Count, len(keys), n)
		}
	}
	return nil
}

func (a *Approval) who() string {
	s := a.Key
	if a.Actor != "" {
		s += fmt.Sprintf(" (who says to be %.200q)", a.Actor)
	}
	if a.Comment != "" {
		s += fmt.Sprintf(": %.500q", a.Comment)
	}
	return s
}
