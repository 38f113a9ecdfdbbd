package main

import (
	"context"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// summarise fills in what the archive says, where it could be read.
func (v *verifier) summarise() {
	r := &v.res
	r.Findings, r.Demands, r.Claims, r.NonClaims = []archive.Finding{}, []verdict.Demand{}, []string{}, []string{}
	r.Valid = v.total == 0
	h, e := v.health, v.events
	if h == nil || v.report == nil || e.started == nil || e.finished == nil {
		return
	}
	r.Record = &verdict.Record{Origin: v.origin(), Platform: h.Platform, KernelLayer: h.KernelLayer, RingbufDrops: h.RingbufDrops,
		CgroupCorrelation: h.CgroupCorrelation, PolicyLayer: h.PolicyLayer, SDKLayer: h.SDKLayer,
		NetworkCoverage: h.NetworkCoverage, EndpointScope: h.EndpointScope, Correlation: v.report.Status,
		Command: e.started.Command, ExitCode: e.finished.ExitCode, Signal: e.finished.Signal, Success: e.finished.Success,
		KernelEvents: v.kernelLines(), PolicyEvents: v.policyLines(), SDKEvents: v.sdkLines(),
		Surface: map[string]uint64{}, Notes: h.Notes, ToolPolicy: v.toolPolicy()}
	// What an archive leaves out reads unknown.
	if h.NetworkCoverage == "" {
		r.Record.NetworkCoverage = schemas.CoverageUnknown
	}
	if h.EndpointScope == "" {
		r.Record.EndpointScope = schemas.ScopeUnknown
	}
	for i, set := range schemas.SurfaceSets {
		r.Record.Surface[set] = v.surface.counted[i]
	}
	if r.Valid {
		r.Claims, r.NonClaims = verdict.Claims(r.Record, v.report.Bindings), verdict.NonClaims
	}
}

// demand checks requirements and assertions and completes the result. Nothing is
// met by an archive that is not valid.
func (v *verifier) demand(ctx context.Context, require []requirement, assert []*assertion.Assertion) {
	r := &v.res
	for _, q := range require {
		met := false
		if r.Record == nil {
			v.add(ruleRequire, "", 0, "%s: the archive could not be read so far", q)
		} else if why, typed := assertion.Blind(r.Record).Missing(q.key); why != "" {
			v.add(ruleRequire, "", 0, "%s is required, but %s; %s", q, why, typed)
		} else {
			var is string
			if met, is = q.met(r); !met {
				v.add(ruleRequire, "", 0, "%s is required, the record has %s=%s", q, q.key, is)
			}
		}
		r.Demands = append(r.Demands, verdict.Demand{Demand: q.String(), Met: met && r.Valid})
	}
	if len(assert) > 0 {
		input := v.collected.Documents(r)
		var hidden *assertion.Blindness
		if r.Record != nil {
			hidden = assertion.Blind(r.Record)
		}
		for _, a := range assert {
			fault := a.Check(ctx, input, hidden).Fault
			a.Close()
			if fault != "" {
				v.add(ruleAssert, "", 0, "%q does not hold: %s", a.Text, fault)
			}
			r.Demands = append(r.Demands, verdict.Demand{Demand: strings.ToValidUTF8(a.Text, "\ufffd"), Met: fault == "" && r.Valid})
		}
	}
	if v.attested != nil {
		r.Demands = append(r.Demands, verdict.Demand{Demand: v.attested.String(), Met: v.attested.met && r.Valid})
	}
	r.Met = v.total == 0
	r.FindingCount = v.total
	if v.list != nil {
		r.Findings = v.list
	}
}
