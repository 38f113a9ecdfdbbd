package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The ambiguities and notes of this runner's reports. Most kinds follow from the layers: of
// these the list must have exactly the entries that expectedCodes gives. The others
// say what the archive does not hold (times, targets, the process tree, how the
// logs were collected): of these the list can only contradict the layers.

// derivedKinds are the kinds that follow from the layers and the bindings.
var derivedKinds = map[string]bool{
	schemas.AmbiguityCgroupFailed: true, schemas.AmbiguityDecisionNoEvents: true, schemas.AmbiguityDeniedEffects: true,
	schemas.AmbiguityKernelLost: true, schemas.AmbiguityTimesUnknown: true, schemas.AmbiguityNotInSDK: true,
	schemas.AmbiguityNoKernelEvents: true, schemas.AmbiguitySDKCompletedDenied: true, schemas.AmbiguitySDKRunNotFinished: true,
	schemas.AmbiguitySDKNotCompleted: true, schemas.AmbiguitySDKNotStarted: true, schemas.AmbiguitySDKRepeated: true,
	schemas.AmbiguitySDKUnbound: true, schemas.AmbiguityManyDecisions: true,
	schemas.AmbiguityCallNotFinished: true, schemas.NoteSDKFailed: true, schemas.NoteCallCancelled: true, schemas.NoteNotWatched: true,
	schemas.AmbiguityConnect: true, schemas.AmbiguityExchange: true, schemas.AmbiguityNames: true, schemas.AmbiguityRecordPartial: true,
}

// codeSet is the report's list, taken apart. Entries that are not known are left out.
type codeSet struct {
	kinds map[string]int             // code → number of entries
	of    map[string]map[string]bool // code → ids, paths or names
	texts map[string]bool
}

func (c *codeSet) has(code, value string) bool { return c.of[code][value] }

// ambiguities takes the report's list apart, once.
func (v *verifier) ambiguities() *codeSet {
	if v.codes != nil {
		return v.codes
	}
	v.codes = &codeSet{kinds: map[string]int{}, of: map[string]map[string]bool{}, texts: map[string]bool{}}
	for _, text := range v.entries() {
		a, err := schemas.ParseCode(text)
		if err != nil {
			continue
		}
		if v.codes.of[a.Code] == nil {
			v.codes.of[a.Code] = map[string]bool{}
		}
		v.codes.kinds[a.Code]++
		v.codes.of[a.Code][a.Value], v.codes.texts[text] = true, true
	}
	return v.codes
}

// entries are the report's ambiguities and notes.
func (v *verifier) entries() []string { return slices.Concat(v.report.Ambiguities, v.report.Notes) }

// ambiguityForms checks the entries of the lists, their order, and that each is in the list of its
// level.
func (v *verifier) ambiguityForms() {
	v.formsOf(v.report.Ambiguities, "ambiguities", false)
	v.formsOf(v.report.Notes, "notes", true)
}

func (v *verifier) formsOf(list []string, name string, notes bool) {
	for i, text := range list {
		if i > 0 && list[i-1] >= text {
			v.faultCode("%.200q is repeated or not in byte order", text)
		}
		if schemas.IsNote(text) != notes {
			v.faultCode("%.200q is among the %s, where it does not belong", text, name)
		}
		if _, err := schemas.ParseCode(text); err != nil {
			v.faultCode("%v", err)
		} else if !schemas.IsText([]byte(text)) {
			v.faultCode("%.200q is not the escape of any byte string", text)
		}
	}
}

func (v *verifier) profileStatus() {
	if r, want := v.report, schemas.WorstOf(v.report.Ambiguities); r.Status != want {
		v.add(ruleReportStatus, bundle.ReportName, 0, "status is %s, with these ambiguities it must be %s", r.Status, want)
	}
}

// derivedAmbiguities compares the entries of the derived kinds with the layers.
func (v *verifier) derivedAmbiguities() {
	c, want := v.ambiguities(), v.expectedCodes()
	for _, text := range sortedKeys(want) {
		if !c.texts[text] {
			v.faultCode("%.200q is missing, it follows from the layers", text)
		}
	}
	for _, text := range v.entries() {
		if code, _, _ := strings.Cut(text, ":"); derivedKinds[code] && c.texts[text] && !want[text] {
			v.faultCode("%.200q does not follow from the layers", text)
		}
	}
}

// expectedCodes are the entries of the derived kinds that the list must have.
func (v *verifier) expectedCodes() map[string]bool {
	want, h, p := map[string]bool{}, v.health, &v.policy
	when := func(is bool, code string) {
		if is {
			want[code] = true
		}
	}
	decisions, sdk, kernel := v.policyLines() > 0, v.sdkLines() > 0, v.kernelLines() > 0
	untimed := slices.ContainsFunc(p.list, func(d decision) bool { return !d.timed })
	when(decisions && h.CgroupCorrelation == schemas.CorrelationFailed, schemas.AmbiguityCgroupFailed)
	when(decisions && h.KernelLayer == schemas.LayerPartial, schemas.AmbiguityKernelLost)
	when(decisions && !kernel, schemas.AmbiguityNoKernelEvents)
	when(v.policyLines() > 1 && v.captured() && untimed, schemas.AmbiguityManyDecisions)
	when(v.timed() && kernel && !v.noted(schemas.NoteWindows), schemas.AmbiguityTimesUnknown)
	when(sdk && v.sdk.ended == "", schemas.AmbiguitySDKRunNotFinished)
	dropped, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped)
	for _, code := range v.wrapped.codes(h.KernelLayer == schemas.LayerComplete && dropped == 0) {
		want[code] = true
	}
	for id, places := range p.byID {
		v.codesOfCall(id, places, when)
		when(!p.attempts(places), schemas.AmbiguityCallIDRepeated+":"+id)
	}
	for id, s := range v.sdk.calls {
		failed := v.decidedAsFailed(id)
		when(s.started > 0 && s.completed == 0 && !failed, schemas.AmbiguitySDKNotCompleted+":"+id)
		when(s.started > 0 && s.completed == 0 && failed, schemas.NoteSDKFailed+":"+id)
		when(s.started == 0 && s.completed > 0, schemas.AmbiguitySDKNotStarted+":"+id)
		when(s.started > 1 || s.completed > 1, schemas.AmbiguitySDKRepeated+":"+id)
		places := v.placesOf(id)
		when(sdk && h.PolicyLayer == schemas.LayerPresent && places == nil, schemas.AmbiguitySDKUnbound+":"+id)
		denied := len(places) > 0 && !slices.ContainsFunc(places, func(i int) bool { return !p.list[i].denied() })
		when(denied && s.completed > 0, schemas.AmbiguitySDKCompletedDenied+":"+id)
	}
	return want
}

// decidedAsFailed reports whether there are decisions of an id and all ended without doing what was
// asked for.
func (v *verifier) decidedAsFailed(id string) bool {
	places := v.placesOf(id)
	return len(places) > 0 && !slices.ContainsFunc(places, func(i int) bool {
		return !slices.Contains(schemas.FailedOutcomes, v.policy.list[i].outcome)
	})
}

// codesOfCall gives the expected entries about one id of the policy layer.
func (v *verifier) codesOfCall(id string, places []int, when func(bool, string)) {
	for _, i := range places {
		d := &v.policy.list[i]
		when(v.sdkLines() > 0 && v.sdk.calls[id] == nil && v.joinOf(i) == "", schemas.AmbiguityNotInSDK+":"+id)
		open := d.outcome == "" || d.outcome == schemas.OutcomeServerGone || d.outcome == schemas.OutcomeClientGone
		when(!d.denied() && d.timed && open, schemas.AmbiguityCallNotFinished+":"+id)
		when(!d.denied() && d.timed && d.outcome == schemas.OutcomeCancelled, schemas.NoteCallCancelled+":"+id)
		when(d.denied() && d.timed && len(d.targets) == 0 && !d.cut && !d.unkept && v.targetsNamed() && v.captured() && v.noted(schemas.NoteWindows), schemas.NoteNotWatched+":"+id)
		if i >= len(v.report.Bindings) {
			continue
		}
		b := &v.report.Bindings[i]
		when(d.denied() && (len(b.KernelEffects) > 0 || b.EffectsCut), schemas.AmbiguityDeniedEffects+":"+id)
		when(!d.denied() && b.Window == schemas.CallWindow(id) && b.KernelEventCount == 0 && v.health.KernelLayer != schemas.LayerAbsent,
			schemas.AmbiguityDecisionNoEvents+":"+id)
	}
}

// observedAmbiguities checks the entries that do not follow from the layers.
func (v *verifier) observedAmbiguities() {
	c := v.ambiguities()
	for _, code := range sortedKeys(c.of) {
		if check := observed[code]; check != nil {
			for value := range c.of[code] {
				check(v, code, value)
			}
		}
	}
}

// observed are the checks of one entry, by its code.
var observed = map[string]func(v *verifier, code, value string){
	schemas.AmbiguityCallIDRepeated:     (*verifier).idRepeated,
	schemas.AmbiguityEffectsOutside:     (*verifier).effectsTargeted,
	schemas.AmbiguityTargetsUnknown:     (*verifier).effectsTargeted,
	schemas.AmbiguityCallsOverlap:       (*verifier).callOverlaps,
	schemas.AmbiguityOutsideWindows:     (*verifier).callDecided,
	schemas.AmbiguityExecWithoutCall:    (*verifier).programExecuted,
	schemas.AmbiguityServerUnknown:      (*verifier).sessionNamed,
	schemas.NoteElsewhere:               (*verifier).sessionNamed,
	schemas.AmbiguitySessionNotFinished: (*verifier).sessionNamed,
	schemas.AmbiguitySessionOtherPolicy: (*verifier).sessionNamed,
	schemas.NoteReloaded:                (*verifier).sessionNamed,
	schemas.AmbiguityDeniedTarget:       (*verifier).targetTouched,
	schemas.AmbiguityRequestEffects:     (*verifier).ofRequests,
	schemas.AmbiguityEffectsLate:        (*verifier).laterEffects,
	schemas.NoteEffectsShared:           (*verifier).laterEffects,
	schemas.NoteNamesNothing:            (*verifier).effectsTargeted,
	schemas.NoteExecBefore:              (*verifier).programExecuted,
	schemas.NoteServerBefore:            (*verifier).effectOutside,
	schemas.NoteServerBetween:           (*verifier).effectOutside,
	schemas.NoteServerRequest:           (*verifier).effectOutside,
}

func (v *verifier) idRepeated(code, id string) {
	if len(v.policy.byID[id]) < 2 {
		v.faultCode("%s:%.200q, but no two decisions have that id", code, id)
	}
}

func (v *verifier) callDecided(code, id string) {
	if v.policy.byID[id] == nil {
		v.faultCode("%s:%.200q, but no decision has that id", code, id)
	}
}

func (v *verifier) callOverlaps(code, id string) {
	timed := slices.ContainsFunc(v.policy.byID[id], func(i int) bool { return v.policy.list[i].timed })
	if !timed || v.policyLines() < 2 {
		v.faultCode("%s:%.200q, but there are no two calls with times, one of that id", code, id)
	}
}

// effectsTargeted checks an entry that says which effects of a call it named, or
// that nobody knows: there must be effects that could be the call's.
func (v *verifier) effectsTargeted(code, id string) {
	c, places := v.ambiguities(), v.policy.byID[id]
	denied := code == schemas.AmbiguityTargetsUnknown && slices.ContainsFunc(places, func(i int) bool { return v.policy.list[i].timed && v.policy.list[i].denied() })
	together := c.has(schemas.AmbiguityCallsOverlap, id) // such a call has no effects of its own
	if !denied && !together && !slices.ContainsFunc(places, v.touched) {
		v.faultCode("%s:%.200q, but no allowed call of that id has effects in a window of its own", code, id)
	} else if len(places) == 1 && slices.ContainsFunc(aboutTargets, func(other string) bool { return other != code && c.has(other, id) }) {
		v.faultCode("%s:%.200q, but of one call only one of %s can be", code, id, strings.Join(aboutTargets, ", "))
	}
}

// aboutTargets are the kinds about effects and what a call named.
var aboutTargets = []string{schemas.AmbiguityEffectsOutside, schemas.AmbiguityTargetsUnknown, schemas.NoteNamesNothing}

// touched reports whether the decision in a place is of an allowed call with a
// window in a known tree and effects in it.
func (v *verifier) touched(i int) bool {
	if i >= len(v.report.Bindings) {
		return false
	}
	b, d := &v.report.Bindings[i], &v.policy.list[i]
	effect := b.EffectsCut || slices.ContainsFunc(b.KernelEffects, schemas.EffectDone)
	return !d.denied() && effect && b.Window == schemas.CallWindow(d.id) && b.KernelScope == schemas.ScopeToolServer
}

func (v *verifier) programExecuted(code, path string) {
	if path != schemas.MoreCodes && !v.kernel.effects.seen(schemas.ExecEffect(path)) {
		v.faultCode("%s:%.200q, but the kernel layer does not say that it was executed", code, path)
	}
}

// sessionNamed checks an entry about a tool server or its proxy.
func (v *verifier) sessionNamed(code, name string) {
	if (code == schemas.AmbiguityServerUnknown || code == schemas.NoteElsewhere) && (!v.noted(schemas.NoteWindows) || !v.noted(schemas.NoteKernel)) {
		v.faultCode("%s:%.200q, but nothing says that the process tree was known", code, name)
	}
	if n := v.ambiguities().kinds[code]; uint64(n) > v.sessions() {
		v.faultCode("%d entries %s, but note %s says sessions=%d", n, code, schemas.NotePolicy.Code, v.sessions())
	}
}

// idleAmbiguities: a line can lie between the calls of several sessions, whose
// servers are in each other's trees. Lines on what a cancelled call named have no code.
func (v *verifier) idleAmbiguities() {
	c := v.ambiguities()
	idle, n := v.class(schemas.ClassIdle), c.kinds[schemas.AmbiguityOutsideWindows]
	missing := idle > 0 && n == 0 && c.kinds[schemas.NoteCallCancelled] == 0
	if missing || idle == 0 && n > 0 || uint64(n) > idle && uint64(n) > v.sessions()*idle {
		v.faultCode("%d entries %s, but note %s says idle=%d", n, schemas.AmbiguityOutsideWindows, schemas.NoteWindows.Code, idle)
	}
}

// policyAmbiguities compares the policies of the decisions with the one of the run,
// if rules of it were enforced, and says when none can be known.
func (v *verifier) policyAmbiguities() {
	const code = schemas.AmbiguitySessionOtherPolicy
	others := v.ambiguities().kinds[code]
	run, p := "", &v.policy
	for i := range schemas.Enforcements {
		note := schemas.Enforcements[i].Note
		if !v.noted(note) {
			continue
		}
		run = v.noteFields(note)[schemas.KeyPolicy]
		if others == 0 && p.digest != "" && (p.digests || p.digest != run) {
			v.faultCode("no entry %s, but a policy line has another policy_digest than the note %s", code, note.Code)
		}
		v.sessionPolicies(others, run, note)
	}
	if others > 0 && run == "" && !slices.Contains(v.events.started.EnvKeys, schemas.EnvPolicyLog) {
		v.faultCode("%d entries %s, but nothing says which policy the run had", others, code)
	}
}

// sessionPolicies compares the policies of the sessions with the one of the run.
func (v *verifier) sessionPolicies(others int, run string, note *schemas.Note) {
	const code = schemas.AmbiguitySessionOtherPolicy
	_, there := v.noteCount(schemas.NoteToolPolicy, schemas.KeyPolicies)
	if there && others == 0 && !v.noted(schemas.NoteProcessAPI) && v.noteFields(schemas.NoteToolPolicy)[schemas.KeyPolicy] != run {
		v.faultCode("no entry %s, but %s and %s do not name one policy", code, schemas.NoteToolPolicy.Code, note.Code)
	}
}

// collectedFaults are known only of a log that runner-exec collected.
var collectedFaults = []schemas.LogFault{schemas.LogTruncated, schemas.LogReplaced, schemas.LogWriterOpen, schemas.LogWrittenAfter}

// layerPresent reports whether the log of a layer held anything. A log can make its
// layer present without a line of it: then only the health says so.
func (v *verifier) layerPresent(l *schemas.Layer) bool {
	return v.lineCount(l.Member) > 0 || l.Field != nil && *l.Field(v.health) == l.Present
}

// logAmbiguities compares what is said about the logs with the layers made of them.
func (v *verifier) logAmbiguities() {
	c := v.ambiguities()
	for _, l := range schemas.LogLayers() {
		collected := slices.Contains(v.events.started.EnvKeys, l.Log.Env)
		unused := l.Name == schemas.LayerPolicy && c.kinds[schemas.NoteLogUnused] > 0
		if unused {
			v.unusedLog(&l, collected)
		}
		switch empty, there := l.LogCode(schemas.LogEmpty), v.layerPresent(&l); {
		case l.Log.MayBeEmpty():
		case c.kinds[empty] > 0 && there:
			v.faultCode("%s, but the %s layer is there", empty, l.Name)
		case c.kinds[empty] == 0 && !unused && !there && collected:
			v.faultCode("%q is missing: env_keys says that the log was collected, and there is no %s layer", empty, l.Name)
		}
		for _, fault := range collectedFaults {
			if code := l.LogCode(fault); c.kinds[code] > 0 && !collected {
				v.faultCode("%s, but env_keys says that no such log was collected", code)
			}
		}
		v.badLines(&l)
	}
}

// unusedLog checks the note that a log was collected and nobody used it: nothing else may say that somebody did, or that it is not whole.
func (v *verifier) unusedLog(l *schemas.Layer, collected bool) {
	c := v.ambiguities()
	if !collected || v.layerPresent(l) || len(v.sdk.calls) > 0 {
		v.faultCode("%s, but no such log was collected, or the %s layer or calls of the SDK are there", schemas.NoteLogUnused, l.Name)
	}
	for _, code := range sortedKeys(c.kinds) {
		if code != schemas.NoteLogUnused && strings.HasPrefix(code, l.LogCode("")) {
			v.faultCode("%s, but also %s", schemas.NoteLogUnused, code)
		}
	}
}

// badLines checks the entries about the line at which the reading of a log ended.
func (v *verifier) badLines(l *schemas.Layer) {
	c, code, lines := v.ambiguities(), l.LogCode(schemas.LogInvalid), v.lineCount(l.Member)
	if n := c.kinds[code]; n > 1 {
		v.faultCode("%d entries %s, expected one: reading ends there", n, code)
	}
	for _, value := range sortedKeys(c.of[code]) {
		if a, _ := schemas.ParseCode(code + ":" + value); l.Log.OwnLines && a.Line <= lines {
			v.faultCode("%s:%s, but %d lines before it are in the layer", code, value, lines)
		}
	}
}
