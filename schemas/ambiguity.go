package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What follows the colon of an ambiguity code.
type AmbiguityArg int

const (
	ArgNone AmbiguityArg = iota
	ArgID                // a tool call id
	ArgPath              // a path in text form
	ArgName              // the name of a tool server
	ArgLine              // LINE:WHY, a line of a log, counted from 1, and one word of Whys
)

// AmbiguityKind is one kind of ambiguity of a correlation report.
type AmbiguityKind struct {
	Code   string // without the argument and its colon
	Status string // what it makes of the report: partial or failed
	Arg    AmbiguityArg
	Whys   []string // of ArgLine
}

// Codes of ambiguities, without argument (DERIVATION.md, "Ambiguities").
const (
	AmbiguityCgroupFailed       = "cgroup_correlation_failed"
	AmbiguityDecisionNoEvents   = "decision_without_kernel_events"
	AmbiguityDeniedEffects      = "denied_call_with_kernel_effects"
	AmbiguityExecWithoutCall    = "exec_without_tool_call"
	AmbiguityKernelLost         = "kernel_events_lost"
	AmbiguityOutsideWindows     = "kernel_events_outside_tool_windows"
	AmbiguityTimesUnknown       = "kernel_times_unknown"
	AmbiguityNotInSDK           = "policy_call_not_in_sdk"
	AmbiguityNoKernelEvents     = "policy_events_without_kernel_events"
	AmbiguityPolicyEmpty        = "policy_log_empty"
	AmbiguityPolicyFlooded      = "policy_log_flooded"
	AmbiguityPolicyInvalid      = "policy_log_invalid"
	AmbiguityPolicyReplaced     = "policy_log_replaced"
	AmbiguityPolicyTruncated    = "policy_log_truncated"
	AmbiguityPolicyWriterOpen   = "policy_log_writer_open_at_end"
	AmbiguityPolicyWrittenAfter = "policy_log_written_after_end"
	AmbiguitySessionNotFinished = "policy_session_not_finished"
	AmbiguitySessionOtherPolicy = "policy_session_of_other_policy"
	AmbiguitySDKCompletedDenied = "sdk_completed_denied_call"
	AmbiguitySDKEmpty           = "sdk_log_empty"
	AmbiguitySDKFlooded         = "sdk_log_flooded"
	AmbiguitySDKInvalid         = "sdk_log_invalid"
	AmbiguitySDKReplaced        = "sdk_log_replaced"
	AmbiguitySDKTruncated       = "sdk_log_truncated"
	AmbiguitySDKWriterOpen      = "sdk_log_writer_open_at_end"
	AmbiguitySDKWrittenAfter    = "sdk_log_written_after_end"
	AmbiguitySDKRunNotFinished  = "sdk_run_not_finished"
	AmbiguitySDKNotCompleted    = "sdk_tool_call_not_completed"
	AmbiguitySDKNotStarted      = "sdk_tool_call_not_started"
	AmbiguitySDKRepeated        = "sdk_tool_call_repeated"
	AmbiguitySDKUnbound         = "sdk_tool_call_without_policy_binding"
	AmbiguitySDKNameDiffers     = "sdk_tool_name_differs"
	AmbiguityManyDecisions      = "session_cgroup_ambiguous_for_multiple_policy_events"
	AmbiguityEffectsOutside     = "tool_call_effects_outside_request"
	AmbiguityCallIDRepeated     = "tool_call_id_repeated"
	AmbiguityCallNotFinished    = "tool_call_not_finished"
	AmbiguityTargetsUnknown     = "tool_call_targets_unknown"
	AmbiguityCallsOverlap       = "tool_calls_overlap"
	AmbiguityServerUnknown      = "tool_server_unknown"
)

// Programs that were executed without a tool call: so many are named one by one,
// the argument of the last entry stands for the rest.
const (
	MaxExecWithoutCall  = 64
	ExecWithoutCallMore = "…"
)

// Ambiguities are all kinds, in the order of the specification's table, which is
// that of their bytes.
var Ambiguities = [...]AmbiguityKind{
	{AmbiguityCgroupFailed, CorrelationFailed, ArgNone, nil},
	{AmbiguityDecisionNoEvents, CorrelationPartial, ArgID, nil},
	{AmbiguityDeniedEffects, CorrelationPartial, ArgID, nil},
	{AmbiguityExecWithoutCall, CorrelationPartial, ArgPath, nil},
	{AmbiguityKernelLost, CorrelationPartial, ArgNone, nil},
	{AmbiguityOutsideWindows, CorrelationPartial, ArgID, nil},
	{AmbiguityTimesUnknown, CorrelationPartial, ArgNone, nil},
	{AmbiguityNotInSDK, CorrelationPartial, ArgID, nil},
	{AmbiguityNoKernelEvents, CorrelationPartial, ArgNone, nil},
	{AmbiguityPolicyEmpty, CorrelationPartial, ArgNone, nil},
	{AmbiguityPolicyFlooded, CorrelationFailed, ArgNone, nil},
	{AmbiguityPolicyInvalid, CorrelationFailed, ArgLine, []string{"bad_json", "bad_type", "bad_field", "bad_seq", "conflict"}},
	{AmbiguityPolicyReplaced, CorrelationFailed, ArgNone, nil},
	{AmbiguityPolicyTruncated, CorrelationPartial, ArgNone, nil},
	{AmbiguityPolicyWriterOpen, CorrelationPartial, ArgNone, nil},
	{AmbiguityPolicyWrittenAfter, CorrelationPartial, ArgNone, nil},
	{AmbiguitySessionNotFinished, CorrelationPartial, ArgName, nil},
	{AmbiguitySessionOtherPolicy, CorrelationPartial, ArgName, nil},
	{AmbiguitySDKCompletedDenied, CorrelationPartial, ArgID, nil},
	{AmbiguitySDKEmpty, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKFlooded, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKInvalid, CorrelationPartial, ArgLine, []string{"bad_json", "bad_schema", "bad_run_id", "bad_seq", "bad_event_type", "bad_field"}},
	{AmbiguitySDKReplaced, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKTruncated, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKWriterOpen, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKWrittenAfter, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKRunNotFinished, CorrelationPartial, ArgNone, nil},
	{AmbiguitySDKNotCompleted, CorrelationPartial, ArgID, nil},
	{AmbiguitySDKNotStarted, CorrelationPartial, ArgID, nil},
	{AmbiguitySDKRepeated, CorrelationPartial, ArgID, nil},
	{AmbiguitySDKUnbound, CorrelationPartial, ArgID, nil},
	{AmbiguitySDKNameDiffers, CorrelationPartial, ArgID, nil},
	{AmbiguityManyDecisions, CorrelationPartial, ArgNone, nil},
	{AmbiguityEffectsOutside, CorrelationPartial, ArgID, nil},
	{AmbiguityCallIDRepeated, CorrelationPartial, ArgID, nil},
	{AmbiguityCallNotFinished, CorrelationPartial, ArgID, nil},
	{AmbiguityTargetsUnknown, CorrelationPartial, ArgID, nil},
	{AmbiguityCallsOverlap, CorrelationPartial, ArgID, nil},
	{AmbiguityServerUnknown, CorrelationPartial, ArgName, nil},
}

var ambiguityKinds = func() map[string]*AmbiguityKind {
	m := map[string]*AmbiguityKind{}
	for i := range Ambiguities {
		m[Ambiguities[i].Code] = &Ambiguities[i]
	}
	return m
}()

// Ambiguity is one entry of a report's ambiguities, taken apart.
type Ambiguity struct {
	*AmbiguityKind
	Value string // id, path or name; of ArgLine the line and why
	Line  uint64 // of ArgLine
	Why   string // of ArgLine
}

// ParseCode takes an entry of a report's ambiguities apart. Archives of other
// implementations may hold codes that it does not know.
func ParseCode(s string) (Ambiguity, error) {
	code, arg, there := strings.Cut(s, ":")
	k := ambiguityKinds[code]
	a := Ambiguity{AmbiguityKind: k, Value: arg}
	switch {
	case k == nil:
		return Ambiguity{}, fmt.Errorf("unknown ambiguity code %.100q", code)
	case k.Arg == ArgNone && there:
		return Ambiguity{}, fmt.Errorf("ambiguity %s says %.100q, expected nothing behind the code", code, arg)
	case k.Arg != ArgNone && arg == "":
		return Ambiguity{}, fmt.Errorf("ambiguity %s does not say which", code)
	case k.Arg == ArgLine:
		number, why, _ := strings.Cut(arg, ":")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != number || !slices.Contains(k.Whys, why) {
			return Ambiguity{}, fmt.Errorf("ambiguity %s says %.100q, expected LINE:WHY with one of %s", code, arg, strings.Join(k.Whys, ", "))
		}
		a.Line, a.Why = n, why
	}
	return a, nil
}

// LineCode is the entry of a report for a line of a log, counted from 1.
func LineCode(code string, line uint64, why string) string {
	return code + ":" + strconv.FormatUint(line, 10) + ":" + why
}

// WorstOf is the status of a report with these codes. An unknown code is partial.
func WorstOf(codes []string) string {
	status := CorrelationClean
	for _, s := range codes {
		code, _, _ := strings.Cut(s, ":")
		if k := ambiguityKinds[code]; k != nil && k.Status == CorrelationFailed {
			return CorrelationFailed
		}
		status = CorrelationPartial
	}
	return status
}
