package schemas

import (
	"slices"
	"strconv"
)

// The decision log of runner-policy (POLICY.md, "Decision log"): each line is a LogEntry
// whose Data is one of the structs below. Times are CLOCK_MONOTONIC in ns.

// Types of decision log lines.
const (
	LogSessionStarted  = "runner.policy.session_started"
	LogDecision        = "assay.tool.decision"
	LogCallFinished    = "runner.policy.call_finished"
	LogMessageRefused  = "runner.policy.message_refused"
	LogRequestDecided  = "runner.policy.request_decided"
	LogRequestFinished = "runner.policy.request_finished"
	LogRootsDecided    = "runner.policy.roots_decided"
	LogPolicyReloaded  = "runner.policy.policy_reloaded"
	LogSessionFinished = "runner.policy.session_finished"
)

// CallIDDeclared is the source of an id that the proxy made, because the client gave none.
const CallIDDeclared = "jsonrpc_id"

// CallIDProcess is the source of an id that runner-proc made.
const CallIDProcess = "process_api"

// ProcessCallID is the id of a call of runner-proc: session is its random name in a log, and its number in an archive.
func ProcessCallID(session string, call uint64) string {
	return "proc:" + session + ":" + strconv.FormatUint(call, 10)
}

// Who sent a message that was refused, or a request.
const (
	FromClient = "client"
	FromServer = "server"
)

// LogSpecVersion is the version of CloudEvents that the lines have.
const LogSpecVersion = "1.0"

// Sources of lines: the tool that wrote them.
const (
	LogSource     = "runner-policy"
	LogSourceProc = "runner-proc" // its policy files are not the run's (PROC.md, "Decision log")
)

// LogSources are all sources.
var LogSources = [...]string{LogSource, LogSourceProc}

// IsLogSource reports whether one of our tools writes lines with this source.
func IsLogSource(source string) bool { return slices.Contains(LogSources[:], source) }

// Decisions.
const (
	DecisionAllow = "allow"
	DecisionDeny  = "deny"
)

// Outcomes of a tool call.
const (
	OutcomeCompleted     = "completed"
	OutcomeToolError     = "tool_error"
	OutcomeError         = "error"
	OutcomeInputRequired = "input_required"
	OutcomeCancelled     = "cancelled"
	OutcomeServerGone    = "server_gone"
	OutcomeClientGone    = "client_gone"
	OutcomeDenied        = "denied"
)

// Outcome is how a tool call ended.
type Outcome struct{ Name, Why string }

// Outcomes are all outcomes. The last is that of denied calls, the others are of calls
// that were forwarded.
var Outcomes = [...]Outcome{
	{OutcomeCompleted, "a result without `isError`"},
	{OutcomeToolError, "a result with `isError` true"},
	{OutcomeError, "a JSON-RPC error"},
	{OutcomeInputRequired, "modern protocol: the call goes on in another request"},
	{OutcomeCancelled, "the client cancelled it before it was answered"},
	{OutcomeServerGone, "never answered: the server left first"},
	{OutcomeClientGone, "never answered: the client left first"},
	{OutcomeDenied, "the policy denied it"},
}

// CallOutcomes are the outcomes of calls that were forwarded.
var CallOutcomes = func() (names []string) {
	for _, o := range Outcomes {
		if o.Name != OutcomeDenied {
			names = append(names, o.Name)
		}
	}
	return names
}()

// FailedOutcomes are those of calls that did not do what they were asked for.
var FailedOutcomes = []string{OutcomeDenied, OutcomeToolError, OutcomeError, OutcomeCancelled}

// LogType is one type of line: what follows session and seq in its data. The tag spec
// says what the specification says of a key.
type LogType struct {
	Type string
	Data any
}

// LogTypes are all types of lines that runner-policy writes.
var LogTypes = [...]LogType{
	{LogSessionStarted, SessionStarted{}}, {LogDecision, ToolDecision{}}, {LogCallFinished, CallFinished{}},
	{LogRequestDecided, RequestDecision{}}, {LogRequestFinished, RequestFinished{}}, {LogRootsDecided, RootsDecision{}},
	{LogMessageRefused, MessageRefused{}}, {LogPolicyReloaded, PolicyReloaded{}}, {LogSessionFinished, SessionFinished{}},
}

// IsLogType reports whether runner-policy writes lines of this type.
func IsLogType(kind string) bool {
	return slices.ContainsFunc(LogTypes[:], func(t LogType) bool { return t.Type == kind })
}

// LogEntry is one line.
type LogEntry[D any] struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"` // SESSION-SEQ
	Type        string `json:"type"`
	Source      string `json:"source"`
	Data        D      `json:"data"`
}

// LogHead is the beginning of all data.
type LogHead struct {
	Session string `json:"session"` // 16 hex digits, random
	Seq     uint64 `json:"seq"`     // position among the session's lines
}

// InitialPIDNamespace is the inode number of the initial pid namespace, on every kernel (PROC_PID_INIT_INO).
const InitialPIDNamespace = 0xEFFFFFFC

// SessionStarted is the data of a proxy's first line.
type SessionStarted struct {
	LogHead
	KtimeNS      uint64 `json:"ktime_ns"`
	Name         string `json:"name"` // of the server, as given or from its command
	PolicyDigest string `json:"policy_digest"`
	ProxyPID     uint32 `json:"proxy_pid"`
	ServerPID    uint32 `json:"server_pid"`
	PIDNS        uint32 `json:"pid_ns,omitzero" spec:"inode number of the proxy's pid namespace, in which these two are numbers"`
	Cwd          string `json:"cwd,omitempty" spec:"directory of the proxy and of its server, text form"`
	// What rules that deny name by path or destination, as targets.
	Denies    []string `json:"denies,omitzero" spec:"what rules that deny name, as targets"`
	DeniesCut bool     `json:"denies_cut,omitzero"`
}

// ToolDecision is the data of a decision, written before the call is forwarded.
type ToolDecision struct {
	LogHead
	Call             uint64   `json:"call" spec:"(0, 1, … in the session)"`
	Attempt          uint64   `json:"attempt" spec:"(1; higher when a multi-round-trip call goes on)"`
	Tool             string   `json:"tool"`
	Decision         string   `json:"decision" spec:"(allow, deny)"`
	ReasonCode       string   `json:"reason_code"`
	RuleID           string   `json:"rule_id,omitempty"`
	ToolCallID       string   `json:"tool_call_id"`
	ToolCallIDSource string   `json:"tool_call_id_source"`
	PolicyDigest     string   `json:"policy_digest"`
	StartNS          uint64   `json:"start_ns"`
	EndNS            uint64   `json:"end_ns,omitzero" spec:"with deny"`
	Outcome          string   `json:"outcome,omitempty" spec:"with deny"`
	Targets          []string `json:"targets"`
	TargetsCut       bool     `json:"targets_cut"`
	Checked          []string `json:"checked,omitzero"` // targets that the rule that decided looked at or expects
	ArgumentsDigest  string   `json:"arguments_digest,omitempty" spec:"sha256:HEX"`
	WouldDeny        string   `json:"would_deny,omitempty" spec:"a reason code, with P_ALLOW_AUDIT"`

	Redacted []RedactedArgument `json:"redacted,omitzero" spec:"what the policy file redacts: objects with at and, with a key, commitment"`
}

// RedactedArgument is an argument whose value the log does not have.
type RedactedArgument struct {
	At         string `json:"at"`                   // its place, as in the policy file, in text form
	Commitment string `json:"commitment,omitempty"` // hmac-sha256:HEX of the value in the form of RFC 8785
}

// MaxRedacted is how many places a policy file may redact.
const MaxRedacted = 64

// CommitmentPrefix begins a commitment; 64 hex digits follow.
const CommitmentPrefix = "hmac-sha256:"

// RequestDecision is the data of a request that is no tool call, of the client or of the
// server, written before it is forwarded.
type RequestDecision struct {
	LogHead
	Request      uint64   `json:"request" spec:"(0, 1, … in the session)"`
	Direction    string   `json:"direction" spec:"(client, server: who sent it)"`
	Method       string   `json:"method"`
	Target       string   `json:"target,omitempty" spec:"URI or name that it is about, text form"`
	Decision     string   `json:"decision" spec:"(allow, deny)"`
	ReasonCode   string   `json:"reason_code"`
	RuleID       string   `json:"rule_id,omitempty"`
	PolicyDigest string   `json:"policy_digest"`
	StartNS      uint64   `json:"start_ns"`
	EndNS        uint64   `json:"end_ns,omitzero" spec:"with deny"`
	Targets      []string `json:"targets"`
	TargetsCut   bool     `json:"targets_cut"`
	WouldDeny    string   `json:"would_deny,omitempty" spec:"a reason code, with P_ALLOW_AUDIT"`
}

// RequestFinished is the data of the line that follows the answer to such a request.
type RequestFinished struct {
	LogHead
	Request uint64 `json:"request"`
	StartNS uint64 `json:"start_ns"`
	EndNS   uint64 `json:"end_ns"`
	Outcome string `json:"outcome"`
}

// RootsDecision is the data of a client's answer to roots/list.
type RootsDecision struct {
	LogHead
	Request      uint64   `json:"request" spec:"(that it answers)"`
	KtimeNS      uint64   `json:"ktime_ns"`
	Decision     string   `json:"decision" spec:"(allow, deny)"`
	ReasonCode   string   `json:"reason_code"`
	PolicyDigest string   `json:"policy_digest"`
	Roots        []string `json:"roots"` // the URIs, in text form and in the client's order
	RootsCut     bool     `json:"roots_cut"`
	WouldDeny    string   `json:"would_deny,omitempty" spec:"a reason code, with P_ALLOW_AUDIT"`
}

// CallFinished is the data of the line that follows a call's answer.
type CallFinished struct {
	LogHead
	Call       uint64 `json:"call"`
	ToolCallID string `json:"tool_call_id"`
	StartNS    uint64 `json:"start_ns"`
	EndNS      uint64 `json:"end_ns"`
	Outcome    string `json:"outcome"`
}

// MessageRefused is the data of a message that was not forwarded and was not a tool
// call that could be decided.
type MessageRefused struct {
	LogHead
	KtimeNS    uint64 `json:"ktime_ns"`
	Direction  string `json:"direction" spec:"(client, server: who sent it)"`
	ReasonCode string `json:"reason_code"`
}

// PolicyReloaded is the data of the line after which a session decides by what its policy
// file says now.
type PolicyReloaded struct {
	LogHead
	KtimeNS      uint64   `json:"ktime_ns"`
	PolicyDigest string   `json:"policy_digest"`
	Denies       []string `json:"denies,omitzero" spec:"as in session_started"`
	DeniesCut    bool     `json:"denies_cut,omitzero"`
}

// SessionFinished is the data of a proxy's last line.
type SessionFinished struct {
	LogHead
	KtimeNS      uint64 `json:"ktime_ns"`
	Decisions    uint64 `json:"decisions"`
	Finished     uint64 `json:"finished"`
	Unfinished   uint64 `json:"unfinished"`
	Refused      uint64 `json:"refused"`
	ServerExit   *int   `json:"server_exit"`
	ServerSignal *int   `json:"server_signal"`
}
