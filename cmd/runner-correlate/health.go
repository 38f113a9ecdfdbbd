package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// capture is the stage health of runner-capture, checked for what is read here.
type capture struct{ h *schemas.StageHealth }

func (c *capture) n(counter string) uint64 { return c.h.Counters[counter] }
func (c *capture) fact(name string) string { return c.h.Facts[name] }
func (c *capture) attached() bool          { return c.fact("kernel_capture") == "attached" }
func unless(good, v string) string {
	if v == good {
		return ""
	}
	return v
}
func commas(list string) string { return strings.Join(strings.Fields(list), ",") }

// difference is the distance of two counts that should be equal.
func difference(a, b uint64) string {
	if a == b {
		return ""
	}
	return strconv.FormatUint(max(a, b)-min(a, b), 10)
}

func (c *capture) redundantLoss() string {
	lost, ok := strings.CutPrefix(c.fact("redundant"), "on: lost=")
	if !ok || lost == "0" {
		return ""
	}
	return lost
}

// check refuses a stage health that cannot carry a statement: a missing counter
// is not a zero, and sums that do not hold are no counts.
func (c *capture) check() error {
	if state := c.fact("kernel_capture"); state == "not_requested" || state == "unsupported" {
		return c.checkAbsent()
	}
	for _, r := range counterRules {
		if _, ok := c.h.Counters[r.name]; !ok {
			return fmt.Errorf("%s reports no counter %q", c.h.Stage, r.name)
		}
	}
	for _, r := range requiredFacts {
		v, ok := c.h.Facts[r.name]
		if !ok {
			return fmt.Errorf("%s reports no fact %q", c.h.Stage, r.name)
		}
		known := len(r.values) == 0
		for _, w := range r.values {
			known = known || v == w
		}
		if !known {
			return fmt.Errorf("%s reports %s=%q, expected one of %s", c.h.Stage, r.name, v, strings.Join(r.values, ", "))
		}
	}
	if r := c.fact("redundant"); r != "off" && !strings.HasPrefix(r, "unavailable: ") {
		if _, err := strconv.ParseUint(strings.TrimPrefix(r, "on: lost="), 10, 64); err != nil {
			return fmt.Errorf("%s reports redundant=%q, expected off, on: lost=N or unavailable: why", c.h.Stage, r)
		}
	}
	if err := c.checkEnforcement(); err != nil {
		return err
	}
	if sum := c.n("canary") + c.n("foreign") + c.n("decode_errors") + c.h.Out; c.n("read") != sum {
		return fmt.Errorf("%s read %d records but accounts for %d", c.h.Stage, c.n("read"), sum)
	}
	if c.fact("platform") != "linux" {
		return fmt.Errorf("%s claims a kernel capture on %q", c.h.Stage, c.fact("platform"))
	}
	return nil
}

// checkEnforcement checks what is reported of network rules.
func (c *capture) checkEnforcement() error {
	if c.fact("network_rules") != "enforced" {
		return nil
	}
	for _, name := range enforcementCounters {
		if _, ok := c.h.Counters[name]; !ok {
			return fmt.Errorf("%s enforced network rules but reports no counter %q", c.h.Stage, name)
		}
	}
	if !schemas.ValidDigest(c.fact("network_policy")) {
		return fmt.Errorf("%s reports network_policy=%.100q, expected sha256: and 64 lower-case hex digits", c.h.Stage, c.fact("network_policy"))
	}
	var sum uint64
	for name, n := range c.h.Counters {
		if strings.HasPrefix(name, blockedBy) {
			sum += n
		}
	}
	if sum != c.n("blocked") {
		return fmt.Errorf("%s counts %d refused operations, its rules %d", c.h.Stage, c.n("blocked"), sum)
	}
	return nil
}

// checkAbsent is check for a run without capture: nothing was counted, so
// nothing may have been seen.
func (c *capture) checkAbsent() error {
	if c.fact("platform") == "" {
		return fmt.Errorf("%s reports no fact %q", c.h.Stage, "platform")
	}
	if c.h.In > 0 || c.h.Out > 0 || c.n("seen") > 0 || c.n("read") > 0 {
		return fmt.Errorf("%s counts events without a kernel capture", c.h.Stage)
	}
	return nil
}

// causes are the reasons why the kernel layer is not complete, sorted.
func (c *capture) causes() []string {
	var list []string
	for _, r := range counterRules {
		n := c.n(r.name)
		if n == 0 || r.role != loss && r.role != escape {
			continue
		}
		list = append(list, fmt.Sprintf("%s=%d", r.name, n))
	}
	for _, r := range conditions {
		if v := r.value(c); v != "" {
			list = append(list, r.cause+"="+v)
		}
	}
	sort.Strings(list)
	return list
}

// health derives the observation health of a run with the kernel layer alone.
func health(runID string, c *capture, normalize *schemas.StageHealth, lines uint64, net schemas.Coverage) schemas.Health {
	h := schemas.Health{Schema: schemas.SchemaHealth, RunID: runID, Platform: c.fact("platform"),
		KernelLayer: schemas.LayerAbsent, CgroupCorrelation: schemas.CorrelationPartial,
		PolicyLayer: schemas.LayerAbsent, SDKLayer: schemas.LayerAbsent}
	var causes []string
	if c.attached() {
		causes = c.causes()
		switch {
		case c.n("escapes") > 0:
			h.CgroupCorrelation = schemas.CorrelationFailed
		case len(causes) > 0:
			h.KernelLayer, h.CgroupCorrelation = schemas.LayerPartial, schemas.CorrelationClean
			h.RingbufDrops = c.n("dropped")
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

func notes(h *schemas.Health, c *capture, normalize *schemas.StageHealth, causes []string, lines uint64) []string {
	if !c.attached() {
		why := "kernel capture was not requested"
		if c.fact("kernel_capture") == "unsupported" {
			why = "kernel capture is not supported on " + h.Platform
		}
		return []string{"contract_only_mode: " + why}
	}
	list := []string{fmt.Sprintf("s2_kernel_capture: monitor_events=%d ringbuf_drops=%d network_protocol_coverage=%s network_endpoint_claim_scope=%s",
		lines, h.RingbufDrops, h.NetworkCoverage, h.EndpointScope)}
	if len(causes) > 0 {
		list = append(list, "s2_kernel_loss: "+strings.Join(causes, " "))
	}
	if drops := c.dropsByOp(); len(drops) > 0 {
		list = append(list, "s2_drops: "+strings.Join(drops, " "))
	}
	if n := c.n("escapes"); n > 0 {
		list = append(list, fmt.Sprintf("s2_cgroup_escape: escapes=%d kernel_layer downgraded to absent", n))
	}
	if q := c.nonZero(quality, normalize); len(q) > 0 {
		list = append(list, "s2_path_quality: "+strings.Join(q, " "))
	}
	if n := c.n("survivors_killed"); n > 0 {
		list = append(list, fmt.Sprintf("s2_survivors_killed: %d", n))
	}
	if c.fact("end") == "signal" {
		list = append(list, "s2_capture_end: a signal ended the capture, not the end of the last task")
	}
	return append(list, "s2_blind_spots: "+strings.Join(c.blind(), "; "))
}

// dropsByOp lists what the full ring refused, by operation.
func (c *capture) dropsByOp() []string {
	var list []string
	for name, n := range c.h.Counters {
		if op, ok := strings.CutPrefix(name, "dropped."); ok {
			list = append(list, fmt.Sprintf("%s=%d", op, n))
		}
	}
	sort.Strings(list)
	return list
}

// nonZero lists the counters of one role that are above 0, by name. Where the
// normalizer counts the same thing over the lines it kept, its number is the one
// that a reader of the archive can compare with them.
func (c *capture) nonZero(want role, normalize *schemas.StageHealth) []string {
	var list []string
	for _, r := range counterRules {
		n := c.n(r.name)
		if kept, ok := normalize.Counters[r.name]; ok {
			n = kept
		}
		if r.role == want && n > 0 {
			list = append(list, fmt.Sprintf("%s=%d", r.name, n))
		}
	}
	return list
}

// blind names what this run could not see, whatever its counters say.
func (c *capture) blind() []string {
	list := []string{fmt.Sprintf("inherited descriptors (%d)", c.n("inherited_fds"))}
	list = append(list, blindSpots...)
	for _, r := range optionalHooks {
		if state := c.fact(r.fact); state != "attached" && state != "off" && !strings.HasPrefix(state, "on") {
			list = append(list, fmt.Sprintf("%s (%s)", r.what, state))
		}
	}
	if c.fact("network_rules") == "enforced" {
		list = append(list, pastRules)
	}
	return list
}
