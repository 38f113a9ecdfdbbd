package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The ambiguities of this runner's reports. Most kinds follow from the layers: of
// these the list must have exactly the entries that derived gives. The others say
// what the archive does not hold (times, targets, the process tree, how the logs
// were collected): of these the list can only contradict the layers.

// derivedKinds are the kinds that follow from the layers and the bindings.
var derivedKinds = map[string]bool{
	schemas.AmbiguityCgroupFailed: true, schemas.AmbiguityDecisionNoEvents: true, schemas.AmbiguityDeniedEffects: true,
	schemas.AmbiguityKernelLost: true, schemas.AmbiguityTimesUnknown: true, schemas.AmbiguityNotInSDK: true,
	schemas.AmbiguityNoKernelEvents: true, schemas.AmbiguitySDKCompletedDenied: true, schemas.AmbiguitySDKRunNotFinished: true,
	schemas.AmbiguitySDKNotCompleted: true, schemas.AmbiguitySDKNotStarted: true, schemas.AmbiguitySDKRepeated: true,
	schemas.AmbiguitySDKUnbound: true, schemas.AmbiguitySDKNameDiffers: true, schemas.AmbiguityManyDecisions: true,
	schemas.AmbiguityCallNotFinished: true,
}

// codeSet is the report's list, taken apart.
type codeSet struct {
	kinds map[string]int             // code → number of entries
	of    map[string]map[string]bool // code → ids, paths or names
	texts map[string]bool
}

func (c *codeSet) has(code, value string) bool { return c.of[code][value] }

func (v *verifier) faultCode(format string, a ...any) {
	v.add(ruleReportAmbiguity, bundle.ReportName, 0, format, a...)
}

// ownReport checks the codes and the status of a report of this runner.
func (v *verifier) ownReport(captured bool) {
	r := v.report
	c := &codeSet{kinds: map[string]int{}, of: map[string]map[string]bool{}, texts: map[string]bool{}}
	for i, text := range r.Ambiguities {
		if i > 0 && r.Ambiguities[i-1] >= text {
			v.faultCode("%.200q is repeated or not in byte order", text)
		}
		a, err := schemas.ParseCode(text)
		if err != nil {
			v.faultCode("%v", err)
			continue
		}
		if !isText([]byte(text)) {
			v.faultCode("%.200q is not the escape of any byte string", text)
		}
		if c.of[a.Code] == nil {
			c.of[a.Code] = map[string]bool{}
		}
		c.kinds[a.Code]++
		c.of[a.Code][a.Value], c.texts[text] = true, true
	}
	want := v.derived(captured, c)
	for _, text := range sortedKeys(want) {
		if !c.texts[text] {
			v.faultCode("%.200q is missing, it follows from the layers", text)
		}
	}
	for _, text := range r.Ambiguities {
		if code, _, _ := strings.Cut(text, ":"); derivedKinds[code] && c.texts[text] && !want[text] {
			v.faultCode("%.200q does not follow from the layers", text)
		}
	}
	v.checkWindows(captured, c)
	v.checkObserved(c)
	if want := schemas.WorstOf(r.Ambiguities); r.Status != want {
		v.add(ruleReportStatus, bundle.ReportName, 0, "status is %s, with these ambiguities it must be %s", r.Status, want)
	}
}

// derived are the entries of the derived kinds that the list must have.
func (v *verifier) derived(captured bool, c *codeSet) map[string]bool {
	want, h, p := map[string]bool{}, v.health, &v.policy
	when := func(is bool, code string) {
		if is {
			want[code] = true
		}
	}
	decisions := p.lines > 0
	timed, untimed := false, false
	for i := range p.list {
		timed, untimed = timed || p.list[i].timed, untimed || !p.list[i].timed
	}
	when(decisions && h.CgroupCorrelation == schemas.CorrelationFailed, schemas.AmbiguityCgroupFailed)
	when(decisions && h.KernelLayer == schemas.LayerPartial, schemas.AmbiguityKernelLost)
	when(decisions && v.kernel.lines == 0, schemas.AmbiguityNoKernelEvents)
	when(p.lines > 1 && captured && untimed, schemas.AmbiguityManyDecisions)
	when(timed && v.kernel.lines > 0 && len(v.noteTexts(noteWindows)) == 0, schemas.AmbiguityTimesUnknown)
	when(v.sdk.lines > 0 && v.sdk.ended == "", schemas.AmbiguitySDKRunNotFinished)
	both := v.sdk.lines > 0 && h.PolicyLayer == "present"
	for id, places := range p.byID {
		v.derivedOfCall(id, places, when)
		when(!p.attempts(places), schemas.AmbiguityCallIDRepeated+":"+id)
	}
	for id, s := range v.sdk.calls {
		when(s.started > 0 && s.completed == 0, schemas.AmbiguitySDKNotCompleted+":"+id)
		when(s.started == 0 && s.completed > 0, schemas.AmbiguitySDKNotStarted+":"+id)
		when(s.started > 1 || s.completed > 1, schemas.AmbiguitySDKRepeated+":"+id)
		when(both && p.byID[id] == nil, schemas.AmbiguitySDKUnbound+":"+id)
		when(s.differs, schemas.AmbiguitySDKNameDiffers+":"+id)
	}
	return want
}

// derivedOfCall gives the entries about one id of the policy layer.
func (v *verifier) derivedOfCall(id string, places []int, when func(bool, string)) {
	s := v.sdk.calls[id]
	when(v.sdk.lines > 0 && s == nil, schemas.AmbiguityNotInSDK+":"+id)
	denied := true
	for _, i := range places {
		d := &v.policy.list[i]
		denied = denied && d.denied()
		when(!d.denied() && d.timed && (d.outcome == "" || d.outcome == schemas.OutcomeServerGone || d.outcome == schemas.OutcomeClientGone),
			schemas.AmbiguityCallNotFinished+":"+id)
		if i >= len(v.report.Bindings) {
			continue
		}
		b := &v.report.Bindings[i]
		when(d.denied() && (len(b.KernelEffects) > 0 || b.EffectsCut), schemas.AmbiguityDeniedEffects+":"+id)
		when(!d.denied() && b.Window == schemas.CallWindow(id) && b.KernelEventCount == 0 && v.health.KernelLayer != schemas.LayerAbsent,
			schemas.AmbiguityDecisionNoEvents+":"+id)
	}
	when(denied && s != nil && s.completed > 0, schemas.AmbiguitySDKCompletedDenied+":"+id)
}

// checkWindows compares windows and scopes with the codes that explain them.
func (v *verifier) checkWindows(captured bool, c *codeSet) {
	times := len(v.noteTexts(noteWindows)) > 0
	sessions, _ := v.noteCount(notePolicy, "sessions")
	unknown := uint64(c.kinds[schemas.AmbiguityServerUnknown])
	known, nowhere := captured && unknown == 0, unknown > 0 && unknown >= sessions
	for i := range min(len(v.report.Bindings), len(v.policy.list)) {
		b, d := &v.report.Bindings[i], &v.policy.list[i]
		fault := func(format string, a ...any) {
			v.add(ruleReportBindings, bundle.ReportName, 0, "binding %d: "+format, append([]any{i}, a...)...)
		}
		repeated := c.has(schemas.AmbiguityCallIDRepeated, d.id)
		overlaps := c.has(schemas.AmbiguityCallsOverlap, d.id)
		alone := b.Window == schemas.CallWindow(d.id)
		if next := i + 1; d.timed && !repeated && d.attempt == 1 && d.outcome != schemas.OutcomeInputRequired &&
			next < len(v.policy.list) && v.policy.list[next].id == d.id && v.policy.list[next].timed {
			v.add(rulePolicyDecision, bundle.PolicyName, next+1, "attempt %d of a call that ended with outcome %q, expected %s", v.policy.list[next].attempt, d.outcome, schemas.OutcomeInputRequired)
		}
		switch {
		case !times && (alone || b.KernelScope != ""):
			fault("has a window of its own or a kernel_scope, but no note %s says that the kernel lines had times", noteWindows)
		case alone && (repeated || overlaps && len(v.policy.byID[d.id]) == 1): // of several attempts one may overlap
			fault("has a window of its own, but its call overlaps others or shares its id")
		case times && d.ended() && !alone && !repeated && !overlaps:
			fault("has the window of the run, and nothing says why it is not the call's own")
		case times && d.timed && b.KernelScope == "":
			fault("has no kernel_scope, but its decision has a session")
		case b.KernelScope == schemas.ScopeRun && known:
			fault("kernel_scope is %s, but no server is unknown", schemas.ScopeRun)
		case b.KernelScope == schemas.ScopeToolServer && nowhere:
			fault("kernel_scope is %s, but no server is known", schemas.ScopeToolServer)
		}
	}
}

// checkObserved checks the entries that do not follow from the layers.
func (v *verifier) checkObserved(c *codeSet) {
	for _, code := range sortedKeys(c.of) {
		for value := range c.of[code] {
			v.checkEntry(c, code, value)
		}
	}
	v.checkLogs(c)
	// A line can lie between the calls of several sessions, whose servers are in
	// each other's trees.
	idle, _ := v.noteCount(noteWindows, "idle")
	sessions, _ := v.noteCount(notePolicy, "sessions")
	if n := c.kinds[schemas.AmbiguityOutsideWindows]; (idle > 0) != (n > 0) || uint64(n) > idle && uint64(n) > sessions*idle {
		v.faultCode("%d entries %s, but note %s says idle=%d", n, schemas.AmbiguityOutsideWindows, noteWindows, idle)
	}
	v.checkPolicies(c.kinds[schemas.AmbiguitySessionOtherPolicy])
	execs := c.kinds[schemas.AmbiguityExecWithoutCall]
	more := c.has(schemas.AmbiguityExecWithoutCall, schemas.ExecWithoutCallMore)
	if execs > schemas.MaxExecWithoutCall && !more || execs > schemas.MaxExecWithoutCall+1 {
		v.faultCode("%d entries %s, expected at most %d and one for the rest", execs, schemas.AmbiguityExecWithoutCall, schemas.MaxExecWithoutCall)
	}
	agent, _ := v.noteCount(noteWindows, "agent")
	if uint64(execs) > agent {
		v.faultCode("%d entries %s, but note %s says agent=%d", execs, schemas.AmbiguityExecWithoutCall, noteWindows, agent)
	}
}

// checkPolicies compares the policies of the decisions with the one of the run, if
// its network rules were enforced, and says when none can be known.
func (v *verifier) checkPolicies(others int) {
	run, p := v.noteFields(noteNetwork)["policy"], &v.policy
	switch {
	case others == 0 && run != "" && p.digest != "" && (p.digests || p.digest != run):
		v.faultCode("no entry %s, but a policy line has another policy_digest than the note %s", schemas.AmbiguitySessionOtherPolicy, noteNetwork)
	case others > 0 && run == "" && !slices.Contains(v.events.started.EnvKeys, schemas.EnvPolicyLog):
		v.faultCode("%d entries %s, but nothing says which policy the run had", others, schemas.AmbiguitySessionOtherPolicy)
	}
}

// checkEntry checks one entry of a kind that does not follow from the layers.
func (v *verifier) checkEntry(c *codeSet, code, value string) {
	places := v.policy.byID[value]
	switch code {
	case schemas.AmbiguityCallIDRepeated:
		if len(places) < 2 {
			v.faultCode("%s:%.200q, but no two decisions have that id", code, value)
		}
	case schemas.AmbiguityEffectsOutside, schemas.AmbiguityTargetsUnknown:
		denied := code == schemas.AmbiguityTargetsUnknown && slices.ContainsFunc(places, func(i int) bool { return v.policy.list[i].timed && v.policy.list[i].denied() })
		if !denied && !slices.ContainsFunc(places, v.touched) {
			v.faultCode("%s:%.200q, but no allowed call of that id has effects in a window of its own", code, value)
		} else if len(places) == 1 && c.has(schemas.AmbiguityEffectsOutside, value) && c.has(schemas.AmbiguityTargetsUnknown, value) {
			v.faultCode("%s:%.200q, but of one call only one of the two can be", code, value)
		}
	case schemas.AmbiguityCallsOverlap:
		if !slices.ContainsFunc(places, func(i int) bool { return v.policy.list[i].timed }) || v.policy.lines < 2 {
			v.faultCode("%s:%.200q, but there are no two calls with times, one of that id", code, value)
		}
	case schemas.AmbiguityOutsideWindows:
		if places == nil {
			v.faultCode("%s:%.200q, but no decision has that id", code, value)
		}
	case schemas.AmbiguityExecWithoutCall:
		if value != schemas.ExecWithoutCallMore && !v.effects.seen["exec "+value] {
			v.faultCode("%s:%.200q, but the kernel layer does not say that it was executed", code, value)
		}
	case schemas.AmbiguityServerUnknown, schemas.AmbiguitySessionNotFinished, schemas.AmbiguitySessionOtherPolicy:
		if code == schemas.AmbiguityServerUnknown && (len(v.noteTexts(noteWindows)) == 0 || len(v.noteTexts(noteKernel)) == 0) {
			v.faultCode("%s:%.200q, but nothing says that the process tree was known", code, value)
		}
		if sessions, _ := v.noteCount(notePolicy, "sessions"); uint64(c.kinds[code]) > sessions {
			v.faultCode("%d entries %s, but note %s says sessions=%d", c.kinds[code], code, notePolicy, sessions)
		}
	}
}

// touched reports whether the decision in a place is of an allowed call with a
// window in a known tree and effects in it.
func (v *verifier) touched(i int) bool {
	if i >= len(v.report.Bindings) {
		return false
	}
	b, d := &v.report.Bindings[i], &v.policy.list[i]
	effect := b.EffectsCut || slices.ContainsFunc(b.KernelEffects, func(e string) bool { return done(e) })
	return !d.denied() && effect && b.Window == schemas.CallWindow(d.id) && b.KernelScope == schemas.ScopeToolServer
}

// checkLogs compares what is said about the logs with the layers made of them.
func (v *verifier) checkLogs(c *codeSet) {
	for _, l := range []struct {
		layer        string
		there        bool
		empty, wrong string
		env          string
		collected    []string // what is known of a collected log alone
	}{
		{"policy", v.health.PolicyLayer == "present", schemas.AmbiguityPolicyEmpty, schemas.AmbiguityPolicyInvalid, schemas.EnvPolicyLog,
			[]string{schemas.AmbiguityPolicyTruncated, schemas.AmbiguityPolicyReplaced, schemas.AmbiguityPolicyWriterOpen, schemas.AmbiguityPolicyWrittenAfter}},
		{"sdk", v.sdk.lines > 0, schemas.AmbiguitySDKEmpty, schemas.AmbiguitySDKInvalid, schemas.EnvSDKLog,
			[]string{schemas.AmbiguitySDKTruncated, schemas.AmbiguitySDKReplaced, schemas.AmbiguitySDKWriterOpen, schemas.AmbiguitySDKWrittenAfter}},
	} {
		if c.kinds[l.empty] > 0 && l.there {
			v.faultCode("%s, but the %s layer is there", l.empty, l.layer)
		}
		for _, code := range l.collected {
			if c.kinds[code] > 0 && !slices.Contains(v.events.started.EnvKeys, l.env) {
				v.faultCode("%s, but env_keys says that no such log was collected", code)
			}
		}
		if c.kinds[l.wrong] > 1 {
			v.faultCode("%d entries %s, expected one: reading ends there", c.kinds[l.wrong], l.wrong)
		}
	}
	for value := range c.of[schemas.AmbiguitySDKInvalid] {
		a, _ := schemas.ParseCode(schemas.AmbiguitySDKInvalid + ":" + value)
		if a.Line <= v.sdk.lines {
			v.faultCode("%s:%s, but %d lines before it are in the layer", schemas.AmbiguitySDKInvalid, value, v.sdk.lines)
		}
	}
}
