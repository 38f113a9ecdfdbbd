// Package health has what the observation health of a run derives from: the healths of the
// stages before runner-correlate. runner-correlate writes what follows from them, and
// runner-pack compares it again.
package health

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Capture is the stage health of runner-capture.
type Capture struct{ Health *schemas.StageHealth }

func (c *Capture) n(counter string) uint64 { return c.Health.Counters[counter] }

// Fact is a fact of the stage health, "" without it.
func (c *Capture) Fact(name string) string { return c.Health.Facts[name] }

// Attached reports whether there was a capture.
func (c *Capture) Attached() bool {
	return c.Fact(schemas.FactKernelCapture) == schemas.CaptureAttached
}

// Enforced reports whether rules of a kind were enforced.
func (c *Capture) Enforced(e *schemas.Enforcement) bool {
	return c.Fact(e.State) == schemas.RulesEnforced
}

// Check refuses a stage health with a missing counter, which must not count as zero,
// or with an unknown one, which could be a loss, and one whose counters do not add up.
func (c *Capture) Check() error {
	if fact, there := c.Health.Facts[schemas.FactConfined]; there {
		if _, err := schemas.SplitConfined(fact); err != nil {
			return fmt.Errorf("%s reports %w", c.Health.Stage, err)
		}
	}
	if state := c.Fact(schemas.FactKernelCapture); state == schemas.CaptureNotRequested || state == schemas.CaptureUnsupported {
		return c.checkAbsent()
	}
	for _, name := range schemas.CountersOf(schemas.StageCapture, "") {
		if _, ok := c.Health.Counters[name]; !ok {
			return fmt.Errorf("%s reports no counter %q", c.Health.Stage, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Health.Counters)) {
		if !schemas.KnownCounter(schemas.StageCapture, name) {
			return fmt.Errorf("%s reports a counter %.80q, which this release does not know: it could be a loss", c.Health.Stage, name)
		}
	}
	for _, f := range schemas.FactsOf(schemas.StageCapture, "") {
		if err := f.Check(c.Health); err != nil {
			return err
		}
	}
	if err := c.checkMissed(); err != nil {
		return err
	}
	for i := range schemas.Enforcements {
		if err := c.checkEnforcement(&schemas.Enforcements[i]); err != nil {
			return err
		}
	}
	if err := c.checkSums(); err != nil {
		return err
	}
	if platform := c.Fact(schemas.FactPlatform); platform != schemas.PlatformLinux {
		return fmt.Errorf("%s claims a kernel capture on %q", c.Health.Stage, platform)
	}
	return nil
}

// checkSums checks that every record that was read is accounted for, that the drops by
// operation are those that were counted, and that moves which nobody saw are escapes.
func (c *Capture) checkSums() error {
	read, readOK := schemas.Total(c.n(schemas.CounterRead), c.n(schemas.CounterFileInserted))
	sum, ok := schemas.Total(c.n(schemas.CounterCanary), c.n(schemas.CounterForeign), c.n(schemas.CounterDecodeErrors), c.n(schemas.CounterOutcomes), c.Health.Out)
	if !readOK || !ok || read != sum {
		return fmt.Errorf("%s read %d records but accounts for %d", c.Health.Stage, read, sum)
	}
	if _, ok := schemas.Total(c.n(schemas.CounterEmitted), c.n(schemas.CounterDropped)); !ok {
		return fmt.Errorf("%s counts more records than there is room for", c.Health.Stage)
	}
	parts, counted, err := c.family(schemas.CounterDroppedByOp)
	if err != nil {
		return err
	}
	// A capture that reports no preemption is of a release that may not count by operation.
	if dropped := c.n(schemas.CounterDropped); parts != dropped && (counted || c.Fact(schemas.FactPreemption) != "") {
		return fmt.Errorf("%s dropped %d records, by operation %d", c.Health.Stage, dropped, parts)
	}
	return c.checkEscapes()
}

// checkEscapes checks that moves without a record are escapes; with forks or execs without one,
// so are the moves of unknown tasks.
func (c *Capture) checkEscapes() error {
	none := func(op string) uint64 {
		n, _ := schemas.Total(c.n(schemas.CounterDroppedByOp+op), c.n(schemas.CounterMissed+op))
		return n
	}
	least, ok := none(schemas.OpMove), true
	if none(schemas.OpFork) > 0 || none(schemas.OpExec) > 0 {
		least, ok = schemas.Total(least, c.n(schemas.CounterForeign))
	}
	if n := c.n(schemas.CounterEscapes); !ok || n < least {
		return fmt.Errorf("%s counts %d escapes, but %d moves cannot be ruled out", c.Health.Stage, n, least)
	}
	return nil
}

// family adds the counters of a family, and reports whether there are any.
func (c *Capture) family(prefix string) (sum uint64, there bool, err error) {
	ok := true
	for name, n := range c.Health.Counters {
		if strings.HasPrefix(name, prefix) && ok {
			there = true
			sum, ok = schemas.Total(sum, n)
		}
	}
	if !ok {
		err = fmt.Errorf("%s counts more %s… than there is room for", c.Health.Stage, prefix)
	}
	return sum, there, err
}

// checkMissed checks the counts of missed events: the parts by probe are those of the sums.
// A capture that reports no preemption does not count by probe.
func (c *Capture) checkMissed() error {
	lost, err := schemas.ParseRedundant(c.Fact(schemas.FactRedundant))
	if err != nil {
		return fmt.Errorf("%s reports %w", c.Health.Stage, err)
	}
	sum, counted, err := c.family(schemas.CounterMissed)
	if err != nil {
		return err
	}
	all, ok := schemas.Total(c.n(schemas.CounterRecursionMisses), lost)
	if !ok || sum != all && (counted || c.Fact(schemas.FactPreemption) != "") {
		return fmt.Errorf("%s counts %d missed events, its probes %d", c.Health.Stage, all, sum)
	}
	return nil
}

// checkEnforcement checks what is reported about rules of one kind.
func (c *Capture) checkEnforcement(e *schemas.Enforcement) error {
	if !c.Enforced(e) {
		return nil
	}
	for _, name := range schemas.CountersOf(schemas.StageCapture, e.When) {
		if _, ok := c.Health.Counters[name]; !ok {
			return fmt.Errorf("%s enforced %s but reports no counter %q", c.Health.Stage, e.What, name)
		}
	}
	for _, f := range schemas.FactsOf(schemas.StageCapture, e.When) {
		if err := f.Check(c.Health); err != nil {
			return err
		}
	}
	if digest := c.Fact(e.Policy); !schemas.ValidDigest(digest) {
		return fmt.Errorf("%s reports %s=%.100q, expected sha256: and 64 lower-case hex digits", c.Health.Stage, e.Policy, digest)
	}
	if err := c.checkRuleIDs(e); err != nil {
		return err
	}
	sum, _, err := c.family(e.ByRule)
	if err != nil {
		return err
	}
	if blocked := c.n(e.Blocked); sum != blocked {
		return fmt.Errorf("%s counts %d operations that %s refused, by rule %d", c.Health.Stage, blocked, e.What, sum)
	}
	return nil
}

// checkRuleIDs checks that every rule that refused something has an id, where ids are reported.
func (c *Capture) checkRuleIDs(e *schemas.Enforcement) error {
	fact, there := c.Health.Facts[e.IDs]
	if !there {
		return nil
	}
	ids, err := schemas.ParseRuleIDs(fact)
	if err != nil {
		return fmt.Errorf("%s reports %s, which %w", c.Health.Stage, e.IDs, err)
	}
	if n := len(ids); n > 0 && uint64(ids[n-1].Number) > c.n(e.Rules) {
		return fmt.Errorf("%s reports %s of rule %d, and %s=%d", c.Health.Stage, e.IDs, ids[n-1].Number, e.Rules, c.n(e.Rules))
	}
	for name := range c.Health.Counters {
		digits, is := strings.CutPrefix(name, e.ByRule)
		if n, err := strconv.ParseUint(digits, 10, 32); is && err == nil && n > 0 && ids.Of(uint32(n)) == "" {
			return fmt.Errorf("%s counts refusals of rule %d, which is not in %s", c.Health.Stage, n, e.IDs)
		}
	}
	return nil
}

// checkAbsent is check for a run without a kernel capture: it must not count events.
func (c *Capture) checkAbsent() error {
	if c.Fact(schemas.FactPlatform) == "" {
		return fmt.Errorf("%s reports no fact %q", c.Health.Stage, schemas.FactPlatform)
	}
	if c.Health.In > 0 || c.Health.Out > 0 || c.n(schemas.CounterSeen) > 0 || c.n(schemas.CounterRead) > 0 {
		return fmt.Errorf("%s counts events without a kernel capture", c.Health.Stage)
	}
	return nil
}
