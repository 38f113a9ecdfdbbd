package schemas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// AmbiguityArg is what follows the colon of an ambiguity code.
type AmbiguityArg int

const (
	ArgNone   AmbiguityArg = iota
	ArgID                  // a tool call id
	ArgPath                // a path in text form
	ArgName                // the name of a tool server
	ArgEffect              // a verb, a blank, a value, as in kernel_effects
	ArgLine                // LINE:WHY, a line of a log, counted from 1, and one word of Whys
)

// AmbiguityKind is one kind of code of a correlation report. An ambiguity says that
// something is in doubt; a note says what is worth knowing and leaves the report clean.
type AmbiguityKind struct {
	Code   string // without the argument and its colon
	Status string // what it makes of the report: clean (a note), partial or failed
	Arg    AmbiguityArg
	Whys   []string // of ArgLine
	Says   string   // what it means
	// Of a code about a log: the layer that is made from it, and what is wrong with it.
	Layer *Layer
	Fault LogFault
	Gap   bool // lines of the log may be missing
}

// Codes of ambiguities, without argument (DERIVATION.md, "Ambiguities"). Those of a
// log follow from its row in the layer table: see Layer.LogCode.
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
	AmbiguitySessionNotFinished = "policy_session_not_finished"
	AmbiguitySessionOtherPolicy = "policy_session_of_other_policy"
	AmbiguitySDKCompletedDenied = "sdk_completed_denied_call"
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
	AmbiguityDeniedTarget       = "effect_on_denied_target"
	AmbiguityEffectsLate        = "tool_call_effects_late"
	AmbiguityRequestEffects     = "request_effects_outside_request"
	AmbiguityConnect            = "connect_without_exchange"
	AmbiguityExchange           = "exchange_without_connect"
	AmbiguityNames              = "names_without_question"
	AmbiguityRecordPartial      = "wrapper_record_partial"
)

// Codes of notes.
const (
	NoteNotWatched    = "denied_call_not_watched"
	NoteExecBefore    = "exec_before_sessions"
	NoteLogUnused     = "policy_log_unused"
	NoteReloaded      = "policy_session_reloaded"
	NoteSDKFailed     = "sdk_tool_call_failed"
	NoteSDKPrefixed   = "sdk_tool_name_prefixed"
	NoteServerBefore  = "server_effect_before_calls"
	NoteServerBetween = "server_effect_between_calls"
	NoteServerRequest = "server_effect_in_requests"
	NoteCallCancelled = "tool_call_cancelled"
	NoteEffectsShared = "tool_call_effects_shared"
	NoteNamesNothing  = "tool_call_names_nothing"
	NoteElsewhere     = "tool_server_elsewhere"
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
	WhySecret    = "secret" // it has a secret
)

// Codes about paths and effects: of each at most so many are there one by one. One more
// entry with this argument is for the rest.
const (
	MaxCodesOfKind = 64
	MoreCodes      = "…"
)

// ambiguities are the kinds that do not follow from a row of the layer table.
var ambiguities = [...]AmbiguityKind{
	{Code: AmbiguityCgroupFailed, Status: CorrelationFailed, Arg: ArgNone, Says: "tasks left the cgroup, and there are decisions"},
	{Code: AmbiguityDecisionNoEvents, Status: CorrelationClean, Arg: ArgID, Says: "an allowed call has a window, a kernel layer is there, and no line is in the window: many tools touch nothing"},
	{Code: AmbiguityDeniedEffects, Status: CorrelationPartial, Arg: ArgID, Says: "effects of any process that match a denied call, later than its end, and not from the tree of an allowed call, during it, that names them as closely (the same path, or one further down) in what its rule looked at: `checked`, or all targets where the log is of before"},
	{Code: AmbiguityExecWithoutCall, Status: CorrelationPartial, Arg: ArgPath, Says: "a program was executed by a process that is not a proxy, in no tree, in a run with sessions and times, after the first session had started; not up to the start of the last session with decisions whose proxy is below the process"},
	{Code: AmbiguityKernelLost, Status: CorrelationPartial, Arg: ArgNone, Says: "there are decisions and the kernel layer is `partial_ringbuf_drops`: counts are lower bounds"},
	{Code: AmbiguityOutsideWindows, Status: CorrelationPartial, Arg: ArgID, Says: "lines of class `idle`; ID is the call of that tree that had ended last before them"},
	{Code: AmbiguityTimesUnknown, Status: CorrelationPartial, Arg: ArgNone, Says: "there are calls with times, but the kernel stream has none (`runner-normalize --windows`)"},
	{Code: AmbiguityNotInSDK, Status: CorrelationPartial, Arg: ArgID, Says: "both layers are there, no SDK event names the decision's id, and the call was not found by its arguments"},
	{Code: AmbiguityNoKernelEvents, Status: CorrelationPartial, Arg: ArgNone, Says: "decisions, and not one kernel line"},
	{Code: AmbiguitySessionNotFinished, Status: CorrelationPartial, Arg: ArgName, Says: "the proxy was cut off"},
	{Code: AmbiguitySessionOtherPolicy, Status: CorrelationPartial, Arg: ArgName, Says: "a session of runner-policy decided by another policy file than the one of `runner-exec --policy`"},
	{Code: AmbiguitySDKCompletedDenied, Status: CorrelationPartial, Arg: ArgID, Says: "the SDK reports as completed what the policy denied"},
	{Code: AmbiguitySDKRunNotFinished, Status: CorrelationPartial, Arg: ArgNone, Says: "the SDK layer has neither `run_finished` nor `run_failed`"},
	{Code: AmbiguitySDKNotCompleted, Status: CorrelationPartial, Arg: ArgID, Says: "the SDK reports the call as started, and not as completed, and no decision says why (`sdk_tool_call_failed`)"},
	{Code: AmbiguitySDKNotStarted, Status: CorrelationPartial, Arg: ArgID, Says: "the SDK reports the call as completed, and not as started"},
	{Code: AmbiguitySDKRepeated, Status: CorrelationPartial, Arg: ArgID, Says: "the SDK reports the call as started or completed more than once"},
	{Code: AmbiguitySDKUnbound, Status: CorrelationPartial, Arg: ArgID, Says: "the policy layer is there and has no decision of that id"},
	{Code: AmbiguitySDKNameDiffers, Status: CorrelationPartial, Arg: ArgID, Says: "the SDK names another tool than the decision, and not with a prefix of the session (`sdk_tool_name_prefixed`)"},
	{Code: AmbiguityManyDecisions, Status: CorrelationPartial, Arg: ArgNone, Says: "several decisions, a kernel capture, and a decision without a time"},
	{Code: AmbiguityEffectsOutside, Status: CorrelationPartial, Arg: ArgID, Says: "effects in an allowed call's window, in a known tree, that match none of its targets, are not beside them, and cannot be on its host; of calls at the same time: that match none of all of them"},
	{Code: AmbiguityCallIDRepeated, Status: CorrelationPartial, Arg: ArgID, Says: "several decisions have it, and they are not attempts of one call"},
	{Code: AmbiguityCallNotFinished, Status: CorrelationPartial, Arg: ArgID, Says: "an allowed call without `call_finished`, or with outcome `server_gone` or `client_gone`"},
	{Code: AmbiguityTargetsUnknown, Status: CorrelationPartial, Arg: ArgID, Says: "effects in an allowed call's own window, in a known tree, and they match no target and `targets_cut`, or all that match no target may be on its host. Of a denied call: `targets_cut`, the plain read of one of its targets is noise, which is not a line, or effects of any process that may be on its host, later than the denial, and in no window of an allowed call that they match too or on whose host they may be at that port"},
	{Code: AmbiguityCallsOverlap, Status: CorrelationClean, Arg: ArgID, Says: "another call of the same tree overlaps it, and some line of that time cannot be told to be of one of them"},
	{Code: AmbiguityServerUnknown, Status: CorrelationPartial, Arg: ArgName, Says: "the session's server is not in the process tree as the log says"},
	{Code: AmbiguityDeniedTarget, Status: CorrelationPartial, Arg: ArgPath, Says: "an effect of a tool server, at any time, that matches what a rule that denies names (`denies`), or what a denied request named, later than its end; and not from the tree of an allowed call, during it, that names it as closely in what its rule looked at. The argument is what was named"},
	{Code: AmbiguityEffectsLate, Status: CorrelationPartial, Arg: ArgID, Says: "an effect in an allowed call's own window that matches none of its targets, and one of a call of that session that had ended before it began. Both calls have the code, and the effect is nobody's own"},
	{Code: AmbiguityRequestEffects, Status: CorrelationPartial, Arg: ArgName, Says: "an effect of a tool server while a request that is no tool call ran, and no call, that matches none of what the requests of that time named, where one named something. The argument is the method of the first of them"},
	{Code: AmbiguityConnect, Status: CorrelationPartial, Arg: ArgName, Says: "the kernel saw a connection to this address and port, where runner-net listened, and the layer network has no exchange for it"},
	{Code: AmbiguityExchange, Status: CorrelationPartial, Arg: ArgName, Says: "the layer network has an exchange with this address and port, and no kernel line asked to be connected there. Somebody outside of the scope used a socket of it, the kernel's rules led the connection elsewhere, or the exchange did not happen"},
	{Code: AmbiguityNames, Status: CorrelationPartial, Arg: ArgNone, Says: "the layer dns has names, and no kernel line asked a server of names"},
	{Code: AmbiguityRecordPartial, Status: CorrelationPartial, Arg: ArgName, Says: "the record of this wrapper is not whole: `unread` or `base_changed` of `run/box.json`, `bad_lines` or `lost` of `run/clock.json`, or `names_lost` of `run/net.json` is above 0"},
	{Code: NoteNotWatched, Status: CorrelationClean, Arg: ArgID, Says: "a denied call named nothing that a kernel line can show: nothing is watched"},
	{Code: NoteExecBefore, Status: CorrelationClean, Arg: ArgPath, Says: "a program was executed before the first session had started, by a process in no tree that is neither a proxy nor an ancestor of the proxy of a session with decisions"},
	{Code: NoteLogUnused, Status: CorrelationClean, Arg: ArgNone, Says: "the run collected a log of decisions, nobody wrote to it or held it open, and the SDK layer has no call: no tool call went through runner-policy. A call past it would look the same"},
	{Code: NoteReloaded, Status: CorrelationClean, Arg: ArgName, Says: "the proxy read its policy file again during the session: earlier calls were decided by what it said before"},
	{Code: NoteSDKFailed, Status: CorrelationClean, Arg: ArgID, Says: "the SDK reports the call as started and not as completed, and all its decisions ended as `denied`, `tool_error`, `error` or `cancelled`"},
	{Code: NoteSDKPrefixed, Status: CorrelationClean, Arg: ArgID, Says: "the SDK names the tool of the decision with a prefix that ends in none of A-Z, a-z, 0-9, and all names of that session have that prefix"},
	{Code: NoteServerBefore, Status: CorrelationClean, Arg: ArgEffect, Says: "an effect of class `setup` of a tool server"},
	{Code: NoteServerBetween, Status: CorrelationClean, Arg: ArgEffect, Says: "an effect of class `idle`"},
	{Code: NoteServerRequest, Status: CorrelationClean, Arg: ArgEffect, Says: "an effect of class `request`"},
	{Code: NoteCallCancelled, Status: CorrelationClean, Arg: ArgID, Says: "the client cancelled an allowed call: its window ends there, and later effects that match its targets, and none of the call that runs, are not held against any call"},
	{Code: NoteEffectsShared, Status: CorrelationClean, Arg: ArgID, Says: "an effect in an allowed call's own window that matches its targets, and more closely one of a call of that session that had ended before it began. Both calls have the code"},
	{Code: NoteElsewhere, Status: CorrelationClean, Arg: ArgName, Says: "the session's proxy started no server (`server_pid` 0: one over HTTP): what that server did is not told apart from what others did, or is not in the record"},
	{Code: NoteNamesNothing, Status: CorrelationClean, Arg: ArgID, Says: "effects in an allowed call's own window, in a known tree, and its arguments name nothing to compare them with"},
}

var ambiguityKinds = sync.OnceValue(func() map[string]*AmbiguityKind {
	m := map[string]*AmbiguityKind{}
	for i := range ambiguities {
		m[ambiguities[i].Code] = &ambiguities[i]
	}
	return m
})

// Ambiguities returns all kinds, in the order of the specification's table, which is
// the byte order of their codes.
func Ambiguities() []AmbiguityKind {
	list := slices.Clone(ambiguities[:])
	for _, l := range LogLayers() {
		for i := range logFaults {
			if l.canHave(&logFaults[i]) {
				list = append(list, l.faultKind(&logFaults[i]))
			}
		}
	}
	slices.SortFunc(list, func(a, b AmbiguityKind) int { return strings.Compare(a.Code, b.Code) })
	return list
}

// kindOf returns the kind of a code, nil if there is none.
func kindOf(code string) *AmbiguityKind {
	if k := ambiguityKinds()[code]; k != nil {
		return k
	}
	return logKind(code)
}

// Ambiguity is one entry of a report's ambiguities, taken apart.
type Ambiguity struct {
	*AmbiguityKind
	Value string // id, path or name; of ArgLine the line and why
	Line  uint64 // of ArgLine
	Why   string // of ArgLine
}

// ParseCode parses an entry of a report's ambiguities. Archives of other implementations
// may contain codes that it does not know.
func ParseCode(s string) (Ambiguity, error) {
	code, arg, there := strings.Cut(s, ":")
	k := kindOf(code)
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

// IsNote reports whether an entry's place is among the notes of a report. An unknown code
// is an ambiguity.
func IsNote(entry string) bool {
	code, _, _ := strings.Cut(entry, ":")
	k := kindOf(code)
	return k != nil && k.Status == CorrelationClean
}

// WorstOf is the status of a report with these codes. An unknown code is partial, a note
// is clean.
func WorstOf(codes []string) string {
	status := CorrelationClean
	for _, s := range codes {
		code, _, _ := strings.Cut(s, ":")
		switch k := kindOf(code); {
		case k == nil || k.Status == CorrelationPartial:
			status = CorrelationPartial
		case k.Status == CorrelationFailed:
			return CorrelationFailed
		}
	}
	return status
}
