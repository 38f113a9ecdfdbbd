package schemas

import (
	"fmt"
	"slices"
)

// Versions of the reports of runner-lint, as their schema_version has them.
const (
	VersionLintReport = "lint-report-v1"
	VersionClosure    = "closure-v1"
)

// What an archive has of a signal. The last two are both "unknown" in a list of signals.
const (
	SignalCaptured = "captured"
	SignalRedacted = "redacted" // taken out, with a digest of what it was
	SignalMissing  = "missing"  // it is known not to be there
	SignalUnknown  = "unknown"  // it cannot be told, or not all of it is there
)

// SignalStates are all of them.
var SignalStates = [...]string{SignalCaptured, SignalRedacted, SignalMissing, SignalUnknown}

// MethodWeighted is the method of the closure score: the weights of the signals that are captured,
// divided by the weights of all.
const MethodWeighted = "weighted_ratio_v1"

// Confidences in a closure report, from the least on.
const (
	ConfidenceLow    = "low"
	ConfidenceMedium = "medium"
	ConfidenceHigh   = "high"
)

// Confidences are all of them.
var Confidences = [...]string{ConfidenceLow, ConfidenceMedium, ConfidenceHigh}

// Closure is closure-v1: what an archive has of what packs require, and of what a replay needs.
type Closure struct {
	SchemaVersion string       `json:"schema_version"`
	GeneratedAt   string       `json:"generated_at,omitempty"`
	BundleDigest  string       `json:"bundle_digest"` // the archive's identity
	PackContext   []PackRef    `json:"pack_context"`
	Completeness  Completeness `json:"completeness"`
	Closure       ClosureScore `json:"closure"`
}

// Completeness is what an archive has of the signals that packs require. Lists are sorted.
type Completeness struct {
	Required []string                `json:"required"`
	Captured []string                `json:"captured"`
	Redacted []string                `json:"redacted"`
	Unknown  []string                `json:"unknown"` // missing ones too
	BySignal map[string]SignalDetail `json:"by_signal"`
}

// SignalDetail is what an archive has of one signal.
type SignalDetail struct {
	Status        string      `json:"status"`
	Reason        string      `json:"reason,omitempty"`
	EvidencePaths []string    `json:"evidence_paths,omitempty"`
	Commitment    *Commitment `json:"commitment,omitempty"`
}

// Commitment is a digest of what was taken out.
type Commitment struct {
	Alg    string `json:"alg"`
	Digest string `json:"digest"`
}

// Algorithms of commitments. The second is over the digests of several parts, each followed by LF.
const (
	CommitmentHMAC  = "hmac-sha256"
	CommitmentHMACs = "sha256-of-hmac-sha256"
)

// ClosureScore says how much of what a replay needs is there.
type ClosureScore struct {
	Score        float64  `json:"score"`
	Confidence   string   `json:"confidence"`
	Captured     []string `json:"captured"`
	Missing      []string `json:"missing"`
	Dependencies []string `json:"uncontrolled_dependencies"`
	Scoring      Scoring  `json:"scoring"`
}

// Scoring is how the score was made.
type Scoring struct {
	Method  string            `json:"method"`
	Weights map[string]uint64 `json:"weights"`
}

// ParseClosure parses a closure report, and checks that its score follows from its lists.
func ParseClosure(b []byte) (*Closure, error) {
	c := new(Closure)
	err := decode(b, c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("closure report: %w", err)
	}
	return c, nil
}

func (c *Closure) check() error {
	if c.SchemaVersion != VersionClosure {
		return fmt.Errorf("schema_version is %.100q, expected %q", c.SchemaVersion, VersionClosure)
	}
	for i := range c.PackContext {
		if err := c.PackContext[i].Check(); err != nil {
			return fmt.Errorf("pack_context[%d]: %w", i, err)
		}
	}
	s := &c.Closure
	if err := first(oneOf("confidence", s.Confidence, Confidences[:]...), oneOf("method", s.Scoring.Method, MethodWeighted)); err != nil {
		return err
	}
	if want := WeightedRatio(s.Scoring.Weights, s.Captured); s.Score != want {
		return fmt.Errorf("score is %v, the captured signals give %v", s.Score, want)
	}
	for _, name := range slices.Concat(c.Completeness.Required, s.Captured, s.Missing) {
		if _, known := SignalOf(name); !known {
			return fmt.Errorf("%.100q is not a signal", name)
		}
	}
	return nil
}

// WeightedRatio is the score of weighted_ratio_v1, rounded down to four digits after the point: only all
// signals give 1.
func WeightedRatio(weights map[string]uint64, captured []string) float64 {
	sum, has := uint64(0), uint64(0)
	for name, w := range weights {
		if sum += w; slices.Contains(captured, name) {
			has += w
		}
	}
	if sum == 0 {
		return 0
	}
	return float64(has*10000/sum) / 10000
}
