package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// The rules for the health that this runner wrote: its notes have one form and one
// order, and their counts follow from the layers.

// profilePolicyLayer checks policy_layer: a proxy without decisions makes it present.
func (v *verifier) profilePolicyLayer() { v.policyLayerIs(v.policyLines() > 0 || v.sessions() > 0) }

func (v *verifier) profileShim() {
	if v.sdkLines() > 0 && !schemas.CollectsSDK(v.events.started.AgentShim) {
		v.faultHealth(ruleHealthLayer, "the SDK layer has %d lines, but agent_shim is none", v.sdkLines())
	}
}

func (v *verifier) blindSpotsNote() {
	if n := len(v.noteTexts(schemas.NoteBlind)); v.noted(schemas.NoteKernel) && n != 1 {
		v.faultNote("%d notes %s, expected one with %s", n, schemas.NoteBlind.Code, schemas.NoteKernel.Code)
	}
}

// profileNetwork checks coverage and scope, which follow from the kernel lines.
func (v *verifier) profileNetwork() {
	h := v.health
	coverage, scope := v.kernel.net.Fields(h.KernelLayer)
	if h.NetworkCoverage != coverage {
		v.faultHealth(ruleHealthNetwork, "network_protocol_coverage is %q, the kernel layer says %s", h.NetworkCoverage, coverage)
	}
	if h.EndpointScope != scope {
		v.faultHealth(ruleHealthNetwork, "network_endpoint_claim_scope is %q, the kernel layer says %s", h.EndpointScope, scope)
	}
}

// noteForms checks that every note is known, once there, of its form and in its place.
func (v *verifier) noteForms() {
	at := 0
	for _, text := range v.health.Notes {
		code, _, _ := schemas.CutNote(text)
		note, known := schemas.LookupNote(code)
		if !known {
			v.faultNote("%.200q is no note of this runner", text)
			continue
		}
		rank := schemas.NoteRank(code)
		if rank < at {
			v.faultNote("note %s follows notes that it must precede", code)
		}
		at = max(at, rank)
		if _, err := note.Parse(text); err != nil {
			v.faultNote("%v", err)
		}
	}
	for _, note := range schemas.Notes {
		if n := len(v.noteTexts(note)); n > 1 {
			v.faultNote("%d notes %s, expected one", n, note.Code)
		}
	}
}

// layerNotes compares the notes about the policy and SDK layers with them.
func (v *verifier) layerNotes() {
	v.sameNote(schemas.NotePolicy, v.health.PolicyLayer == schemas.LayerPresent, map[string]uint64{schemas.KeyDecisionEvents: v.policyLines()})
	v.sameNote(schemas.NoteSDK, v.sdkLines() > 0, map[string]uint64{schemas.KeySDKEvents: v.sdkLines(), schemas.KeySDKToolCalls: uint64(len(v.sdk.calls))})
}

// optionalNotes compares the notes about optional layers that are made from logs with them. Such a layer has a line,
// or no member.
func (v *verifier) optionalNotes() {
	for _, l := range schemas.LogLayers() {
		if !l.Optional {
			continue
		}
		lines := v.lineCount(l.Member)
		if _, there := v.members[l.Member]; there && lines == 0 {
			v.faultNote("the member %s has no line: then it is left out", l.Member)
		}
		v.sameNote(l.Note, lines > 0, map[string]uint64{l.Counter: lines})
	}
}

// sameNote compares the note of a layer with the layer.
func (v *verifier) sameNote(note *schemas.Note, want bool, counts map[string]uint64) {
	if there := v.noted(note); there != want {
		v.faultNote("%s, which does not go with the layer", map[bool]string{true: "note " + note.Code, false: "no note " + note.Code}[there])
		return
	}
	for _, key := range sortedKeys(counts) {
		if got, there := v.noteCount(note, key); there && got != counts[key] {
			v.faultNote("%s says %s=%d, the layer says %d", note.Code, key, got, counts[key])
		}
	}
}

// timed reports whether some decision has a session.
func (v *verifier) timed() bool {
	return slices.ContainsFunc(v.policy.list, func(d decision) bool { return d.timed })
}

// sessionsNote compares what the policy note says about sessions with the layer.
func (v *verifier) sessionsNote() {
	if _, said := v.noteFields(schemas.NotePolicy)[schemas.KeySessions]; said && v.sessions() == 0 {
		v.faultNote("%s says sessions=0, which is left out", schemas.NotePolicy.Code)
	}
	if v.timed() && v.sessions() == 0 {
		v.faultNote("%s has no sessions, but the policy layer has decisions of one", schemas.NotePolicy.Code)
	}
}

// windowsNote compares the classes of kernel lines with the layers.
func (v *verifier) windowsNote() {
	if !v.noted(schemas.NoteWindows) {
		return
	}
	switch sum, ok := v.classSum(); {
	case !ok || sum != v.kernelLines():
		v.faultNote("the counts of %s do not add up to the %d lines of the kernel layer", schemas.NoteWindows.Code, v.kernelLines())
	case v.sessions() == 0:
		v.faultNote("note %s without a session", schemas.NoteWindows.Code)
	case !v.timed() && v.class(schemas.ClassCall) > 0:
		v.faultNote("%s says call=%d, but there is no call", schemas.NoteWindows.Code, v.class(schemas.ClassCall))
	}
}

// windowsNoteCalls compares the lines in windows of calls with the bindings.
// Windows of one session share no line; servers inside each other's trees can.
func (v *verifier) windowsNoteCalls() {
	if !v.classesSound() {
		return
	}
	call, sum, all := v.class(schemas.ClassCall), uint64(0), true
	v.eachTimed(func(_ int, b *schemas.Binding, d *decision) {
		own := b.Window == schemas.CallWindow(d.id)
		if own && b.KernelScope != schemas.ScopeRun {
			sum += b.KernelEventCount
		}
		all = all && own
	})
	if v.unknownServers() >= v.sessions() && call+v.class(schemas.ClassIdle) > 0 {
		v.faultNote("%s says call=%d idle=%d, but no tool server was known", schemas.NoteWindows.Code, call, v.class(schemas.ClassIdle))
	}
	if all && call > sum || v.sessions() == 1 && sum > call {
		v.faultNote("%s says call=%d, the bindings' own windows have %d lines", schemas.NoteWindows.Code, call, sum)
	}
}
