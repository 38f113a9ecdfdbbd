package schemas

// Schema strings. Those that begin with "runner." are only in pipes. The others are in the
// archive and are defined by the v0 contract (README.md).
const (
	SchemaHeader       = "runner.stream_header.v0"
	SchemaTrailer      = "runner.stream_trailer.v0"
	SchemaRawEvent     = "runner.raw_event.v0"
	SchemaStageHealth  = "runner.stage_health.v0"
	SchemaSurfaceEntry = "runner.surface_entry.v0"
	SchemaControl      = "runner.control.v0"
	SchemaReady        = "runner.ready.v0"
	SchemaVerifyReport = "runner.verify_report.v0"
	SchemaAct          = "runner.act.v0"
	SchemaSuiteCase    = "runner.suite_case.v0"
	SchemaProcess      = "runner.process.v0"
	SchemaLogLine      = "runner.log_line.v0"
	SchemaBinding      = "runner.binding.v0"
	SchemaAmbiguity    = "runner.ambiguity.v0"
	SchemaPolicyFile   = "runner.policy.v0"
	SchemaNetworkRules = "runner.network_rules.v0"
	SchemaFileRules    = "runner.file_rules.v0"

	SchemaBaseEntry  = "runner.base_entry.v0"
	SchemaNetAllow   = "runner.net_allow.v0"
	SchemaGatePolicy = "runner.gate_policy.v0"
	SchemaGatePlan   = "runner.gate_plan.v0"
	SchemaGateResult = "runner.gate_result.v0"
	SchemaGateStatus = "runner.gate_status.v0"

	SchemaGateApproval = "runner.gate_approval.v0"
	SchemaGateJournal  = "runner.gate_journal.v0"

	SchemaEvent        = "assay.runner.event.v0"
	SchemaKernelEvent  = "assay.runner.kernel_event.v0"
	SchemaPolicyEvent  = "assay.runner.policy_event.v0"
	SchemaSDKEvent     = "assay.runner.sdk_event.v0"
	SchemaTime         = "assay.runner.time.v0"
	SchemaFiltered     = "assay.runner.filtered.v0"
	SchemaProcessEvent = "assay.runner.process_event.v0"
	SchemaIntent       = "assay.runner.intent.v0"
	SchemaFileChange   = "assay.runner.file_change.v0"
	SchemaNetExchange  = "assay.runner.network_exchange.v0"
	SchemaClock        = "assay.runner.clock.v0"
	SchemaClockTick    = "assay.runner.clock_tick.v0"
	SchemaNetName      = "assay.runner.dns_name.v0"
	SchemaBox          = "assay.runner.box.v0"
	SchemaNet          = "assay.runner.net.v0"
	SchemaRunEnv       = "assay.runner.env.v0"
	SchemaHealth       = "assay.runner.observation_health.v0"
	SchemaSurface      = "assay.runner.capability_surface.v0"
	SchemaReport       = "assay.runner.correlation_report.v0"
	SchemaManifest     = "assay.runner.archive_manifest.v0"
)

// Stream names, as headers and trailers have them.
const (
	StreamRaw        = "kernel.raw"
	StreamNormalized = "kernel.normalized"
	StreamJoined     = "run.joined"
	StreamPolicyLog  = "policy.log"
	StreamSDKLog     = "sdk.log"
	StreamIntentLog  = "intent.log"
	StreamBox        = "box"
	StreamNet        = "net"
	StreamClock      = "clock"
)

// Checksums of a stream (STREAMS.md, "Checksums"). A header names none for the first.
const (
	ChecksumSHA256 = "sha256"
	ChecksumCRC32C = "crc32c"
)

// Checksums are the words of --checksum, the default first.
var Checksums = [...]string{ChecksumSHA256, ChecksumCRC32C}

// Status is the seal of a stream: complete, or partial if the observation is known to have
// gaps.
type Status string

const (
	StatusComplete Status = "complete"
	StatusPartial  Status = "partial"
)

// Worst returns the worse of two statuses; anything but complete is partial.
func Worst(a, b Status) Status {
	if a == StatusComplete && b == StatusComplete {
		return StatusComplete
	}
	return StatusPartial
}

// Types of the two run events.
const (
	TypeRunStarted  = "run_started"
	TypeRunFinished = "run_finished"
)

// Types of SDK events.
const (
	SDKCallStarted   = "tool_call_started"
	SDKCallCompleted = "tool_call_completed"
	SDKRunFinished   = "run_finished"
	SDKRunFailed     = "run_failed"
)

// SDKEventTypes are all types of SDK events.
var SDKEventTypes = [...]string{SDKCallStarted, SDKCallCompleted, SDKRunFinished, SDKRunFailed}

// Operations of control lines.
const (
	ControlStarted  = "started"
	ControlFinished = "finished"
)

// RunStarted is line 0 of events.ndjson.
type RunStarted struct {
	Schema    string   `json:"schema"`
	RunID     string   `json:"run_id"`
	Seq       uint64   `json:"seq"`
	Type      string   `json:"type"`
	AgentShim string   `json:"agent_shim"`
	Command   []string `json:"command"`
	EnvKeys   []string `json:"env_keys"`
	ElapsedMS *uint64  `json:"window_elapsed_ms,omitempty"` // written only by other implementations
}

// RunFinished is line 1 of events.ndjson. ExitCode and Signal are both nil if the end of
// the command was not observed.
type RunFinished struct {
	Schema    string  `json:"schema"`
	RunID     string  `json:"run_id"`
	Seq       uint64  `json:"seq"`
	Type      string  `json:"type"`
	ExitCode  *int    `json:"exit_code"`
	Signal    *int    `json:"signal"`
	Success   bool    `json:"success"`
	ElapsedMS *uint64 `json:"window_elapsed_ms,omitempty"` // written only by other implementations
}

// Control is one line from runner-exec to runner-capture. Which keys a line has
// follows from Op.
type Control struct {
	Schema    string   `json:"schema"`
	Op        string   `json:"op"`
	Command   []string `json:"command,omitempty"`
	AgentShim string   `json:"agent_shim,omitempty"`
	EnvKeys   []string `json:"env_keys,omitempty"`
	// InheritedFDs is how many descriptors above 2 the command was started with.
	InheritedFDs uint64 `json:"inherited_fds,omitzero"`
	// Confined names what the command was started without.
	Confined []string `json:"confined,omitempty"`
	// Clock is when the command started, in a run with times.
	Clock    *RunClock `json:"clock,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Signal   *int      `json:"signal,omitempty"`
	// MonotonicNS is when the command had ended, in a run with times.
	MonotonicNS uint64 `json:"monotonic_ns,omitzero"`
}

type controlStarted struct {
	Schema       string    `json:"schema"`
	Op           string    `json:"op"`
	Command      []string  `json:"command"`
	AgentShim    string    `json:"agent_shim"`
	EnvKeys      []string  `json:"env_keys"`
	InheritedFDs uint64    `json:"inherited_fds"`
	Confined     []string  `json:"confined,omitempty"`
	Clock        *RunClock `json:"clock,omitempty"`
}

type controlFinished struct {
	Schema      string `json:"schema"`
	Op          string `json:"op"`
	ExitCode    *int   `json:"exit_code"`
	Signal      *int   `json:"signal"`
	MonotonicNS uint64 `json:"monotonic_ns,omitzero"`
}

// MarshalJSON writes exactly the keys of the operation, the null ones too.
func (c Control) MarshalJSON() ([]byte, error) {
	if c.Op == ControlFinished {
		return Marshal(controlFinished{c.Schema, c.Op, c.ExitCode, c.Signal, c.MonotonicNS})
	}
	return Marshal(controlStarted{c.Schema, c.Op, c.Command, c.AgentShim, c.EnvKeys, c.InheritedFDs, c.Confined, c.Clock})
}

// StageHealth is what one stage counted. Maps are written with sorted keys.
type StageHealth struct {
	Schema   string            `json:"schema"`
	RunID    string            `json:"run_id"`
	Stage    string            `json:"stage"`
	In       uint64            `json:"in"`
	Out      uint64            `json:"out"`
	Filtered map[string]uint64 `json:"filtered"`
	Counters map[string]uint64 `json:"counters"`
	Facts    map[string]string `json:"facts"`
	Notes    []string          `json:"notes"`
}

// Health is observation-health.json. The two network fields may be absent in
// archives of other implementations; only they write capture_origin and
// redaction.
type Health struct {
	Schema            string         `json:"schema"`
	RunID             string         `json:"run_id"`
	Platform          string         `json:"platform"`
	KernelLayer       string         `json:"kernel_layer"`
	CaptureOrigin     string         `json:"capture_origin,omitempty"`
	RingbufDrops      uint64         `json:"ringbuf_drops"`
	PolicyLayer       string         `json:"policy_layer"`
	SDKLayer          string         `json:"sdk_layer"`
	CgroupCorrelation string         `json:"cgroup_correlation"`
	NetworkCoverage   string         `json:"network_protocol_coverage,omitempty"`
	EndpointScope     string         `json:"network_endpoint_claim_scope,omitempty"`
	Redaction         map[string]any `json:"redaction,omitempty"`
	Notes             []string       `json:"notes"`
}

// SurfaceEntry is one member of one set of the capability surface, in transit.
type SurfaceEntry struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Set    string `json:"set"`
	Value  string `json:"value"`
}

// SurfaceSets are the surface's sets in document order.
var SurfaceSets = [...]string{
	"filesystem_paths", SignalNetwork, SignalProcessExecs, "mcp_tools", SignalPolicyDecisions,
}

// Window is a pair of phase markers on the runner's own clock, never timestamps.
type Window struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// Binding joins one policy decision to the kernel events of its window. The keys
// after Window are additions of this runner.
type Binding struct {
	ToolCallID       string   `json:"tool_call_id"`
	PolicyDecision   *string  `json:"policy_decision"`
	CgroupID         *uint64  `json:"cgroup_id,omitempty"` // written only by other implementations
	KernelEventCount uint64   `json:"kernel_event_count"`
	Window           Window   `json:"window"`
	KernelScope      string   `json:"kernel_scope,omitempty"`      // tool_server, run: whose lines were counted
	KernelEffects    []string `json:"kernel_effects,omitempty"`    // "verb value", sorted, unique
	EffectsCut       bool     `json:"kernel_effects_cut,omitzero"` // there were more
	// How the call was found in the SDK layer, if not by its id, and its id there.
	Join      string `json:"join,omitempty"` // argument_digest
	SDKCallID string `json:"sdk_tool_call_id,omitempty"`
}

// JoinDigest is the join of a call by its tool and the digest of its arguments. At most MaxSameArguments
// decisions may have a digest by which one of them is found.
const (
	JoinDigest       = "argument_digest"
	MaxSameArguments = 64
)

// BindingEntry is one binding of the report, in transit.
type BindingEntry struct {
	Schema  string  `json:"schema"`
	RunID   string  `json:"run_id"`
	Binding Binding `json:"binding"`
}

// AmbiguityEntry is one ambiguity or note of the report, in transit.
type AmbiguityEntry struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Code   string `json:"code"`
}

// Process is one process of the fork tree, in transit: its lines follow, then
// those of its descendants.
type Process struct {
	Schema    string `json:"schema"`
	RunID     string `json:"run_id"`
	PID       uint32 `json:"pid"`
	KernelPID uint32 `json:"kernel_pid"`
	Depth     uint32 `json:"depth"`
	StartNS   uint64 `json:"start_ns,omitzero"` // CLOCK_MONOTONIC; 0: the fork was not observed
	EndNS     uint64 `json:"end_ns,omitzero"`   // 0: the end was not observed

	// The number that the process has in its own pid namespace, and the inode number of that: both 0 in the initial one.
	NSPID uint32 `json:"ns_pid,omitzero"`
	PIDNS uint32 `json:"pid_ns,omitzero"`
}

// LogLine is one line that the measured command wrote to one of its logs.
type LogLine struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Seq    uint64 `json:"seq"`
	Line   string `json:"line"` // the bytes without LF, in text form (README.md, "Names as text")
	// ReceivedNS is CLOCK_MONOTONIC when runner-exec had read the line, in a run with times.
	ReceivedNS uint64 `json:"received_ns,omitzero"`
}

// Report is correlation-report.json.
type Report struct {
	Schema      string    `json:"schema"`
	RunID       string    `json:"run_id"`
	Status      string    `json:"status"`
	Bindings    []Binding `json:"bindings"`
	Ambiguities []string  `json:"ambiguities"`
	// Notes are codes that leave the report clean. Reports of before have none.
	Notes []string `json:"notes,omitempty"`
}

// Surface is capability-surface.json: byte-sorted sets without duplicates.
type Surface struct {
	Schema           string   `json:"schema"`
	RunID            string   `json:"run_id"`
	FilesystemPaths  []string `json:"filesystem_paths"`
	NetworkEndpoints []string `json:"network_endpoints"`
	ProcessExecs     []string `json:"process_execs"`
	MCPTools         []string `json:"mcp_tools"`
	PolicyDecisions  []string `json:"policy_decisions"`
}

// Sets are the surface's sets, indexed as SurfaceSets.
func (s *Surface) Sets() [len(SurfaceSets)][]string {
	return [...][]string{s.FilesystemPaths, s.NetworkEndpoints, s.ProcessExecs, s.MCPTools, s.PolicyDecisions}
}

// ManifestFile is one entry of the manifest.
type ManifestFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // "sha256:" and 64 hex digits, of the member's bytes
	Bytes  int64  `json:"bytes"`
}

// Manifest is manifest.json. It lists every member but itself.
type Manifest struct {
	Schema string                  `json:"schema"`
	RunID  string                  `json:"run_id"`
	Files  map[string]ManifestFile `json:"files"` // key: the path
	Packs  *ManifestPacks          `json:"x-assay,omitempty"`
}

// PolicyEvent is one line of layers/policy.ndjson: a decision about a tool call.
type PolicyEvent struct {
	Schema          string `json:"schema"`
	RunID           string `json:"run_id"`
	Seq             uint64 `json:"seq"`
	SourceEventType string `json:"source_event_type"` // assay.tool.decision
	Source          string `json:"source"`
	ToolCallID      string `json:"tool_call_id"`
	Tool            string `json:"tool"`
	Decision        string `json:"decision"`

	// Additions of runner-policy to the v0 contract.
	ToolCallIDSource string `json:"tool_call_id_source,omitempty"`
	Outcome          string `json:"outcome,omitempty"`
	ReasonCode       string `json:"reason_code,omitempty"`
	RuleID           string `json:"rule_id,omitempty"`
	PolicyDigest     string `json:"policy_digest,omitempty"`
	Attempt          uint64 `json:"attempt,omitzero"` // 2 and up
	// What the call names, as runner-policy extracted it (POLICY.md, "Targets").
	Targets    []string `json:"targets,omitempty"`
	TargetsCut bool     `json:"targets_cut,omitzero"` // there were more
	WouldDeny  string   `json:"would_deny,omitempty"` // why the policy denies a call that --audit forwarded
	// Only of a call that was found in the SDK layer by it: a digest of few arguments can be guessed.
	ArgumentsDigest string `json:"arguments_digest,omitempty"`
}

// SurfaceValue is the value of a decision in the set policy_decisions.
func (e *PolicyEvent) SurfaceValue() string { return e.Decision + ":" + e.Tool }

// SDKEvent is one line of layers/sdk.ndjson: what the agent's library reported.
// The optional strings are written as null; other implementations omit them too.
type SDKEvent struct {
	Schema     string  `json:"schema"`
	RunID      string  `json:"run_id"`
	Seq        uint64  `json:"seq"`
	EventType  string  `json:"event_type"`
	Source     string  `json:"source"`
	SDKName    *string `json:"sdk_name" contract:"optional"`
	SDKVersion *string `json:"sdk_version" contract:"optional"`
	ToolCallID *string `json:"tool_call_id" contract:"optional"`
	Tool       *string `json:"tool" contract:"optional"`
	// SHA-256 of the arguments of a tool call in the form of RFC 8785, by which a call without an id of the SDK is found.
	ArgumentsDigest string `json:"arguments_digest,omitempty"`
}

// ValidRunID reports whether s may name a run: 1 to 128 of [A-Za-z0-9_-].
func ValidRunID(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
