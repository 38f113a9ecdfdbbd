package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rules for bindings that this runner wrote: each has the window that the
// decision and the codes allow, and what it says about the kernel is in the layer.

// effectSet holds what the report says that kernel lines say, and counts the lines of the
// kernel layer that say it. The report comes before the layer and its effects are few, so
// memory does not grow with the lines.
type effectSet struct {
	lines   map[string]uint64 // named in the report → how many lines say it
	silent  uint64            // lines without an effect
	longest int               // bytes of the longest effect of a line
	bytes   int               // of all effects of the report
	targets map[string]bool   // of denied targets in the report → some line is an effect on them
	buf     []byte
}

// expect takes the effects of the report's bindings, and the programs that it
// says were executed without a tool call.
func (s *effectSet) expect(r *schemas.Report) {
	s.lines = map[string]uint64{}
	if r == nil {
		return
	}
	for i := range r.Bindings {
		for _, e := range r.Bindings[i].KernelEffects {
			s.bytes += len(e)
			s.lines[e] = 0
		}
	}
	s.targets = map[string]bool{}
	for _, code := range slices.Concat(r.Ambiguities, r.Notes) {
		if a, err := schemas.ParseCode(code); err == nil && a.Code == schemas.AmbiguityDeniedTarget {
			s.targets[a.Value] = false
		}
		if effect := effectOf(code); effect != "" {
			s.lines[effect] = 0
		}
	}
}

// effectOf is the effect that an entry says that a kernel line has, "" for none.
func effectOf(entry string) string {
	a, err := schemas.ParseCode(entry)
	switch {
	case err != nil || a.Value == schemas.MoreCodes:
		return ""
	case a.Code == schemas.AmbiguityExecWithoutCall || a.Code == schemas.NoteExecBefore:
		return schemas.ExecEffect(a.Value)
	case a.Arg == schemas.ArgEffect:
		return a.Value
	}
	return ""
}

// see takes one kernel line.
func (s *effectSet) see(e *schemas.KernelEvent) {
	if s.lines == nil {
		return
	}
	if len(s.targets) > 0 && schemas.IsEffect(e) {
		for target, seen := range s.targets {
			if !seen && schemas.TargetHolds(target, []byte(schemas.TargetEndpoint(string(e.Value)))) {
				s.targets[target] = true
			}
		}
	}
	s.buf = schemas.AppendEffect(s.buf[:0], e)
	s.longest = max(s.longest, len(s.buf))
	if len(s.buf) == 0 {
		s.silent++
	} else if n, named := s.lines[string(s.buf)]; named {
		s.lines[string(s.buf)] = n + 1
	}
}

// seen reports whether some line says an effect.
func (s *effectSet) seen(effect string) bool { return s.lines[effect] > 0 }

// most is how many lines there can be where all effects are listed.
func (s *effectSet) most(effects []string) uint64 {
	n := s.silent
	for _, e := range effects {
		n += s.lines[e]
	}
	return n
}

// profileBindings checks each binding against its decision and the kernel layer.
func (v *verifier) profileBindings() {
	sound := v.sound(bundle.KernelName)
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		if b.CgroupID != nil {
			v.faultBinding(i, "has a cgroup_id, which this runner never writes")
		}
		v.windowForm(i, b, d)
		switch n := v.kernelLines(); {
		case !sound:
		case b.KernelEventCount > n:
			v.faultBinding(i, "kernel_event_count is %d, the kernel layer has %d lines", b.KernelEventCount, n)
		case b.KernelScope == "" && b.KernelEventCount != n:
			v.faultBinding(i, "kernel_event_count is %d of the whole layer, which has %d lines", b.KernelEventCount, n)
		}
	})
}

// windowForm checks a binding's window and scope against the decision.
func (v *verifier) windowForm(i int, b *schemas.Binding, d *decision) {
	own := b.Window == schemas.CallWindow(d.id)
	switch {
	case !own && b.Window != schemas.RunWindow:
		v.faultBinding(i, "window is %q to %q, expected %q and %q, or the markers of its own call", b.Window.Start, b.Window.End, schemas.WindowRunStarted, schemas.WindowRunFinished)
	case own && b.KernelScope == "":
		v.faultBinding(i, "has a window of its own and no kernel_scope")
	case own && !d.ended():
		v.faultBinding(i, "has a window of its own, but the policy layer does not say when the call was over")
	case b.KernelScope != "" && !d.timed:
		v.faultBinding(i, "has a kernel_scope, but the decision has no session")
	}
}

// profileEffects checks what bindings say that the kernel lines of their windows say.
func (v *verifier) profileEffects() {
	if !v.sound(bundle.KernelName) {
		return
	}
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		v.effectsSeen(i, b, d)
		v.effectsFit(i, b, d)
	})
}

// effectsSeen checks each effect of a binding, and their size.
func (v *verifier) effectsSeen(i int, b *schemas.Binding, d *decision) {
	size, effects := effectBytes(b), &v.kernel.effects
	for _, e := range b.KernelEffects {
		switch {
		case !effects.seen(e):
			v.faultBinding(i, "kernel_effects has %.200q, which no line of the kernel layer says", e)
		case d.denied() && !schemas.EffectDone(e):
			v.faultBinding(i, "kernel_effects has %.200q: what failed or was refused is not an effect of a denied call", e)
		}
	}
	if effects.bytes > schemas.MaxEffectsTotal {
		v.faultBinding(i, "kernel_effects of the report have %d bytes, at most %d", effects.bytes, schemas.MaxEffectsTotal)
	}
	if size > schemas.MaxEffectBytes {
		v.faultBinding(i, "kernel_effects has %d bytes, at most %d", size, schemas.MaxEffectBytes)
	}
}

// effectsFit compares the number of effects with the window and the count.
func (v *verifier) effectsFit(i int, b *schemas.Binding, d *decision) {
	n := uint64(len(b.KernelEffects))
	own := b.Window == schemas.CallWindow(d.id)
	switch {
	case n == 0 && !b.EffectsCut:
		if own && !d.denied() {
			v.effectsWhole(i, b)
		}
	case b.KernelScope == "":
		v.faultBinding(i, "has kernel_effects, but no kernel_scope that says whose they are")
	case d.denied(): // of any process, at any time after the denial
	case b.Window == schemas.RunWindow:
		v.faultBinding(i, "has kernel_effects, but no window of its own")
	case !v.cutExplained(b):
		v.faultBinding(i, "kernel_effects_cut, but %d effects of %d bytes leave room for every effect of the kernel layer", n, effectBytes(b))
	case n > b.KernelEventCount, n == b.KernelEventCount && b.EffectsCut && b.KernelScope == schemas.ScopeToolServer, b.KernelEventCount == 0:
		v.faultBinding(i, "kernel_effects are more than its %d kernel events", b.KernelEventCount)
	default:
		v.effectsWhole(i, b)
	}
}

// effectsWhole checks that the lines which a binding counts can all be among those that say
// its effects, or nothing: what is not cut is all. What an earlier call named is not the call's own.
func (v *verifier) effectsWhole(i int, b *schemas.Binding) {
	if c := v.ambiguities(); c.has(schemas.AmbiguityEffectsLate, b.ToolCallID) || c.kinds[schemas.NoteCallCancelled] > 0 {
		return
	}
	if most := v.kernel.effects.most(b.KernelEffects); !b.EffectsCut && b.KernelEventCount > most {
		v.faultBinding(i, "kernel_event_count is %d, but only %d kernel lines say one of its kernel_effects, or have no value", b.KernelEventCount, most)
	}
}

// cutExplained reports whether effects that were cut met a limit: their number, their bytes,
// those of all bindings or, where no tree is known, calls at the same time.
func (v *verifier) cutExplained(b *schemas.Binding) bool {
	n, size, effects := len(b.KernelEffects), effectBytes(b), &v.kernel.effects
	return !b.EffectsCut || n == schemas.MaxEffects || b.KernelScope == schemas.ScopeRun ||
		size+effects.longest > schemas.MaxEffectBytes || n == 0 && effects.bytes+schemas.MaxEffectBytes > schemas.MaxEffectsTotal
}

func effectBytes(b *schemas.Binding) (size int) {
	for _, e := range b.KernelEffects {
		size += len(e)
	}
	return size
}

// attemptsFollow checks that a further attempt follows an answer that asked for one.
func (v *verifier) attemptsFollow() {
	c := v.ambiguities()
	v.eachBinding(func(i int, _ *schemas.Binding, d *decision) {
		if i+1 >= len(v.policy.list) {
			return
		}
		next := &v.policy.list[i+1]
		if next.id == d.id && next.timed && d.timed && d.attempt == 1 && d.outcome != schemas.OutcomeInputRequired &&
			!c.has(schemas.AmbiguityCallIDRepeated, d.id) {
			v.add(rulePolicyDecision, bundle.PolicyName, i+2, "attempt %d of a call that ended with outcome %q, expected %s", next.attempt, d.outcome, schemas.OutcomeInputRequired)
		}
	})
}

// profileWindows compares windows and scopes with the codes that explain them.
func (v *verifier) profileWindows() {
	c := v.ambiguities()
	times := v.noted(schemas.NoteWindows)
	unknown := v.unknownServers()
	known, nowhere := v.captured() && unknown == 0, unknown > 0 && unknown >= v.sessions()
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		repeated := c.has(schemas.AmbiguityCallIDRepeated, d.id)
		overlaps := c.has(schemas.AmbiguityCallsOverlap, d.id)
		own := b.Window == schemas.CallWindow(d.id)
		switch {
		case !times && (own || b.KernelScope != ""):
			v.faultBinding(i, "has a window of its own or a kernel_scope, but no note %s says that the kernel lines had times", schemas.NoteWindows.Code)
		case own && (repeated || overlaps && len(v.policy.byID[d.id]) == 1): // of several attempts one may overlap
			v.faultBinding(i, "has a window of its own, but its call overlaps others or shares its id")
		case times && d.ended() && !own && !repeated && !overlaps:
			v.faultBinding(i, "has the window of the run, and nothing says why it is not the call's own")
		case times && d.timed && b.KernelScope == "":
			v.faultBinding(i, "has no kernel_scope, but its decision has a session")
		case b.KernelScope == schemas.ScopeRun && known:
			v.faultBinding(i, "kernel_scope is %s, but no server is unknown", schemas.ScopeRun)
		case b.KernelScope == schemas.ScopeToolServer && nowhere:
			v.faultBinding(i, "kernel_scope is %s, but no server is known", schemas.ScopeToolServer)
		}
	})
}

// classesSound reports whether the classes of kernel lines are known and add up.
func (v *verifier) classesSound() bool {
	sum, ok := v.classSum()
	return ok && v.report != nil && v.noted(schemas.NoteWindows) && sum == v.kernelLines() && v.sessions() > 0 && (v.timed() || v.class(schemas.ClassCall) == 0)
}

// eachTimed calls f for every binding whose decision has a session.
func (v *verifier) eachTimed(f func(i int, b *schemas.Binding, d *decision)) {
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		if d.timed {
			f(i, b, d)
		}
	})
}

// profileCounts compares the bindings' counts with the classes of kernel lines.
func (v *verifier) profileCounts() {
	if !v.classesSound() {
		return
	}
	call, between := v.class(schemas.ClassCall), v.class(schemas.ClassCall)+v.class(schemas.ClassIdle)
	v.eachTimed(func(i int, b *schemas.Binding, d *decision) {
		own, limit := b.Window == schemas.CallWindow(d.id), between+v.class(schemas.ClassSetup)+v.class(schemas.ClassRequest)
		switch {
		case b.KernelScope == schemas.ScopeRun:
			limit = v.class(schemas.ClassSetup) + v.class(schemas.ClassAgent)
		case own:
			limit = call
		}
		// The tree of the one session has all lines of its calls, and those between them.
		if v.sessions() == 1 && b.KernelScope == schemas.ScopeToolServer && !own && b.KernelEventCount < between {
			v.faultBinding(i, "kernel_event_count is %d of the whole tree, note %s says at least %d", b.KernelEventCount, schemas.NoteWindows.Code, between)
		}
		if b.KernelEventCount > limit {
			v.faultBinding(i, "kernel_event_count is %d, note %s leaves %d", b.KernelEventCount, schemas.NoteWindows.Code, limit)
		}
	})
}

// wholeCounts checks that bindings over the same lines of the whole run count the same: there
// are no more trees than sessions, and the lines of no tree are one set.
func (v *verifier) wholeCounts() {
	counts := map[string]map[uint64]bool{schemas.ScopeToolServer: {}, schemas.ScopeRun: {}}
	most := map[string]uint64{schemas.ScopeToolServer: v.sessions(), schemas.ScopeRun: 1}
	v.eachTimed(func(i int, b *schemas.Binding, d *decision) {
		of := counts[b.KernelScope]
		if of == nil || b.Window != schemas.RunWindow || of[b.KernelEventCount] {
			return
		}
		if of[b.KernelEventCount] = true; uint64(len(of)) > most[b.KernelScope] {
			v.faultBinding(i, "kernel_event_count is %d, another binding over the same lines of the whole run counts differently", b.KernelEventCount)
		}
	})
}

// sessionsDiffer checks that decisions have no more policies than there are sessions, each of
// which has one if it did not read its file again, and that a call that overlaps is not alone.
func (v *verifier) sessionsDiffer() {
	if n := uint64(len(v.policy.policies)); n > v.mostPolicies() {
		v.add(rulePolicyDecision, bundle.PolicyName, 0, "decisions have %d different policy_digests, note %s says sessions=%d", n, schemas.NotePolicy.Code, v.sessions())
	}
	overlaps := v.ambiguities().of[schemas.AmbiguityCallsOverlap]
	for id := range overlaps {
		if timed := v.policy.byID[id]; len(overlaps) == 1 && len(timed) < 2 {
			v.faultCode("%s:%.200q is alone, but two calls overlap each other", schemas.AmbiguityCallsOverlap, id)
		}
	}
}
