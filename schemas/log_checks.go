package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkLogTargets is CheckTargets for a line of the log, whose targets are names.
func checkLogTargets(targets []string) error {
	return first(checkNames("target", targets), CheckTargets(targets))
}

func checkNames(what string, names []string) error {
	for _, t := range names {
		if _, err := Untext(t); err != nil {
			return fmt.Errorf("%s %.100q: %w", what, t, err)
		}
	}
	return nil
}

func (d *SessionStarted) check() error {
	return first(notEmpty("name", d.Name), digest(d.PolicyDigest), checkLogTargets(d.Denies))
}

func (d *PolicyReloaded) check() error {
	return first(digest(d.PolicyDigest), checkLogTargets(d.Denies))
}

// checkChecked reports whether checked has some of the targets, in their order.
func (d *ToolDecision) checkChecked() error {
	for i, t := range d.Checked {
		if _, ok := slices.BinarySearch(d.Targets, t); !ok || i > 0 && d.Checked[i-1] >= t {
			return fmt.Errorf("checked has %.100q, which is no target, repeated or not in byte order", t)
		}
	}
	return nil
}

func (d *ToolDecision) checkRedacted() error {
	switch {
	case len(d.Redacted) > MaxRedacted:
		return fmt.Errorf("%d redacted arguments, at most %d", len(d.Redacted), MaxRedacted)
	case len(d.Redacted) > 0 && d.ArgumentsDigest != "":
		return errors.New("arguments_digest of arguments that are redacted")
	}
	for _, r := range d.Redacted {
		hex, given := strings.CutPrefix(r.Commitment, CommitmentPrefix)
		if err := first(notEmpty("at", r.At), checkNames("at", []string{r.At})); err != nil {
			return err
		}
		if r.Commitment != "" && (!given || !ValidDigest(digestPrefix+hex)) {
			return fmt.Errorf("commitment is %.100q, expected %sHEX", r.Commitment, CommitmentPrefix)
		}
	}
	return nil
}

var (
	requestReasons = map[string][]string{DecisionAllow: append(ReasonsOf(ReasonPasses), allowReasons...), DecisionDeny: append(ReasonsOf(ReasonStops), denyReasons...)}
	wouldReasons   = append(ReasonsOf(ReasonStops), denyReasons...)
)

// CheckWouldDeny says why a decision with this reason cannot have this would_deny.
func CheckWouldDeny(reason, would string) error { return checkWouldDeny(reason, would) }

func checkWouldDeny(reason, would string) error {
	switch {
	case (reason == ReasonAllowAudit) != (would != ""):
		return errors.New("would_deny and " + ReasonAllowAudit + " go together")
	case would != "":
		return oneOf("would_deny", would, wouldReasons...)
	}
	return nil
}

func (d *RequestDecision) check() error {
	denied := d.Decision == DecisionDeny
	err := first(
		oneOf("direction", d.Direction, FromClient, FromServer),
		notEmpty("method", d.Method),
		checkNames("target", []string{d.Target}),
		oneOf("decision", d.Decision, DecisionAllow, DecisionDeny),
		oneOf("reason_code", d.ReasonCode, requestReasons[d.Decision]...),
		digest(d.PolicyDigest))
	switch {
	case err != nil:
		return err
	case denied != (d.EndNS != 0):
		return errors.New("end_ns of a request that is only about to begin, or a denial without it")
	}
	return first(checkLogTargets(d.Targets), checkWouldDeny(d.ReasonCode, d.WouldDeny))
}

func (d *RootsDecision) check() error {
	err := first(
		oneOf("decision", d.Decision, DecisionAllow, DecisionDeny),
		oneOf("reason_code", d.ReasonCode, requestReasons[d.Decision]...),
		digest(d.PolicyDigest),
		checkNames("root", d.Roots),
		checkWouldDeny(d.ReasonCode, d.WouldDeny))
	if err == nil && len(d.Roots) > MaxTargets {
		err = fmt.Errorf("%d roots, at most %d", len(d.Roots), MaxTargets)
	}
	return err
}

func digest(s string) error {
	if !ValidDigest(s) {
		return fmt.Errorf("policy_digest is %.100q, expected sha256: and 64 lower-case hex digits", s)
	}
	return nil
}

func optionalDigest(name, s string) error {
	if s != "" && !ValidDigest(s) {
		return fmt.Errorf("%s is %.100q, expected sha256: and 64 lower-case hex digits", name, s)
	}
	return nil
}
