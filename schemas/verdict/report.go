// Package verdict has the report of runner-verify about an archive: the JSON document of
// --json, and the text for people. Other tools read the document with Parse and print it
// with the functions of this package, so that all tools use the same words.
package verdict

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// Report is what runner-verify --json prints: runner.verify_report.v0.
type Report struct {
	Schema    string `json:"schema"`
	Archive   string `json:"archive"`   // as named on the command line, text form
	Container string `json:"container"` // gzip, tar, or "" when neither
	RunID     string `json:"run_id"`
	Identity  string `json:"identity"` // "" unless the container was read to its end
	// Only of a valid archive with the layer times.
	IdentityWithoutTimes string            `json:"identity_without_times,omitempty"`
	Valid                bool              `json:"valid"`
	Met                  bool              `json:"met"` // valid, and every demand is met
	FindingCount         int               `json:"finding_count"`
	Findings             []archive.Finding `json:"findings"` // the first ones of each kind
	Demands              []Demand          `json:"demands"`
	Record               *Record           `json:"record"` // null when the documents could not be read
	Claims               []string          `json:"claims"` // empty unless valid
	NonClaims            []string          `json:"non_claims"`
	// Only with --explain, and of a valid record: the SHA-256 of the bytes that were read, compressed as they were.
	ArchiveDigest string `json:"archive_digest,omitempty"`
	// Only with --explain, and of a valid record.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// Parse parses a report.
func Parse(b []byte) (*Report, error) {
	r := new(Report)
	err := schemas.Unmarshal(b, r)
	if err == nil && r.Schema != schemas.SchemaVerifyReport {
		err = fmt.Errorf("schema is %.100q, expected %q", r.Schema, schemas.SchemaVerifyReport)
	}
	if err == nil && r.Valid && r.Record == nil {
		err = fmt.Errorf("record is null in the report of a valid archive")
	}
	if err != nil {
		return nil, fmt.Errorf("verify report: %w", err)
	}
	return r, nil
}

// Demand is one --require or --assert.
type Demand struct {
	Demand string `json:"demand"`
	Met    bool   `json:"met"`
}

// Record is what the archive says about the run.
type Record struct {
	Origin            string            `json:"origin"` // one of schemas.Origins
	Platform          string            `json:"platform"`
	KernelLayer       string            `json:"kernel_layer"`
	RingbufDrops      uint64            `json:"ringbuf_drops"`
	CgroupCorrelation string            `json:"cgroup_correlation"`
	PolicyLayer       string            `json:"policy_layer"`
	SDKLayer          string            `json:"sdk_layer"`
	NetworkCoverage   string            `json:"network_protocol_coverage"`
	EndpointScope     string            `json:"network_endpoint_claim_scope"`
	Correlation       string            `json:"correlation"`
	Command           []string          `json:"command"`
	ExitCode          *int              `json:"exit_code"`
	Signal            *int              `json:"signal"`
	Success           bool              `json:"success"`
	KernelEvents      uint64            `json:"kernel_events"`
	PolicyEvents      uint64            `json:"policy_events"`
	SDKEvents         uint64            `json:"sdk_events"`
	Surface           map[string]uint64 `json:"surface"` // set → number of values
	Notes             []string          `json:"notes"`
	// ToolPolicy is the digest of the policy file by which all decisions were made, where that is known.
	ToolPolicy string `json:"tool_policy,omitempty"`
}

// MaxSurfaceValues is how many values of a set of the surface an explanation has.
const MaxSurfaceValues = 20

// MaxListBytes bounds the values of a set of the surface, or of what was refused, that an explanation has:
// one value may be as long as a line. The list ends before the first value that has no room.
const MaxListBytes = 256 << 10

// ListRoom is what is left for a list of an explanation.
type ListRoom struct {
	values, bytes int
	full          bool
}

// Take reports whether there is room for one more value, of at most so many values.
func (r *ListRoom) Take(value, most int) bool {
	if r.full = r.full || r.values == most || r.bytes+value > MaxListBytes; r.full {
		return false
	}
	r.values, r.bytes = r.values+1, r.bytes+value
	return true
}

// Explanation is what --explain adds: the tool calls, what each layer says, and the
// surface.
type Explanation struct {
	AllowedClaim   string   `json:"allowed_claim,omitempty"` // absent when the policy decided no call
	ForbiddenClaim string   `json:"forbidden_claim"`
	Calls          []Call   `json:"calls"`           // decisions in order, then what only the SDK reported
	Ambiguities    []string `json:"ambiguities"`     // that are about no call
	Notes          []string `json:"notes,omitempty"` // the same, of what leaves the report clean
	// KernelClasses is absent where the classes of kernel events are not known.
	KernelClasses *KernelClasses `json:"kernel_classes,omitempty"`
	// Surface has the first values of each set, at most MaxSurfaceValues. Record.Surface
	// has the number of all.
	Surface map[string][]string `json:"surface,omitempty"`
	// Refusals are what the rules for the whole run refused. Only kinds that refused something.
	Refusals []Refusals `json:"refusals,omitempty"`
}

// MaxRefused is how many refused things of one kind of rules an explanation names.
const MaxRefused = 20

// Refusals are what the rules of one kind refused, as the kernel lines say.
type Refusals struct {
	Rules string    `json:"rules"` // network rules, file rules
	Lines uint64    `json:"lines"`
	First []Refused `json:"first"` // each thing once, at most MaxRefused
}

// Refused is one thing that a rule refused.
type Refused struct {
	Value string  `json:"value"`
	Rule  *uint32 `json:"rule,omitempty"` // its number, 0 for the default; absent where the lines have none
	// RuleID is the rule's id in the policy file; absent for the default, and in archives of before.
	RuleID string `json:"rule_id,omitempty"`
	Lines  uint64 `json:"lines"`
}

// Same reports whether both are about one thing and one rule.
func (r *Refused) Same(o *Refused) bool {
	return r.Value == o.Value && (r.Rule == nil) == (o.Rule == nil) && (r.Rule == nil || *r.Rule == *o.Rule)
}

// KernelClasses says how many kernel events are of which class.
type KernelClasses struct {
	Call  uint64 `json:"call"`  // in windows of calls
	Setup uint64 `json:"setup"` // before a tool server's first call, or of a proxy
	Idle  uint64 `json:"idle"`  // of tool servers between calls
	Agent uint64 `json:"agent"` // of all other processes
	// Request counts those of tool servers during requests that are no tool calls.
	Request uint64 `json:"request,omitzero"`
}

// Call is one tool call in the three layers.
type Call struct {
	ToolCallID string      `json:"tool_call_id"`
	SDK        *CallSDK    `json:"sdk"`    // null when the SDK did not mention it
	Policy     *CallPolicy `json:"policy"` // null when the policy did not see it
	Kernel     *CallKernel `json:"kernel"` // null without a decision or a kernel layer
	// Window is the window of a decision's call when there is no kernel layer.
	Window      *schemas.Window `json:"window,omitempty"`
	Ambiguities []string        `json:"ambiguities"`
	Notes       []string        `json:"notes,omitempty"`
	// Join says how the call was found in the SDK layer, where not by its id, and SDKCallID is its id there.
	Join      string `json:"join,omitempty"`
	SDKCallID string `json:"sdk_tool_call_id,omitempty"`
}

// CallSDK is what the SDK reported about itself.
type CallSDK struct {
	Tool      string `json:"tool"`
	Started   uint32 `json:"started"`
	Completed uint32 `json:"completed"`
}

// CallPolicy is what the policy decided.
type CallPolicy struct {
	Tool       string `json:"tool"`
	Decision   string `json:"decision"`
	ReasonCode string `json:"reason_code,omitempty"`
	RuleID     string `json:"rule_id,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	IDSource   string `json:"tool_call_id_source,omitempty"`
	Attempt    uint64 `json:"attempt"`
	WouldDeny  string `json:"would_deny,omitempty"` // why the policy denies a call that was only audited
	// Targets are what the call named, and TargetsCut says that it named more.
	Targets    []string `json:"targets,omitempty"`
	TargetsCut bool     `json:"targets_cut,omitzero"`
}

// CallKernel is what the kernel layer shows for the call's window.
type CallKernel struct {
	Window  schemas.Window `json:"window"`
	Scope   string         `json:"scope,omitempty"`
	Events  uint64         `json:"events"`
	Effects []string       `json:"effects"`
	Cut     bool           `json:"effects_cut"`
}
