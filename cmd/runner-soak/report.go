package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Status of a run.
const (
	statusPass  = "pass"
	statusFail  = "fail"
	statusInfra = "infra_error"
)

// Kinds of infra_error.
const (
	kindSubprocess = "subprocess_failed"
	kindArchive    = "archive_invalid"
	kindLint       = "lint_failed"
	kindBudget     = "time_budget_exceeded"
	kindIO         = "io_error"
)

// Policy is what decides whether a run fails, and when the soak stops.
type Policy struct {
	FailOn      string `json:"pass_on_severity_at_or_above"`
	StopOnFirst bool   `json:"stop_on_first_failure"`
	MaxFailures int    `json:"max_failures,omitzero"`
}

// Limits are those within which an archive is read.
type Limits struct {
	Bundle   int64 `json:"max_bundle_bytes"`
	Decode   int64 `json:"max_decode_bytes"`
	Manifest int64 `json:"max_manifest_bytes"`
	Events   int64 `json:"max_events_bytes"`
	Count    int64 `json:"max_events"`
	Line     int64 `json:"max_line_bytes"`
	Path     int64 `json:"max_path_len"`
	Depth    int64 `json:"max_json_depth"`
}

// maxMemberName is the longest name that a USTAR header holds without a prefix.
const maxMemberName = 100

// readLimits are the limits of this release. Each line has at least one byte and its LF, so the
// size of a layer bounds the number of its events.
func readLimits() Limits {
	manifest, _ := schemas.FormOf(schemas.SchemaManifest)
	return Limits{Bundle: bundle.DefaultLimits.Total + 1, Decode: bundle.DefaultLimits.Total, Manifest: manifest.MaxBytes,
		Events: bundle.DefaultLimits.Member, Count: bundle.DefaultLimits.Member / 2, Line: archive.MaxLine, Path: maxMemberName, Depth: archive.MaxDepth}
}

// Shard is a part of a soak: the iterations Index, Index + Count, ….
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// has reports whether an iteration is one of the shard's.
func (s *Shard) has(index int) bool {
	return s == nil || (index-s.Index)%s.Count == 0
}

// Run is one run. Its order is that of the keys in the schema.
type Run struct {
	Index         int      `json:"index"`
	Status        string   `json:"status"`
	DurationMS    int64    `json:"duration_ms"`
	Seed          *uint64  `json:"seed,omitempty"`
	ViolatedRules []string `json:"violated_rules,omitempty"`
	Kind          string   `json:"infra_error_kind,omitempty"`
	Message       string   `json:"infra_error_message,omitempty"`
}

// PassK is the probability that K runs all pass.
type PassK struct {
	K         int      `json:"k"`
	Unbiased  *float64 `json:"unbiased,omitempty"`
	Posterior float64  `json:"posterior"`
}

// Estimators name how the numbers were computed.
type Estimators struct {
	Interval    string `json:"pass_rate_ci95"`
	Probability string `json:"pass_probability_estimate"`
	PassK       string `json:"pass_k"`
}

var estimators = Estimators{"wilson, z=" + z, "beta posterior, prior Beta(1,1)", "unbiased C(c,k)/C(n,k); posterior predictive, prior Beta(1,1)"}

// Results are what the runs add up to.
type Results struct {
	Runs         int            `json:"runs"`
	Passes       int            `json:"passes"`
	Failures     int            `json:"failures"`
	InfraErrors  int            `json:"infra_errors"`
	PassRate     float64        `json:"pass_rate"`
	PassAll      bool           `json:"pass_all"`
	FirstFailure *int           `json:"first_failure_at"`
	ByRule       map[string]int `json:"violations_by_rule,omitempty"`
	ByKind       map[string]int `json:"infra_errors_by_kind,omitempty"`
	Interval     *[2]float64    `json:"pass_rate_ci95,omitempty"`
	Probability  float64        `json:"pass_probability_estimate"`
	PassK        []PassK        `json:"pass_k"`
	StoppedEarly bool           `json:"stopped_early"`
	Estimators   Estimators     `json:"estimators"`
}

// Plan is what a soak is, before its first run. Two with the same plan are one soak.
type Plan struct {
	Suite      string            `json:"suite,omitempty"`
	Iterations int               `json:"iterations"`
	Seed       uint64            `json:"seed"`
	Budget     int64             `json:"time_budget_secs"`
	Limits     Limits            `json:"limits"`
	Packs      []schemas.PackRef `json:"packs"`
	Policy     Policy            `json:"decision_policy"`
	Shard      *Shard            `json:"shard,omitempty"`
}

// Report is soak-report-v1.
type Report struct {
	Version     string `json:"schema_version"`
	Mode        string `json:"mode"`
	GeneratedAt string `json:"generated_at,omitempty"`
	Plan
	Results Results `json:"results"`
	Runs    []Run   `json:"runs"`
}

// Surface is soak-surface-v1.
type Surface struct {
	Version     string `json:"schema_version"`
	GeneratedAt string `json:"generated_at,omitempty"`
	Plan
	Faults []FaultResult `json:"faults"`
}

// FaultResult is the soak under one fault.
type FaultResult struct {
	Name    string   `json:"name"`
	Wrapper []string `json:"wrapper"`
	Results Results  `json:"results"`
	Runs    []Run    `json:"runs"`
	Drift   Drift    `json:"drift"`
}

// Drift compares the capability surfaces of the runs that were judged.
type Drift struct {
	Runs         int          `json:"runs"`
	Values       int          `json:"values"`
	Changing     int          `json:"changing"`
	Cut          bool         `json:"cut"`
	Capabilities []Capability `json:"capabilities"`
}

// Capability is one value of a capability surface. Runs is nil if all have it.
type Capability struct {
	Set   string `json:"set"`
	Value string `json:"value"`
	Runs  []int  `json:"runs,omitempty"`
}

const modeSoak = "soak"
