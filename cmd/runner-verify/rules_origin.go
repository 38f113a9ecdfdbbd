package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Which rules hold is decided by a mark: the elapsed time, which this runner never writes and
// every other implementation does. So an archive must not have marks of both: with one key
// more it would be checked by fewer rules.

const ruleOrigin = "origin.marks"

// origin says by which rules the archive is checked.
func (v *verifier) origin() string {
	if v.writtenByRunner() {
		return schemas.OriginRunner
	}
	return schemas.OriginContract
}

// elapsedBoth checks that the mark is in both run events or in none.
func (v *verifier) elapsedBoth() {
	s, f := v.events.started, v.events.finished
	if s != nil && f != nil && (s.ElapsedMS == nil) != (f.ElapsedMS == nil) {
		v.add(ruleOrigin, bundle.EventsName, 0, "window_elapsed_ms is in one run event and not in the other")
	}
}

// contractMarks checks that an archive with elapsed times has no note that only this runner
// writes.
func (v *verifier) contractMarks() {
	for _, n := range schemas.Notes {
		if !n.Shared && v.noted(n) {
			v.faultHealth(ruleOrigin, "note %s is this runner's, which writes no window_elapsed_ms", n.Code)
		}
	}
}

// profileMarks checks that the health has the keys that this runner writes, and no others.
func (v *verifier) profileMarks() {
	h := v.health
	for _, k := range [...]struct {
		key  string
		want bool
		is   bool
	}{
		{"capture_origin", false, h.CaptureOrigin != ""}, {"redaction", false, h.Redaction != nil},
		{schemas.KeyNetworkCoverage, true, h.NetworkCoverage != ""}, {schemas.KeyEndpointScope, true, h.EndpointScope != ""},
	} {
		if k.is && !k.want {
			v.faultHealth(ruleOrigin, "%s, which this runner never writes", k.key)
		} else if k.want && !k.is {
			v.faultHealth(ruleOrigin, "%s is missing, which this runner always writes", k.key)
		}
	}
}
