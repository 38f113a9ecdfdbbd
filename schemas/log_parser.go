package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// DecisionLine is one line of a decision log of ours: Type says which of
// the pointers is set.
type DecisionLine struct {
	LogHead
	Type     string
	Source   string
	Started  *SessionStarted
	Decision *ToolDecision
	Finished *CallFinished
	Refused  *MessageRefused
	Ended    *SessionFinished

	Request         *RequestDecision
	RequestFinished *RequestFinished
	Roots           *RootsDecision
	Reloaded        *PolicyReloaded
}

// Bounds of the targets of a decision (POLICY.md, "Targets").
const (
	MaxTargets     = 64
	MaxTargetBytes = 16 << 10
)

// CheckTargets says why a list cannot be the targets of a decision.
func CheckTargets(targets []string) error {
	size := 0
	for i, t := range targets {
		size += len(t)
		switch {
		case i == MaxTargets:
			return fmt.Errorf("%d targets, at most %d", len(targets), MaxTargets)
		case size > MaxTargetBytes:
			return fmt.Errorf("targets have more than %d bytes", MaxTargetBytes)
		case t == "" || i > 0 && targets[i-1] >= t:
			return fmt.Errorf("target %.100q is empty, repeated or not in byte order", t)
		}
	}
	return nil
}

// Codes of refusals, looked up for each refused message.
var refuseReasons = ReasonsOf(ReasonRefuses)

// ParseDecisionLine parses one line that runner-policy or runner-proc wrote. Lines of other proxies have
// other forms, which are not specified here.
func ParseDecisionLine(line []byte) (*DecisionLine, error) {
	d, err := parseDecisionLine(line)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return d, nil
}

func parseDecisionLine(line []byte) (d *DecisionLine, err error) {
	var tree map[string]any
	if err := Unmarshal(line, &tree); err != nil {
		return nil, err
	}
	kind, _ := tree["type"].(string)
	source, _ := tree["source"].(string)
	d = &DecisionLine{Type: kind, Source: source}
	switch kind {
	case LogSessionStarted:
		d.Started, err = entryData[SessionStarted](line)
		if err == nil {
			d.LogHead, err = d.Started.LogHead, d.Started.check()
		}
	case LogDecision:
		d.Decision, err = entryData[ToolDecision](line)
		if err == nil {
			d.LogHead, err = d.Decision.LogHead, d.Decision.check()
		}
	case LogCallFinished:
		d.Finished, err = entryData[CallFinished](line)
		if err == nil {
			d.LogHead = d.Finished.LogHead
			err = first(notEmpty("tool_call_id", d.Finished.ToolCallID), oneOf("outcome", d.Finished.Outcome, CallOutcomes...))
		}
	case LogRequestDecided:
		d.Request, err = entryData[RequestDecision](line)
		if err == nil {
			d.LogHead, err = d.Request.LogHead, d.Request.check()
		}
	case LogRequestFinished:
		d.RequestFinished, err = entryData[RequestFinished](line)
		if err == nil {
			d.LogHead, err = d.RequestFinished.LogHead, oneOf("outcome", d.RequestFinished.Outcome, CallOutcomes...)
		}
	case LogRootsDecided:
		d.Roots, err = entryData[RootsDecision](line)
		if err == nil {
			d.LogHead, err = d.Roots.LogHead, d.Roots.check()
		}
	case LogMessageRefused:
		d.Refused, err = entryData[MessageRefused](line)
		if err == nil {
			d.LogHead = d.Refused.LogHead
			err = first(oneOf("direction", d.Refused.Direction, FromClient, FromServer), oneOf("reason_code", d.Refused.ReasonCode, refuseReasons...))
		}
	case LogPolicyReloaded:
		d.Reloaded, err = entryData[PolicyReloaded](line)
		if err == nil {
			d.LogHead, err = d.Reloaded.LogHead, d.Reloaded.check()
		}
	case LogSessionFinished:
		d.Ended, err = entryData[SessionFinished](line)
		if err == nil {
			d.LogHead = d.Ended.LogHead
		}
	default:
		err = oneOf("type", kind, LogSessionStarted, LogDecision, LogCallFinished, LogRequestDecided, LogRequestFinished, LogRootsDecided, LogMessageRefused, LogPolicyReloaded, LogSessionFinished)
	}
	if err == nil {
		err = d.LogHead.check(tree["id"].(string))
	}
	return d, err
}

func entryData[D any](line []byte) (*D, error) {
	e := new(LogEntry[D])
	if err := decode(line, e); err != nil {
		return nil, err
	}
	return &e.Data, first(oneOf("specversion", e.SpecVersion, LogSpecVersion), oneOf("source", e.Source, LogSources[:]...))
}

func (h LogHead) check(id string) error {
	if len(h.Session) != 16 || slices.ContainsFunc([]byte(h.Session), func(c byte) bool { return unhex(c) < 0 }) {
		return fmt.Errorf("session is %.100q, expected 16 lower-case hex digits", h.Session)
	}
	if want := h.Session + "-" + strconv.FormatUint(h.Seq, 10); id != want {
		return fmt.Errorf("id is %.100q, expected SESSION-SEQ, which is %q", id, want)
	}
	return nil
}

var allowReasons, denyReasons = ReasonsOf(ReasonAllows), ReasonsOf(ReasonDenies)

func (d *ToolDecision) check() error {
	reasons, denied := allowReasons, d.Decision == DecisionDeny
	if denied {
		reasons = denyReasons
	}
	err := first(
		notEmpty("tool", d.Tool),
		oneOf("decision", d.Decision, DecisionAllow, DecisionDeny),
		oneOf("reason_code", d.ReasonCode, reasons...),
		notEmpty("tool_call_id", d.ToolCallID), notEmpty("tool_call_id_source", d.ToolCallIDSource),
		digest(d.PolicyDigest))
	switch {
	case err != nil:
	case d.Attempt == 0:
		err = errors.New("attempt is 0, expected 1 or more")
	case denied && (d.EndNS == 0 || d.Outcome != OutcomeDenied):
		err = errors.New("a denial without end_ns and the outcome denied")
	case !denied && (d.EndNS != 0 || d.Outcome != ""):
		err = errors.New("end_ns or outcome of a call that is only about to begin")
	default:
		err = first(checkLogTargets(d.Targets), d.checkChecked(), optionalDigest("arguments_digest", d.ArgumentsDigest), d.checkRedacted(), checkWouldDeny(d.ReasonCode, d.WouldDeny))
	}
	return err
}
