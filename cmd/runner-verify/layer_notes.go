package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The notes that this runner writes about the layers, exactly as it writes them.
// The groups are the counts, in the order of noteKeys.
var ownNotes = []struct {
	code string
	form *regexp.Regexp
}{
	{noteNetwork, regexp.MustCompile(`^ rules=(0|[1-9][0-9]*) blocked=(0|[1-9][0-9]*) policy=sha256:[0-9a-f]{64}$`)},
	{notePolicy, regexp.MustCompile(`^ decision_events=(0|[1-9][0-9]*)( sessions=(0|[1-9][0-9]*) refused=(0|[1-9][0-9]*))?$`)},
	{noteSDK, regexp.MustCompile(`^ sdk_events=(0|[1-9][0-9]*) sdk_tool_calls=(0|[1-9][0-9]*)$`)},
	{noteWindows, regexp.MustCompile(`^ call=(0|[1-9][0-9]*) setup=(0|[1-9][0-9]*) idle=(0|[1-9][0-9]*) agent=(0|[1-9][0-9]*)$`)},
}

// noteNetwork says that network rules were enforced, and how often.
const noteNetwork = "s4_network_policy"

// noteCount is a count in the first note with a code; false without it.
func (v *verifier) noteCount(code, key string) (uint64, bool) {
	text, there := v.noteFields(code)[key]
	n, err := strconv.ParseUint(text, 10, 64)
	return n, there && err == nil
}

// noteOrder is where the notes of this runner stand. Others follow them.
var noteOrder = []string{noteContractOnly, noteKernel, noteLoss, "s2_drops", "s2_cgroup_escape", "s2_path_quality",
	"s2_survivors_killed", "s2_capture_end", noteBlind, noteNetwork, notePolicy, noteSDK, noteWindows, ""}

// checkOwnNotes checks the notes about the layers: form, order, and counts.
func (v *verifier) checkOwnNotes() {
	at := 0
	for _, n := range v.health.Notes {
		code, text, _ := strings.Cut(n, ":")
		place := slices.Index(noteOrder, code)
		if place < 0 {
			place = len(noteOrder) - 1
		}
		if place < at {
			v.fault(ruleHealthNote, "note %s stands behind notes that it goes in front of", code)
		}
		at = max(at, place)
		for _, own := range ownNotes {
			if own.code == code && !own.form.MatchString(text) {
				v.fault(ruleHealthNote, "note %s is not of the form that this runner writes", code)
			}
		}
	}
	for _, own := range ownNotes {
		if n := len(v.noteTexts(own.code)); n > 1 {
			v.fault(ruleHealthNote, "%d notes %s, expected one", n, own.code)
		}
	}
	h := v.health
	v.sameNote(notePolicy, h.PolicyLayer == "present", map[string]uint64{"decision_events": v.policy.lines})
	v.sameNote(noteSDK, v.sdk.lines > 0, map[string]uint64{"sdk_events": v.sdk.lines, "sdk_tool_calls": uint64(len(v.sdk.calls))})
	v.checkSessions()
	v.checkEnforcement()
}

// sameNote compares the note of a layer with the layer.
func (v *verifier) sameNote(code string, want bool, counts map[string]uint64) {
	if there := len(v.noteTexts(code)) > 0; there != want {
		v.fault(ruleHealthNote, "%s, which does not go with the layer", map[bool]string{true: "note " + code, false: "no note " + code}[there])
		return
	}
	for _, key := range sortedKeys(counts) {
		if got, there := v.noteCount(code, key); there && got != counts[key] {
			v.fault(ruleHealthNote, "%s says %s=%d, the layer says %d", code, key, got, counts[key])
		}
	}
}

// checkSessions compares what the notes say of sessions and of classes of lines.
func (v *verifier) checkSessions() {
	sessions, _ := v.noteCount(notePolicy, "sessions")
	if _, said := v.noteFields(notePolicy)["sessions"]; said && sessions == 0 {
		v.fault(ruleHealthNote, "%s says sessions=0, which is left out", notePolicy)
	}
	timed := slices.ContainsFunc(v.policy.list, func(d decision) bool { return d.timed })
	if timed && sessions == 0 {
		v.fault(ruleHealthNote, "%s has no sessions, but the policy layer has decisions of one", notePolicy)
	}
	if len(v.noteTexts(noteWindows)) == 0 {
		return
	}
	sum := uint64(0)
	for _, class := range []string{"call", "setup", "idle", "agent"} {
		n, _ := v.noteCount(noteWindows, class)
		sum += n
	}
	switch call, _ := v.noteCount(noteWindows, "call"); {
	case sum != v.kernel.lines:
		v.fault(ruleHealthNote, "the counts of %s add up to %d, the kernel layer has %d lines", noteWindows, sum, v.kernel.lines)
	case sessions == 0:
		v.fault(ruleHealthNote, "note %s without a session", noteWindows)
	case !timed && call > 0:
		v.fault(ruleHealthNote, "%s says call=%d, but there is no call", noteWindows, call)
	default:
		v.checkCalls(sessions)
	}
}

// checkCalls compares the classes of lines with the bindings' counts. Windows of
// one session share no line; servers inside each other's trees can.
func (v *verifier) checkCalls(sessions uint64) {
	if v.report == nil {
		return
	}
	class := func(name string) uint64 { n, _ := v.noteCount(noteWindows, name); return n }
	call, tree, rest := class("call"), class("call")+class("setup")+class("idle"), class("setup")+class("agent")
	sum, all := uint64(0), true
	for i := range min(len(v.report.Bindings), len(v.policy.list)) {
		b, d := &v.report.Bindings[i], &v.policy.list[i]
		alone, limit := b.Window == schemas.CallWindow(d.id), tree
		switch {
		case !d.timed:
			continue
		case b.KernelScope == schemas.ScopeRun:
			limit = rest
		case alone:
			limit = call
			sum += b.KernelEventCount
		}
		all = all && alone
		// The tree of the one session has all lines of its calls, and those between them.
		if n := tree - class("setup"); sessions == 1 && b.KernelScope == schemas.ScopeToolServer && !alone && b.KernelEventCount < n {
			v.add(ruleReportBindings, bundle.ReportName, 0, "binding %d: kernel_event_count is %d of the whole tree, note %s says %d at least", i, b.KernelEventCount, noteWindows, n)
		}
		if b.KernelEventCount > limit {
			v.add(ruleReportBindings, bundle.ReportName, 0, "binding %d: kernel_event_count is %d, note %s leaves %d", i, b.KernelEventCount, noteWindows, limit)
		}
	}
	if all && call > sum || sessions == 1 && sum > call {
		v.fault(ruleHealthNote, "%s says call=%d, the bindings' own windows have %d lines", noteWindows, call, sum)
	}
}

// checkEnforcement compares the note about network rules with the kernel lines.
func (v *verifier) checkEnforcement() {
	k := &v.kernel
	if len(v.noteTexts(noteNetwork)) == 0 {
		if k.blocked > 0 {
			v.fault(ruleHealthNote, "no note %s, but %d kernel lines say that network rules refused something", noteNetwork, k.blocked)
		}
		return
	}
	blocked, _ := v.noteCount(noteNetwork, "blocked")
	rules, _ := v.noteCount(noteNetwork, "rules")
	dropped, _ := v.noteCount("s2_drops", "connect_blocked")
	// normalize_drop may have taken lines out.
	exact := len(v.noteTexts("normalize_drop")) == 0
	switch want := k.blocked + dropped; {
	case blocked < want, exact && blocked != want:
		v.fault(ruleHealthNote, "%s says blocked=%d, the kernel lines and the drops add up to %d", noteNetwork, blocked, want)
	case uint64(k.rule) > rules:
		v.fault(ruleHealthNote, "%s says rules=%d, a kernel line names rule %d", noteNetwork, rules, k.rule)
	}
}
