package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rules for bindings of this runner: each has the window that the decision
// and the codes allow, and what it says of the kernel is in the kernel layer.

// ownBinding checks one binding against its decision and the kernel layer.
func (v *verifier) ownBinding(b *schemas.Binding, d *decision, fault func(string, ...any)) {
	if b.CgroupID != nil {
		fault("has a cgroup_id, which this runner never writes")
	}
	alone := b.Window == schemas.CallWindow(d.id)
	switch {
	case !alone && b.Window != schemas.RunWindow:
		fault("window is %q to %q, expected %q and %q, or the markers of its own call", b.Window.Start, b.Window.End, schemas.WindowRunStarted, schemas.WindowRunFinished)
	case alone && b.KernelScope == "":
		fault("has a window of its own and no kernel_scope")
	case alone && !d.ended():
		fault("has a window of its own, but the policy layer does not say when the call was over")
	case b.KernelScope != "" && !d.timed:
		fault("has a kernel_scope, but the decision has no session")
	}
	if !v.sound(bundle.KernelName) {
		return
	}
	if b.KernelEventCount > v.kernel.lines {
		fault("kernel_event_count is %d, the kernel layer has %d lines", b.KernelEventCount, v.kernel.lines)
	} else if b.KernelScope == "" && b.KernelEventCount != v.kernel.lines {
		fault("kernel_event_count is %d of the whole layer, which has %d lines", b.KernelEventCount, v.kernel.lines)
	}
	v.checkEffects(b, d, fault)
}

// checkEffects checks what a binding says that the kernel lines of its window say.
func (v *verifier) checkEffects(b *schemas.Binding, d *decision, fault func(string, ...any)) {
	size := 0
	for _, e := range b.KernelEffects {
		size += len(e)
		switch {
		case !v.effects.seen[e]:
			fault("kernel_effects has %.200q, which no line of the kernel layer says", e)
		case d.denied() && !done(e):
			fault("kernel_effects has %.200q: what failed or was refused is no effect of a denied call", e)
		}
	}
	if v.effects.bytes > schemas.MaxEffectsTotal {
		fault("kernel_effects of the report have %d bytes, at most %d", v.effects.bytes, schemas.MaxEffectsTotal)
	}
	if size > schemas.MaxEffectBytes {
		fault("kernel_effects has %d bytes, at most %d", size, schemas.MaxEffectBytes)
	}
	n := uint64(len(b.KernelEffects))
	switch {
	case n == 0 && !b.EffectsCut:
	case b.KernelScope == "":
		fault("has kernel_effects, but no kernel_scope that says whose they are")
	case d.denied(): // of any process, at any time behind the denial
	case b.Window == schemas.RunWindow:
		fault("has kernel_effects, but no window of its own")
	case n > b.KernelEventCount, n == b.KernelEventCount && b.EffectsCut && b.KernelScope == schemas.ScopeToolServer, b.KernelEventCount == 0:
		fault("kernel_effects are more than its %d kernel events", b.KernelEventCount)
	}
}
