package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The rules of the v0 contract for the health.

func (v *verifier) healthDrops() {
	if h := v.health; h.RingbufDrops > 0 && h.KernelLayer != schemas.LayerPartial {
		v.faultHealth(ruleHealthDrops, "ringbuf_drops is %d with kernel_layer=%s, expected %s", h.RingbufDrops, h.KernelLayer, schemas.LayerPartial)
	}
}

func (v *verifier) healthPlatform() {
	if h := v.health; h.Platform != schemas.PlatformLinux && h.KernelLayer != schemas.LayerAbsent {
		v.faultHealth(ruleHealthPlatform, "kernel_layer is %s on %s, expected absent", h.KernelLayer, h.Platform)
	}
}

func (v *verifier) healthCgroup() {
	h := v.health
	switch clean := h.CgroupCorrelation == schemas.CorrelationClean; {
	case h.CgroupCorrelation == schemas.CorrelationFailed:
		v.faultHealth(ruleHealthCgroup, "cgroup_correlation is failed: the record is not only of the command")
	case clean && h.KernelLayer == schemas.LayerAbsent:
		v.faultHealth(ruleHealthCgroup, "cgroup_correlation is clean without a kernel layer, expected partial")
	case !clean && h.KernelLayer != schemas.LayerAbsent:
		v.faultHealth(ruleHealthCgroup, "cgroup_correlation is %s with kernel_layer=%s, expected clean or kernel_layer=absent", h.CgroupCorrelation, h.KernelLayer)
	}
}

// contractPolicyLayer checks policy_layer: the layer is present when it has lines.
func (v *verifier) contractPolicyLayer() { v.policyLayerIs(v.policyLines() > 0) }

func (v *verifier) policyLayerIs(present bool) {
	want := schemas.LayerAbsent
	if present {
		want = schemas.LayerPresent
	}
	if v.health.PolicyLayer != want {
		v.faultHealth(ruleHealthLayer, "policy_layer is %s, but the policy layer has %d lines", v.health.PolicyLayer, v.policyLines())
	}
}

func (v *verifier) healthSDKLayer() {
	want := schemas.LayerAbsent
	if v.sdkLines() > 0 {
		want = schemas.LayerSelfReported
	}
	if got := v.health.SDKLayer; got != want {
		v.faultHealth(ruleHealthLayer, "sdk_layer is %s, but the SDK layer has %d lines, expected %s", got, v.sdkLines(), want)
	}
}

// kernelNote checks that the kernel note is there when the layer is.
func (v *verifier) kernelNote() {
	h, n := v.health, len(v.noteTexts(schemas.NoteKernel))
	layer := h.KernelLayer != schemas.LayerAbsent || v.kernelLines() > 0
	switch {
	case n > 1:
		v.faultNote("%d notes %s, expected one", n, schemas.NoteKernel.Code)
	case v.noted(schemas.NoteContractOnly) && (n > 0 || layer):
		v.faultNote("note %s with a kernel layer", schemas.NoteContractOnly.Code)
	case n == 0 && layer:
		v.faultNote("no note %s, but kernel_layer is %s with %d lines", schemas.NoteKernel.Code, h.KernelLayer, v.kernelLines())
	}
}

// kernelNoteValues compares the kernel note with the lines and the health.
func (v *verifier) kernelNoteValues() {
	if !v.noted(schemas.NoteKernel) {
		return
	}
	h, f := v.health, v.noteFields(schemas.NoteKernel)
	if want := strconv.FormatUint(v.kernelLines(), 10); f[schemas.KeyMonitorEvents] != want {
		v.faultNote("%s says monitor_events=%s, the kernel layer has %s lines", schemas.NoteKernel.Code, f[schemas.KeyMonitorEvents], want)
	}
	drops, there := f[schemas.KeyRingbufDrops]
	if want := strconv.FormatUint(h.RingbufDrops, 10); there && drops != want {
		v.faultNote("%s says ringbuf_drops=%s, the health says %s", schemas.NoteKernel.Code, drops, want)
	} else if !there && h.KernelLayer != schemas.LayerAbsent {
		v.faultNote("%s says nothing about ringbuf_drops", schemas.NoteKernel.Code)
	}
	if h.KernelLayer == schemas.LayerAbsent {
		return // other implementations print what they computed before they withdrew it
	}
	for _, x := range [...]struct{ key, want string }{
		{schemas.KeyNetworkCoverage, h.NetworkCoverage}, {schemas.KeyEndpointScope, h.EndpointScope}} {
		if got, there := f[x.key]; there && got != x.want {
			v.faultNote("%s says %s=%s, the health says %q", schemas.NoteKernel.Code, x.key, got, x.want)
		}
	}
}

// lossNote compares the loss note with kernel_layer.
func (v *verifier) lossNote() {
	h, texts := v.health, v.noteTexts(schemas.NoteLoss)
	switch {
	case len(texts) > 1:
		v.faultHealth(ruleHealthLoss, "%d notes %s, expected one", len(texts), schemas.NoteLoss.Code)
	case len(texts) == 1 && h.KernelLayer == schemas.LayerComplete:
		v.faultHealth(ruleHealthLoss, "kernel_layer is complete, but note %s says%s", schemas.NoteLoss.Code, texts[0])
	}
	if len(texts) != 1 || h.KernelLayer == schemas.LayerAbsent {
		return
	}
	dropped := v.noteFields(schemas.NoteLoss)[schemas.CounterDropped]
	if dropped == "" {
		dropped = "0"
	}
	if want := strconv.FormatUint(h.RingbufDrops, 10); dropped != want {
		v.faultHealth(ruleHealthLoss, "note %s says dropped=%s, the health says ringbuf_drops %s", schemas.NoteLoss.Code, dropped, want)
	}
}

// contractNotes compares the notes about the policy and SDK layers with them.
func (v *verifier) contractNotes() {
	v.countNote(schemas.NotePolicy, v.policyLines(), map[string]uint64{schemas.KeyDecisionEvents: v.policyLines(), schemas.CounterPolicyEvents: v.policyLines()}, 1)
	v.countNote(schemas.NoteSDK, v.sdkLines(), map[string]uint64{schemas.KeySDKEvents: v.sdkLines(), schemas.KeySDKToolCalls: uint64(len(v.sdk.calls))}, 2)
}

// countNote compares the note of a layer with its lines. At least need of the
// given counts must be there, and all that are must be right.
func (v *verifier) countNote(note *schemas.Note, lines uint64, counts map[string]uint64, need int) {
	code := note.Code
	switch n := len(v.noteTexts(note)); {
	case n > 1:
		v.faultNote("%d notes %s, expected one", n, code)
		return
	case n == 0 && lines > 0:
		v.faultNote("no note %s, but the layer has %d lines", code, lines)
		return
	case n == 1 && lines == 0:
		v.faultNote("note %s, but the layer has no lines", code)
		return
	case n == 0:
		return
	}
	f := v.noteFields(note)
	for _, key := range sortedKeys(counts) {
		got, there := f[key]
		if !there {
			continue
		}
		need--
		if want := strconv.FormatUint(counts[key], 10); got != want {
			v.faultNote("%s says %s=%s, the layer says %s", code, key, got, want)
		}
	}
	if need > 0 {
		v.faultNote("%s lacks a count, expected %s", code, strings.Join(sortedKeys(counts), ", "))
	}
}

// contractNetwork compares coverage and scope with the kernel lines. Other
// implementations compute them from counters that are not in the archive, so the
// lines can only contradict them, except without a kernel layer.
func (v *verifier) contractNetwork() {
	h, net := v.health, v.kernel.net
	if h.NetworkCoverage == "" && h.EndpointScope == "" {
		return
	}
	if h.KernelLayer == schemas.LayerAbsent {
		v.profileNetwork()
		return
	}
	denies := func(what string, seen bool, by ...string) {
		if seen && slices.Contains(by, h.NetworkCoverage) {
			v.faultHealth(ruleHealthNetwork, "network_protocol_coverage is %s, but the kernel layer has %s", h.NetworkCoverage, what)
		}
	}
	denies("a connect", net.Connect, schemas.CoverageAbsent, schemas.CoverageDatagram)
	denies("a datagram", net.Datagram, schemas.CoverageAbsent, schemas.CoverageConnect)
	scope := schemas.ScopeDiagnostic
	switch h.NetworkCoverage {
	case schemas.CoverageUnknown, "":
		scope = schemas.ScopeUnknown
	case schemas.CoverageAbsent:
		scope = schemas.ScopeNotApplicable
	}
	if h.EndpointScope != "" && h.EndpointScope != scope {
		v.faultHealth(ruleHealthNetwork, "network_endpoint_claim_scope is %s, expected %s with coverage %q", h.EndpointScope, scope, h.NetworkCoverage)
	}
}
