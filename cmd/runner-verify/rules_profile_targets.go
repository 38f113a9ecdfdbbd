package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// What decisions name, compared with what the report says was done. Archives of before do not have
// targets, and no note that says so.

// targetsNamed reports whether the decisions of the archive have their targets.
func (v *verifier) targetsNamed() bool { return v.noted(schemas.NoteToolPolicy) }

// profileTargets checks that what was done after a denial is something that the call named.
func (v *verifier) profileTargets() {
	if !v.targetsNamed() {
		return
	}
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		for _, e := range b.KernelEffects {
			if asked := schemas.DeniedOf(e, d.targets); d.timed && d.denied() && !d.unkept && asked != schemas.AskedFor && asked != schemas.MaybeAsked {
				v.faultBinding(i, "kernel_effects has %.200q, which is on no target of the denied call", e)
			}
		}
	})
}

// targetCode is the code that the effects of an allowed call's own window ask for, "" for none. It is not
// known where effects or targets are missing.
func (v *verifier) targetCode(i int) (code string, known bool) {
	if i >= len(v.report.Bindings) {
		return "", false
	}
	b, d := &v.report.Bindings[i], &v.policy.list[i]
	if !d.timed || d.denied() || b.Window != schemas.CallWindow(d.id) || b.KernelScope != schemas.ScopeToolServer {
		return "", true
	}
	asked := map[schemas.Asked]bool{}
	for _, e := range b.KernelEffects {
		asked[schemas.AskedOf(e, d.targets)] = true
	}
	delete(asked, schemas.NoEffect)
	switch outside := asked[schemas.Unasked]; {
	case d.unkept || asked[schemas.MaybeAsked] || b.EffectsCut && !outside && (len(d.targets) > 0 || len(asked) == 0):
		return "", false
	case len(asked) > 0 && len(d.targets) == 0 && !d.cut:
		return schemas.NoteNamesNothing, true
	case outside && d.cut, asked[schemas.MaybeHost] && !outside:
		return schemas.AmbiguityTargetsUnknown, true
	case outside:
		return schemas.AmbiguityEffectsOutside, true
	}
	return "", true
}

// targetAmbiguities compares the entries about what calls named with the targets and the effects.
func (v *verifier) targetAmbiguities() {
	if !v.targetsNamed() {
		return
	}
	c := v.ambiguities()
	for _, id := range sortedKeys(v.policy.byID) {
		places, all, want := v.policy.byID[id], true, map[string]bool{}
		for _, i := range places {
			code, known := v.targetCode(i)
			want[code], all = true, all && known
		}
		all = all && !c.has(schemas.AmbiguityCallsOverlap, id)
		denied := slices.ContainsFunc(places, func(i int) bool { return v.policy.list[i].timed && v.policy.list[i].denied() })
		for _, code := range aboutTargets {
			switch has := c.has(code, id); {
			case want[code] && !has:
				v.faultCode("%s:%.200q is missing, it follows from the targets and effects of the call", code, id)
			case has && all && !want[code] && !(denied && code == schemas.AmbiguityTargetsUnknown):
				v.faultCode("%s:%.200q does not follow from the targets and effects of the call", code, id)
			}
		}
	}
}
