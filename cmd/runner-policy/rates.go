package main

import (
	"sync"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// maxRated is of how many tools under rules with a rate the calls are counted.
const maxRated = 4096

// rates counts the calls under rules with a rate.
type rates struct {
	mu    sync.Mutex
	calls map[string][]time.Time // by rule and tool: the last ones
}

// limit denies a call that is one too many.
func (t *rates) limit(d policy.Decision, tool string, at time.Time) policy.Decision {
	if !d.Allow || d.Rate.Calls == 0 {
		return d
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string][]time.Time{}
	}
	key := d.RuleID + " " + tool
	last, known := t.calls[key]
	for len(last) > 0 && at.Sub(last[0]) >= d.Rate.Per {
		last = last[1:]
	}
	if len(last) >= d.Rate.Calls || !known && len(t.calls) >= maxRated {
		d.Allow, d.Reason = false, schemas.ReasonDenyRate
		d.Say = "policy rule " + d.RuleID + " allows at most " + d.Rate.String() + " of this tool: try again later"
		return d
	}
	t.calls[key] = append(last, at)
	return d
}
