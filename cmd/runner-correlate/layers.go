package main

import (
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// layers puts what is known of the policy and the SDK layer into the health.
func (j *joiner) layers(h *schemas.Health) {
	var notes []string
	if note := (&capture{j.stages[0]}).enforcement(); note != "" {
		notes = append(notes, note)
	}
	p := j.policy
	if p != nil && p.present() {
		h.PolicyLayer = "present"
		note := fmt.Sprintf("s4_policy_capture: decision_events=%d", len(p.decisions))
		if len(p.sessions) > 0 {
			note += fmt.Sprintf(" sessions=%d refused=%d", len(p.sessions), p.refused)
		}
		notes = append(notes, note)
	}
	if s := j.sdk; s != nil && s.events > 0 {
		h.SDKLayer = "self_reported"
		notes = append(notes, fmt.Sprintf("s5_sdk_capture: sdk_events=%d sdk_tool_calls=%d", s.events, len(s.calls)))
	}
	if p != nil && len(p.sessions) > 0 && j.hasTimes() {
		a := j.join
		notes = append(notes, fmt.Sprintf("s6_windows: call=%d setup=%d idle=%d agent=%d", a.inCall, a.setup, a.idle, a.agent))
	}
	// Other stages' notes stand last.
	last := len(h.Notes) - len(j.stages[0].Notes) - len(j.stages[1].Notes)
	h.Notes = slices.Insert(h.Notes, last, notes...)
}

// enforcement is the note about network rules, "" when there were none.
func (c *capture) enforcement() string {
	if c.fact("network_rules") != "enforced" {
		return ""
	}
	return fmt.Sprintf("s4_network_policy: rules=%d blocked=%d policy=%s", c.n("network_rules"), c.n("blocked"), c.fact("network_policy"))
}

// writeLayers writes the lines of the policy and the SDK layer.
func (j *joiner) writeLayers() error {
	if j.policy != nil {
		for i, d := range j.policy.decisions {
			e := d.event
			e.Schema, e.RunID, e.Seq, e.SourceEventType = schemas.SchemaPolicyEvent, j.in.Header().RunID, uint64(i), schemas.LogDecision
			if err := j.out.Write(e); err != nil {
				return err
			}
		}
	}
	if j.sdk != nil {
		return j.sdk.lines(j.out.WriteRaw)
	}
	return nil
}

// writeReport writes the report in parts: its arrays may be long.
func (j *joiner) writeReport(r *schemas.Report) error {
	if j.policy != nil {
		for _, d := range j.policy.decisions {
			if err := j.out.Write(schemas.BindingEntry{Schema: schemas.SchemaBinding, RunID: r.RunID, Binding: j.bind(d)}); err != nil {
				return err
			}
		}
	}
	for _, code := range r.Ambiguities {
		if err := j.out.Write(schemas.AmbiguityEntry{Schema: schemas.SchemaAmbiguity, RunID: r.RunID, Code: code}); err != nil {
			return err
		}
	}
	r.Bindings, r.Ambiguities = []schemas.Binding{}, []string{}
	return j.out.Write(r)
}

// count adds the counters of the layers that were asked for.
func (j *joiner) count(counters map[string]uint64) {
	if j.policy != nil {
		counters["policy_events"] = uint64(len(j.policy.decisions))
	}
	if j.sdk != nil {
		counters["sdk_events"] = j.sdk.events
	}
}

// seal is the worst of what came in. A decision log with a hole makes one here.
func (j *joiner) seal() schemas.Status {
	status := j.in.Trailer().Status
	if p := j.policy; p != nil {
		status = schemas.Worst(status, p.facts.seal)
		c := codes{}
		c.ofLog(policyCodes, p.facts, p.bad, false)
		if len(c) > 0 {
			status = schemas.StatusPartial
		}
	}
	if j.sdk != nil {
		status = schemas.Worst(status, j.sdk.facts.seal)
	}
	return status
}
