package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Codes of the health notes that carry counts or values.
const (
	noteContractOnly = "contract_only_mode"
	noteKernel       = "s2_kernel_capture"
	noteLoss         = "s2_kernel_loss"
	noteBlind        = "s2_blind_spots"
	notePolicy       = "s4_policy_capture"
	noteSDK          = "s5_sdk_capture"
	noteWindows      = "s6_windows"
)

// noteTexts are the texts of the notes with a code, without the code.
func (v *verifier) noteTexts(code string) []string {
	var out []string
	for _, n := range v.health.Notes {
		if c, text, ok := strings.Cut(n, ":"); ok && c == code {
			out = append(out, text)
		}
	}
	return out
}

// noteFields are the key=value words of the first note with a code; of a repeated
// key the first counts, because later words may be names. Empty without the note.
func (v *verifier) noteFields(code string) map[string]string {
	out := map[string]string{}
	texts := v.noteTexts(code)
	if len(texts) == 0 {
		return out
	}
	for _, word := range strings.Fields(texts[0]) {
		if k, val, ok := strings.Cut(word, "="); ok && out[k] == "" {
			out[k] = val
		}
	}
	return out
}

func (v *verifier) fault(rule, format string, a ...any) {
	v.add(rule, bundle.HealthName, 0, format, a...)
}

// checkHealth compares the health with the layers and with itself.
func (v *verifier) checkHealth() {
	h := v.health
	if h.RingbufDrops > 0 && h.KernelLayer != schemas.LayerPartial {
		v.fault(ruleHealthDrops, "ringbuf_drops is %d with kernel_layer=%s, expected %s", h.RingbufDrops, h.KernelLayer, schemas.LayerPartial)
	}
	if h.Platform != "linux" && h.KernelLayer != schemas.LayerAbsent {
		v.fault(ruleHealthPlatform, "kernel_layer is %s on %s, expected absent", h.KernelLayer, h.Platform)
	}
	switch clean := h.CgroupCorrelation == schemas.CorrelationClean; {
	case h.CgroupCorrelation == schemas.CorrelationFailed:
		v.fault(ruleHealthCgroup, "cgroup_correlation is failed: the record is not of the command alone")
	case clean && h.KernelLayer == schemas.LayerAbsent:
		v.fault(ruleHealthCgroup, "cgroup_correlation is clean without a kernel layer, expected partial")
	case !clean && h.KernelLayer != schemas.LayerAbsent:
		v.fault(ruleHealthCgroup, "cgroup_correlation is %s with kernel_layer=%s, expected clean or kernel_layer=absent", h.CgroupCorrelation, h.KernelLayer)
	}
	v.checkLayers()
	v.checkKernelNote()
	v.checkLoss()
	if v.events.own() {
		v.checkOwnNotes()
	} else {
		v.checkCount(notePolicy, v.policy.lines, map[string]uint64{"decision_events": v.policy.lines, "policy_events": v.policy.lines}, 1)
		v.checkCount(noteSDK, v.sdk.lines, map[string]uint64{"sdk_events": v.sdk.lines, "sdk_tool_calls": uint64(len(v.sdk.calls))}, 2)
	}
	if h.NetworkCoverage != "" || h.EndpointScope != "" {
		v.checkNetwork()
	}
}

func (v *verifier) checkLayers() {
	h := v.health
	want := "absent"
	sessions := uint64(0)
	if v.events.own() {
		sessions, _ = v.noteCount(notePolicy, "sessions")
	}
	if v.policy.lines > 0 || sessions > 0 {
		want = "present"
	}
	if h.PolicyLayer != want {
		v.fault(ruleHealthLayer, "policy_layer is %s, but the policy layer has %d lines", h.PolicyLayer, v.policy.lines)
	}
	want = "absent"
	if v.sdk.lines > 0 {
		want = "self_reported"
	}
	if h.SDKLayer != want {
		v.fault(ruleHealthLayer, "sdk_layer is %s, but the SDK layer has %d lines, expected %s", h.SDKLayer, v.sdk.lines, want)
	}
	if v.events.own() && v.sdk.lines > 0 && v.events.started.AgentShim == "none" {
		v.fault(ruleHealthLayer, "the SDK layer has %d lines, but agent_shim is none", v.sdk.lines)
	}
}

// checkKernelNote compares the kernel note with the lines and the health.
func (v *verifier) checkKernelNote() {
	h := v.health
	texts := v.noteTexts(noteKernel)
	contractOnly := len(v.noteTexts(noteContractOnly)) > 0
	switch {
	case len(texts) > 1:
		v.fault(ruleHealthNote, "%d notes %s, expected one", len(texts), noteKernel)
	case contractOnly && (len(texts) > 0 || h.KernelLayer != schemas.LayerAbsent || v.kernel.lines > 0):
		v.fault(ruleHealthNote, "note %s with a kernel layer", noteContractOnly)
	case len(texts) == 0 && (h.KernelLayer != schemas.LayerAbsent || v.kernel.lines > 0):
		v.fault(ruleHealthNote, "no note %s, but kernel_layer is %s with %d lines", noteKernel, h.KernelLayer, v.kernel.lines)
	}
	if len(texts) == 0 {
		return
	}
	if v.events.own() && len(v.noteTexts(noteBlind)) != 1 {
		v.fault(ruleHealthNote, "%d notes %s, expected one beside %s", len(v.noteTexts(noteBlind)), noteBlind, noteKernel)
	}
	f := v.noteFields(noteKernel)
	if want := strconv.FormatUint(v.kernel.lines, 10); f["monitor_events"] != want {
		v.fault(ruleHealthNote, "%s says monitor_events=%s, the kernel layer has %s lines", noteKernel, f["monitor_events"], want)
	}
	drops, there := f["ringbuf_drops"]
	if want := strconv.FormatUint(h.RingbufDrops, 10); there && drops != want {
		v.fault(ruleHealthNote, "%s says ringbuf_drops=%s, the health says %s", noteKernel, drops, want)
	} else if !there && h.KernelLayer != schemas.LayerAbsent {
		v.fault(ruleHealthNote, "%s says nothing about ringbuf_drops", noteKernel)
	}
	if h.KernelLayer == schemas.LayerAbsent {
		return // other implementations print what they computed before they withdrew it
	}
	for _, x := range [...]struct{ key, want string }{
		{"network_protocol_coverage", h.NetworkCoverage}, {"network_endpoint_claim_scope", h.EndpointScope}} {
		if got, there := f[x.key]; there && got != x.want {
			v.fault(ruleHealthNote, "%s says %s=%s, the health says %q", noteKernel, x.key, got, x.want)
		}
	}
}

// checkLoss compares the loss note with kernel_layer.
func (v *verifier) checkLoss() {
	h := v.health
	texts := v.noteTexts(noteLoss)
	switch {
	case len(texts) > 1:
		v.fault(ruleHealthLoss, "%d notes %s, expected one", len(texts), noteLoss)
	case len(texts) == 1 && h.KernelLayer == schemas.LayerComplete:
		v.fault(ruleHealthLoss, "kernel_layer is complete, but note %s says%s", noteLoss, texts[0])
	case len(texts) == 0 && v.events.own() && h.KernelLayer == schemas.LayerPartial && h.RingbufDrops == 0:
		v.fault(ruleHealthLoss, "kernel_layer is %s without a cause", h.KernelLayer)
	}
	if len(texts) != 1 || h.KernelLayer == schemas.LayerAbsent {
		return
	}
	dropped := v.noteFields(noteLoss)["dropped"]
	if dropped == "" {
		dropped = "0"
	}
	if want := strconv.FormatUint(h.RingbufDrops, 10); dropped != want {
		v.fault(ruleHealthLoss, "note %s says dropped=%s, the health says ringbuf_drops %s", noteLoss, dropped, want)
	}
}

// checkCount compares the note of a layer with its lines. At least need of the
// given counts must be there, and all that are must be right.
func (v *verifier) checkCount(code string, lines uint64, counts map[string]uint64, need int) {
	texts := v.noteTexts(code)
	switch {
	case len(texts) > 1:
		v.fault(ruleHealthNote, "%d notes %s, expected one", len(texts), code)
		return
	case len(texts) == 0 && lines > 0:
		v.fault(ruleHealthNote, "no note %s, but the layer has %d lines", code, lines)
		return
	case len(texts) == 1 && lines == 0:
		v.fault(ruleHealthNote, "note %s, but the layer has no lines", code)
		return
	case len(texts) == 0:
		return
	}
	f := v.noteFields(code)
	for _, key := range sortedKeys(counts) {
		got, there := f[key]
		if !there {
			continue
		}
		need--
		if want := strconv.FormatUint(counts[key], 10); got != want {
			v.fault(ruleHealthNote, "%s says %s=%s, the layer says %s", code, key, got, want)
		}
	}
	if need > 0 {
		v.fault(ruleHealthNote, "%s lacks a count, expected %s", code, strings.Join(sortedKeys(counts), ", "))
	}
}

// checkNetwork compares coverage and scope with the kernel lines. This runner's
// values follow from the lines exactly. Others compute them from counters that
// are not in the archive; there the lines can only contradict them.
func (v *verifier) checkNetwork() {
	h, net := v.health, v.kernel.net
	wantCoverage, wantScope := net.Fields(h.KernelLayer)
	if v.events.own() || h.KernelLayer == schemas.LayerAbsent {
		if h.NetworkCoverage != wantCoverage {
			v.fault(ruleHealthNetwork, "network_protocol_coverage is %q, the kernel layer says %s", h.NetworkCoverage, wantCoverage)
		}
		if h.EndpointScope != wantScope {
			v.fault(ruleHealthNetwork, "network_endpoint_claim_scope is %q, the kernel layer says %s", h.EndpointScope, wantScope)
		}
		return
	}
	denies := func(what string, seen bool, by ...string) {
		if seen && slices.Contains(by, h.NetworkCoverage) {
			v.fault(ruleHealthNetwork, "network_protocol_coverage is %s, but the kernel layer has %s", h.NetworkCoverage, what)
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
		v.fault(ruleHealthNetwork, "network_endpoint_claim_scope is %s, expected %s with coverage %q", h.EndpointScope, scope, h.NetworkCoverage)
	}
}
