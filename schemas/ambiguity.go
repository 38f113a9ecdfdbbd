package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AmbiguityArg is what follows the colon of an ambiguity code.
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
	Says   string   // what it stands for
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

// Why a line of a log is bad.
const (
	WhyJSON      = "bad_json"
	WhyType      = "bad_type"
	WhyField     = "bad_field"
	WhySeq       = "bad_seq"
	WhyConflict  = "conflict"
	WhySchema    = "bad_schema"
	WhyRunID     = "bad_run_id"
	WhyEventType = "bad_event_type"
)

// Programs that were executed without a tool call: so many are named one by one,
// the argument of one more entry means the rest.
const (
	MaxExecWithoutCall  = 64
	ExecWithoutCallMore = "…"
)

// Ambiguities are all kinds, in the order of the specification's table, which is
// that of their bytes.
var Ambiguities = [...]AmbiguityKind{
	{AmbiguityCgroupFailed, CorrelationFailed, ArgNone, nil, "tasks left the cgroup, and there are decisions"},
	{AmbiguityDecisionNoEvents, CorrelationPartial, ArgID, nil, "an allowed call has a window, a kernel layer is there, and no line is in the window"},
	{AmbiguityDeniedEffects, CorrelationPartial, ArgID, nil, "effects of any process that match a denied call, later than its end, and not from the tree of an allowed call, during it, that names them as closely (the same path, or one further down)"},
	{AmbiguityExecWithoutCall, CorrelationPartial, ArgPath, nil, "a program was executed by a process that is not a proxy, in no tree and not an ancestor of a proxy, in a run with sessions and times; once for each value, at most 64, then `exec_without_tool_call:…`"},
	{AmbiguityKernelLost, CorrelationPartial, ArgNone, nil, "there are decisions and the kernel layer is `partial_ringbuf_drops`: counts are lower bounds"},
	{AmbiguityOutsideWindows, CorrelationPartial, ArgID, nil, "lines of class `idle`; ID is the call of that tree that had ended last before them"},
	{AmbiguityTimesUnknown, CorrelationPartial, ArgNone, nil, "there are calls with times, but the kernel stream has none (`runner-normalize --windows`)"},
	{AmbiguityNotInSDK, CorrelationPartial, ArgID, nil, "both layers are there and no SDK event names the decision's id"},
	{AmbiguityNoKernelEvents, CorrelationPartial, ArgNone, nil, "decisions, and not one kernel line"},
	{AmbiguityPolicyEmpty, CorrelationPartial, ArgNone, nil, "a log was asked for and holds neither decision nor session"},
	{AmbiguityPolicyFlooded, CorrelationFailed, ArgNone, nil, "the log went beyond its limits: decisions may be missing"},
	{AmbiguityPolicyInvalid, CorrelationFailed, ArgLine, []string{WhyJSON, WhyType, WhyField, WhySeq, WhyConflict}, "the log is read up to a bad line: decisions may be missing"},
	{AmbiguityPolicyReplaced, CorrelationFailed, ArgNone, nil, "the path of the log led to another file: decisions may be missing"},
	{AmbiguityPolicyTruncated, CorrelationPartial, ArgNone, nil, "the last line has no LF; it is left out if it is not JSON"},
	{AmbiguityPolicyWriterOpen, CorrelationPartial, ArgNone, nil, "a process held the log open when the command ended"},
	{AmbiguityPolicyWrittenAfter, CorrelationPartial, ArgNone, nil, "something was written to the log after the command ended"},
	{AmbiguitySessionNotFinished, CorrelationPartial, ArgName, nil, "the proxy was cut off"},
	{AmbiguitySessionOtherPolicy, CorrelationPartial, ArgName, nil, "the proxy decided by another policy file than the one of `runner-exec --policy`"},
	{AmbiguitySDKCompletedDenied, CorrelationPartial, ArgID, nil, "the SDK reports as completed what the policy denied"},
	{AmbiguitySDKEmpty, CorrelationPartial, ArgNone, nil, "a log was asked for and holds no event"},
	{AmbiguitySDKFlooded, CorrelationPartial, ArgNone, nil, "the log went beyond its limits: the layer holds what was before"},
	{AmbiguitySDKInvalid, CorrelationPartial, ArgLine, []string{WhyJSON, WhySchema, WhyRunID, WhySeq, WhyEventType, WhyField}, "the log is read up to a bad line: the layer holds what was valid before"},
	{AmbiguitySDKReplaced, CorrelationPartial, ArgNone, nil, "the path of the log led to another file: the layer holds what was valid"},
	{AmbiguitySDKTruncated, CorrelationPartial, ArgNone, nil, "the last line has no LF; it is left out if it is not JSON"},
	{AmbiguitySDKWriterOpen, CorrelationPartial, ArgNone, nil, "a process held the log open when the command ended"},
	{AmbiguitySDKWrittenAfter, CorrelationPartial, ArgNone, nil, "something was written to the log after the command ended"},
	{AmbiguitySDKRunNotFinished, CorrelationPartial, ArgNone, nil, "the SDK layer has neither `run_finished` nor `run_failed`"},
	{AmbiguitySDKNotCompleted, CorrelationPartial, ArgID, nil, "the SDK reports the call as started, and not as completed"},
	{AmbiguitySDKNotStarted, CorrelationPartial, ArgID, nil, "the SDK reports the call as completed, and not as started"},
	{AmbiguitySDKRepeated, CorrelationPartial, ArgID, nil, "the SDK reports the call as started or completed more than once"},
	{AmbiguitySDKUnbound, CorrelationPartial, ArgID, nil, "the policy layer is there and has no decision of that id"},
	{AmbiguitySDKNameDiffers, CorrelationPartial, ArgID, nil, "the SDK names another tool than the decision"},
	{AmbiguityManyDecisions, CorrelationPartial, ArgNone, nil, "several decisions, a kernel capture, and a decision without a time"},
	{AmbiguityEffectsOutside, CorrelationPartial, ArgID, nil, "effects in an allowed call's own window, in a known tree, that match none of its targets and cannot be on its host"},
	{AmbiguityCallIDRepeated, CorrelationPartial, ArgID, nil, "several decisions have it, and they are not attempts of one call"},
	{AmbiguityCallNotFinished, CorrelationPartial, ArgID, nil, "an allowed call without `call_finished`, or with outcome `server_gone` or `client_gone`"},
	{AmbiguityTargetsUnknown, CorrelationPartial, ArgID, nil, "effects in an allowed call's own window, in a known tree, and its arguments name nothing to compare them with, or they match no target and `targets_cut`, or all that match no target may be on its host. Of a denied call: the plain read of one of its targets is noise, which is not a line, or effects of any process that may be on its host, later than the denial, and in no window of an allowed call that they match too or on whose host they may be at that port"},
	{AmbiguityCallsOverlap, CorrelationPartial, ArgID, nil, "another call of the same tree overlaps it"},
	{AmbiguityServerUnknown, CorrelationPartial, ArgName, nil, "the session's server is not in the process tree as the log says"},
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
		return Ambiguity{}, fmt.Errorf("ambiguity %s says %.100q, expected nothing after the code", code, arg)
	case k.Arg != ArgNone && arg == "":
		return Ambiguity{}, fmt.Errorf("ambiguity %s lacks its argument", code)
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
