package schemas

import "fmt"

// LintReport is lint-report-v1: what packs say of an archive.
type LintReport struct {
	SchemaVersion string       `json:"schema_version"`
	GeneratedAt   string       `json:"generated_at,omitempty"`
	Archive       string       `json:"archive"` // as named on the command line, text form
	RunID         string       `json:"run_id"`
	Identity      string       `json:"identity"`
	Packs         []PackRef    `json:"packs"`
	FailOn        string       `json:"fail_on"`
	Passed        bool         `json:"passed"` // no finding of that severity or a higher one
	Findings      LintCounts   `json:"findings"`
	Results       []LintResult `json:"results"` // of all rules, in the order of the packs
	Completeness  Completeness `json:"completeness"`
	Closure       float64      `json:"closure_score"`
}

// LintCounts are the rules that do not hold, by severity.
type LintCounts struct {
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

// LintResult is what one rule says of an archive.
type LintResult struct {
	Rule          string        `json:"rule"` // NAME@VERSION:ID
	Severity      string        `json:"severity"`
	Outcome       string        `json:"outcome"`
	Message       string        `json:"message"`
	Fix           string        `json:"fix"`
	Why           string        `json:"why,omitempty"`           // of a rule that does not hold
	Evidence      []string      `json:"evidence,omitempty"`      // the first things found
	EvidenceCount int           `json:"evidence_count,omitzero"` // of all
	Needs         []string      `json:"needs,omitempty"`
	Missing       []string      `json:"missing,omitempty"` // of needs
	Mappings      []RuleMapping `json:"mappings,omitempty"`
}

// RuleMapping says which part of a framework a rule is about.
type RuleMapping struct {
	Framework string `json:"framework"`
	Ref       string `json:"ref"`
}

// Outcomes of rules. A rule that could not be decided does not hold: it is a finding of its severity.
const (
	RuleHolds     = "holds"
	RuleViolated  = "violated"
	RuleUndecided = "undecided"
)

// RuleOutcomes are all outcomes.
var RuleOutcomes = [...]string{RuleHolds, RuleViolated, RuleUndecided}

// MaxLintEvidence is how many things found a result has.
const MaxLintEvidence = 20

// ParseLintReport parses a report of runner-lint.
func ParseLintReport(b []byte) (*LintReport, error) {
	r := new(LintReport)
	err := decode(b, r)
	if err == nil && r.SchemaVersion != VersionLintReport {
		err = fmt.Errorf("schema_version is %.100q, expected %q", r.SchemaVersion, VersionLintReport)
	}
	if err == nil {
		err = oneOf("fail_on", r.FailOn, Severities[:]...)
	}
	for i := range r.Results {
		x := &r.Results[i]
		if err == nil {
			err = first(oneOf("severity", x.Severity, Severities[:]...), oneOf("outcome", x.Outcome, RuleOutcomes[:]...))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lint report: %w", err)
	}
	return r, nil
}
