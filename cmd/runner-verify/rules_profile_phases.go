package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Entries about what happened outside of calls' own windows. Which line is of which time is not in the
// archive, so they can only contradict the kernel layer, the counts of the classes, and each other.

// classOfEntries is the class whose lines give entries of a kind, each at least one line.
var classOfEntries = map[string]string{
	schemas.AmbiguityExecWithoutCall: schemas.ClassAgent, schemas.NoteExecBefore: schemas.ClassAgent,
	schemas.NoteServerBefore: schemas.ClassSetup, schemas.NoteServerBetween: schemas.ClassIdle, schemas.NoteServerRequest: schemas.ClassRequest,
}

// boundedKinds are the kinds of which at most so many entries are named one by one.
var boundedKinds = []string{schemas.AmbiguityExecWithoutCall, schemas.NoteExecBefore, schemas.NoteServerBefore, schemas.NoteServerBetween,
	schemas.NoteServerRequest, schemas.AmbiguityDeniedTarget}

// boundedAmbiguities counts the entries about paths and effects.
func (v *verifier) boundedAmbiguities() {
	const most = schemas.MaxCodesOfKind
	c := v.ambiguities()
	for _, code := range boundedKinds {
		n, more := c.kinds[code], c.has(code, schemas.MoreCodes)
		if n > most && !more || n > most+1 || more && n <= most && code != schemas.AmbiguityExecWithoutCall { // of which some may have had no room
			v.faultCode("%d entries %s, expected at most %d and one for the rest", n, code, most)
		}
		if class := classOfEntries[code]; class != "" && uint64(n) > v.class(class) {
			v.faultCode("%d entries %s, but note %s says %s=%d", n, code, schemas.NoteWindows.Code, class, v.class(class))
		}
	}
	if n := v.class(schemas.ClassRequest); n == 0 && c.kinds[schemas.AmbiguityRequestEffects] > 0 {
		v.faultCode("%d entries %s, but note %s says that no request ran", c.kinds[schemas.AmbiguityRequestEffects], schemas.AmbiguityRequestEffects, schemas.NoteWindows.Code)
	}
}

// effectOutside checks an entry with an effect: some line must say it, and it must have been done.
func (v *verifier) effectOutside(code, effect string) {
	if effect != schemas.MoreCodes && (!v.kernel.effects.seen(effect) || !schemas.EffectDone(effect)) {
		v.faultCode("%s:%.200q, but the kernel layer does not say that it was done", code, effect)
	}
}

// ofServers checks an entry that is about tool servers: some server must be known.
func (v *verifier) ofServers(code, value string) {
	if !v.noted(schemas.NoteWindows) || !v.captured() || v.unknownServers() >= v.sessions() {
		v.faultCode("%s:%.200q, but no tool server was known", code, value)
	}
}

// targetTouched checks an entry about a denied target: some effect must be on it.
func (v *verifier) targetTouched(code, target string) {
	if v.ofServers(code, target); target != schemas.MoreCodes && !v.kernel.effects.targets[target] {
		v.faultCode("%s:%.200q, but the kernel layer has no effect on it", code, target)
	}
}

// ofRequests checks an entry about a request.
func (v *verifier) ofRequests(code, method string) { v.ofServers(code, method) }

// laterEffects checks an entry about an effect that an earlier call named: two calls have it, or a call and a
// request.
func (v *verifier) laterEffects(code, id string) {
	places := v.policy.byID[id]
	allowed := slices.ContainsFunc(places, func(i int) bool {
		d := &v.policy.list[i]
		return d.timed && !d.denied() && d.outcome != ""
	})
	alone := v.ambiguities().kinds[code] == 1 && len(places) < 2 && !(code == schemas.AmbiguityEffectsLate && v.class(schemas.ClassRequest) > 0)
	if !allowed || alone {
		v.faultCode("%s:%.200q, but there are no two calls that were allowed and have ended, one of that id", code, id)
	}
	v.ofServers(code, id)
}
