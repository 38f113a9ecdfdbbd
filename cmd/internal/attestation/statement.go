package attestation

import (
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Types of statements. The older one is read, not written.
const (
	StatementType    = "https://in-toto.io/Statement/v1"
	oldStatementType = "https://in-toto.io/Statement/v0.1"
)

// Predicates that a statement can have.
const (
	MeasuredRun  = "https://github.com/runner-evidence/runner/attestation/measured-run/v0.1"
	RuntimeTrace = "https://in-toto.io/attestation/runtime-trace/v0.1"
)

// Statement says something about subjects.
type Statement struct {
	Type          string         `json:"_type"`
	Subject       []Subject      `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     jsontext.Value `json:"predicate"`
}

// Subject is a file that a statement is about. It is found by its digest, never by its name.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Run is what statements say of an archive: what was read of it, after it was verified.
type Run struct {
	Name     string // of the archive's file, without its directory, in text form
	Bytes    string // digest of the file, "sha256:" and 64 hexadecimal digits; so are all digests here
	Identity string // digest of the tar
	Manifest string // digest of manifest.json
	Files    map[string]schemas.ManifestFile
	Packs    *schemas.ManifestPacks // nil without packs
	Signals  map[string]schemas.SignalDetail
	Closure  schemas.ClosureScore
	Health   *schemas.Health
	RunID    string
	Record   *verdict.Record
	Surface  map[string][]string // only for RuntimeTrace
}

// measuredRun is the predicate MeasuredRun.
type measuredRun struct {
	RunID       string            `json:"run_id"`
	Origin      string            `json:"origin"`
	Identity    string            `json:"identity"`
	Members     map[string]string `json:"members"` // name → digest, as the manifest says
	Health      *schemas.Health   `json:"observation_health"`
	Correlation string            `json:"correlation"`
	Success     bool              `json:"success"`
	ExitCode    *int              `json:"exit_code"`
	Signal      *int              `json:"signal"`
	Events      events            `json:"events"`
	Surface     map[string]uint64 `json:"surface"` // set → number of values
	Packs       []appliedPack     `json:"packs"`
	Signals     map[string]string `json:"signals"` // signal → status, of those that are not missing
	Closure     closed            `json:"closure"`
}

// appliedPack is a pack that the manifest names. Its digest stands for its rules and their mappings.
type appliedPack struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// closed is how much of what a replay needs is in the archive.
type closed struct {
	Score      float64 `json:"score"`
	Method     string  `json:"method"`
	Confidence string  `json:"confidence"`
	Digest     string  `json:"digest"` // of the value of "closure" in closure-v1, which has the reasons
}

// events are the numbers of lines.
type events struct {
	Kernel uint64 `json:"kernel"`
	Policy uint64 `json:"policy"`
	SDK    uint64 `json:"sdk"`
}

// New makes the statement with a predicate about a run.
func New(r *Run, predicateType string) (*Statement, error) {
	s := &Statement{Type: StatementType, PredicateType: predicateType, Subject: r.subjects()}
	var predicate any
	switch predicateType {
	case MeasuredRun:
		var err error
		if predicate, err = r.measured(); err != nil {
			return nil, err
		}
	case RuntimeTrace:
		predicate = r.trace()
	default:
		return nil, fmt.Errorf("predicate type %.200q is not known", predicateType)
	}
	b, err := schemas.Marshal(predicate)
	s.Predicate = b
	return s, err
}

// measured makes the predicate MeasuredRun.
func (r *Run) measured() (*measuredRun, error) {
	c := r.Record
	m := &measuredRun{RunID: r.RunID, Origin: c.Origin, Identity: r.Identity, Members: map[string]string{}, Health: r.Health,
		Correlation: c.Correlation, Success: c.Success, ExitCode: c.ExitCode, Signal: c.Signal,
		Events: events{c.KernelEvents, c.PolicyEvents, c.SDKEvents}, Surface: c.Surface, Packs: []appliedPack{}, Signals: map[string]string{}}
	for name, f := range r.Files {
		m.Members[name] = f.SHA256
	}
	if r.Packs != nil {
		for _, p := range r.Packs.Applied {
			m.Packs = append(m.Packs, appliedPack{p.Name, p.Version, p.Digest})
		}
	}
	for name, d := range r.Signals {
		if d.Status != schemas.SignalMissing {
			m.Signals[name] = d.Status
		}
	}
	b, err := schemas.Marshal(&r.Closure)
	m.Closure = closed{r.Closure.Score, r.Closure.Scoring.Method, r.Closure.Confidence, schemas.DigestOf(b)}
	return m, err
}

// subjects are the archive as it is, its tar and its manifest: who compresses the archive again
// still has the last two.
func (r *Run) subjects() []Subject {
	plain := strings.TrimSuffix(strings.TrimSuffix(r.Name, ".gz"), ".tgz")
	if plain != r.Name && !strings.HasSuffix(plain, ".tar") {
		plain += ".tar"
	}
	list := []Subject{subject(r.Name, r.Bytes)}
	if r.Identity != r.Bytes {
		list = append(list, subject(plain, r.Identity))
	}
	return append(list, subject(schemas.MemberManifest, r.Manifest))
}

func subject(name, digest string) Subject {
	return Subject{name, map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}
}

// ParseStatement reads what an envelope holds.
func ParseStatement(e *Envelope) (*Statement, error) {
	if e.PayloadType != PayloadType {
		return nil, fmt.Errorf("payloadType is %.100q, expected %q", e.PayloadType, PayloadType)
	}
	s := new(Statement)
	if err := schemas.UnmarshalOpen(e.body, s); err != nil {
		return nil, fmt.Errorf("the payload is not a statement: %w", err)
	}
	if s.Type != StatementType && s.Type != oldStatementType {
		return nil, fmt.Errorf("_type is %.100q, expected %q", s.Type, StatementType)
	}
	return s, nil
}

// Check compares a statement with the one that the archive itself gives. It returns why it is not
// about this archive, or what it says that the archive does not.
func (s *Statement) Check(r *Run) error {
	if s.PredicateType != MeasuredRun && s.PredicateType != RuntimeTrace {
		return fmt.Errorf("its predicate is %.200q, of which nothing can be compared with an archive; expected %s or %s", s.PredicateType, MeasuredRun, RuntimeTrace)
	}
	if len(s.Subject) == 0 {
		return fmt.Errorf("it has no subject")
	}
	is := map[string]bool{}
	for _, own := range r.subjects() {
		is[own.Digest["sha256"]] = true
	}
	about := false
	for _, sub := range s.Subject {
		about = about || is[strings.ToLower(sub.Digest["sha256"])]
	}
	if !about {
		return fmt.Errorf("it is about something else: no subject has the digest of this archive, of its tar or of its manifest")
	}
	own, err := New(r, s.PredicateType)
	if err != nil {
		return err
	}
	return same("predicate", s.Predicate, own.Predicate)
}
