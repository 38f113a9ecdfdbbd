package main

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// captureHealth is the stage health of runner-capture.
type captureHealth struct{ h *schemas.StageHealth }

func (c *captureHealth) n(counter string) uint64 { return c.h.Counters[counter] }
func (c *captureHealth) fact(name string) string { return c.h.Facts[name] }
func (c *captureHealth) attached() bool {
	return c.fact(schemas.FactKernelCapture) == schemas.CaptureAttached
}
func (c *captureHealth) enforced(e *schemas.Enforcement) bool {
	return c.fact(e.State) == schemas.RulesEnforced
}

// check refuses a stage health with a missing counter, which must not count as zero,
// and one whose counters do not add up.
func (c *captureHealth) check() error {
	if fact, there := c.h.Facts[schemas.FactConfined]; there {
		if _, err := schemas.SplitConfined(fact); err != nil {
			return fmt.Errorf("%s reports %w", c.h.Stage, err)
		}
	}
	if state := c.fact(schemas.FactKernelCapture); state == schemas.CaptureNotRequested || state == schemas.CaptureUnsupported {
		return c.checkAbsent()
	}
	for _, name := range schemas.CountersOf(schemas.StageCapture, "") {
		if _, ok := c.h.Counters[name]; !ok {
			return fmt.Errorf("%s reports no counter %q", c.h.Stage, name)
		}
	}
	for _, f := range schemas.FactsOf(schemas.StageCapture, "") {
		if err := f.Check(c.h); err != nil {
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
	read := c.n(schemas.CounterRead) + c.n(schemas.CounterFileInserted)
	sum := c.n(schemas.CounterCanary) + c.n(schemas.CounterForeign) + c.n(schemas.CounterDecodeErrors) + c.n(schemas.CounterOutcomes) + c.h.Out
	if read != sum {
		return fmt.Errorf("%s read %d records but accounts for %d", c.h.Stage, read, sum)
	}
	if platform := c.fact(schemas.FactPlatform); platform != schemas.PlatformLinux {
		return fmt.Errorf("%s claims a kernel capture on %q", c.h.Stage, platform)
	}
	return nil
}

// checkMissed checks the counts of missed events: the parts by probe are those of the sums.
// A capture that reports no preemption does not count by probe.
func (c *captureHealth) checkMissed() error {
	lost, err := schemas.ParseRedundant(c.fact(schemas.FactRedundant))
	if err != nil {
		return fmt.Errorf("%s reports %w", c.h.Stage, err)
	}
	var sum uint64
	for name, n := range c.h.Counters {
		if strings.HasPrefix(name, schemas.CounterMissed) {
			sum += n
		}
	}
	if all := c.n(schemas.CounterRecursionMisses) + lost; sum != all && (sum > 0 || c.fact(schemas.FactPreemption) != "") {
		return fmt.Errorf("%s counts %d missed events, its probes %d", c.h.Stage, all, sum)
	}
	return nil
}

// checkEnforcement checks what is reported about rules of one kind.
func (c *captureHealth) checkEnforcement(e *schemas.Enforcement) error {
	if !c.enforced(e) {
		return nil
	}
	for _, name := range schemas.CountersOf(schemas.StageCapture, e.When) {
		if _, ok := c.h.Counters[name]; !ok {
			return fmt.Errorf("%s enforced %s but reports no counter %q", c.h.Stage, e.What, name)
		}
	}
	for _, f := range schemas.FactsOf(schemas.StageCapture, e.When) {
		if err := f.Check(c.h); err != nil {
			return err
		}
	}
	if digest := c.fact(e.Policy); !schemas.ValidDigest(digest) {
		return fmt.Errorf("%s reports %s=%.100q, expected sha256: and 64 lower-case hex digits", c.h.Stage, e.Policy, digest)
	}
	var sum uint64
	for name, n := range c.h.Counters {
		if strings.HasPrefix(name, e.ByRule) {
			sum += n
		}
	}
	if blocked := c.n(e.Blocked); sum != blocked {
		return fmt.Errorf("%s counts %d operations that %s refused, by rule %d", c.h.Stage, blocked, e.What, sum)
	}
	return nil
}

// checkAbsent is check for a run without a kernel capture: it must not count events.
func (c *captureHealth) checkAbsent() error {
	if c.fact(schemas.FactPlatform) == "" {
		return fmt.Errorf("%s reports no fact %q", c.h.Stage, schemas.FactPlatform)
	}
	if c.h.In > 0 || c.h.Out > 0 || c.n(schemas.CounterSeen) > 0 || c.n(schemas.CounterRead) > 0 {
		return fmt.Errorf("%s counts events without a kernel capture", c.h.Stage)
	}
	return nil
}

// health derives the observation health of a run that has only the kernel layer.
func health(runID string, c *captureHealth, normalize *schemas.StageHealth, lines uint64, net schemas.Coverage) schemas.Health {
	h := schemas.Health{Schema: schemas.SchemaHealth, RunID: runID, Platform: c.fact(schemas.FactPlatform),
		KernelLayer: schemas.LayerAbsent, CgroupCorrelation: schemas.CorrelationPartial,
		PolicyLayer: schemas.LayerAbsent, SDKLayer: schemas.LayerAbsent}
	var causes []any
	if c.attached() {
		causes = c.causes()
		switch {
		case c.n(schemas.CounterEscapes) > 0:
			h.CgroupCorrelation = schemas.CorrelationFailed
		case len(causes) > 0:
			h.KernelLayer, h.CgroupCorrelation = schemas.LayerPartial, schemas.CorrelationClean
			h.RingbufDrops = c.n(schemas.CounterDropped)
		default:
			h.KernelLayer, h.CgroupCorrelation = schemas.LayerComplete, schemas.CorrelationClean
		}
	}
	h.NetworkCoverage, h.EndpointScope = net.Fields(h.KernelLayer)
	h.Notes = notes(&h, c, normalize, causes, lines)
	h.Notes = append(h.Notes, c.h.Notes...)
	h.Notes = append(h.Notes, normalize.Notes...)
	return h
}

func notes(h *schemas.Health, c *captureHealth, normalize *schemas.StageHealth, causes []any, lines uint64) []string {
	if !c.attached() {
		why := schemas.ContractOnlyNotRequested
		if c.fact(schemas.FactKernelCapture) == schemas.CaptureUnsupported {
			why = schemas.ContractOnlyUnsupported + h.Platform
		}
		return append([]string{schemas.NoteContractOnly.Format(why)}, c.confinement()...)
	}
	list := []string{schemas.NoteKernel.Format(lines, h.RingbufDrops, h.NetworkCoverage, h.EndpointScope)}
	if len(causes) > 0 {
		list = append(list, schemas.NoteLoss.Format(causes...))
	}
	if drops := c.parts(schemas.CounterDroppedByOp); len(drops) > 0 {
		list = append(list, schemas.NoteDrops.Format(drops...))
	}
	if missed := c.parts(schemas.CounterMissed); len(missed) > 0 {
		list = append(list, schemas.NoteMissed.Format(missed...))
	}
	if n := c.n(schemas.CounterEscapes); n > 0 {
		list = append(list, schemas.NoteEscape.Format(n))
	}
	if q := c.quality(normalize); len(q) > 0 {
		list = append(list, schemas.NoteQuality.Format(q...))
	}
	if n := c.n(schemas.CounterSurvivorsKilled); n > 0 {
		list = append(list, schemas.NoteSurvivors.Format(n))
	}
	if c.fact(schemas.FactEnd) == schemas.EndSignal {
		list = append(list, schemas.NoteEnd.Format())
	}
	return append(append(list, schemas.NoteBlind.Format(c.blind()...)), c.confinement()...)
}
