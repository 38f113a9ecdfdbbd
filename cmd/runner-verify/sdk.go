package main

import (
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// sdkCall is what the SDK reported of one tool call.
type sdkCall struct {
	tool               string // as in the first event
	differs            bool   // some event names a tool that no decision of the id names
	started, completed uint32
}

// sdkLayer is what the SDK lines add up to.
type sdkLayer struct {
	lines uint64
	calls map[string]*sdkCall
	ended string // run_finished or run_failed, when one of them was reported
}

func (v *verifier) sdkLine(line []byte, n int) error {
	const member = bundle.SDKName
	s := &v.sdk
	s.lines++
	if !v.shallow(member, n, line) {
		return nil
	}
	e, err := schemas.ParseSDKEvent(line)
	if err != nil {
		v.add(ruleLineSchema, member, n, "%v", err)
		return nil
	}
	v.sameRun(member, n, e.RunID)
	v.canonicalLine(member, n, line, e)
	if e.Seq != s.lines-1 {
		v.add(ruleSeq, member, n, "seq is %d, expected %d", e.Seq, s.lines-1)
	}
	if v.events.own() {
		for _, s := range []*string{&e.Source, e.SDKName, e.SDKVersion, e.ToolCallID, e.Tool} {
			if s != nil && !isText([]byte(*s)) {
				v.add(ruleSDKText, member, n, "%.100q is not the escape of any byte string", *s)
			}
		}
	}
	if e.EventType == "run_finished" || e.EventType == "run_failed" {
		s.ended = e.EventType
	}
	if e.ToolCallID == nil || *e.ToolCallID == "" {
		return nil
	}
	if v.events.own() && !strings.HasPrefix(e.EventType, "tool_call_") {
		return nil
	}
	id := *e.ToolCallID
	c := s.calls[id]
	if c == nil {
		if len(s.calls) >= maxToolCalls {
			v.add(ruleLimit, member, n, "more than %d distinct tool calls", maxToolCalls)
			return nil
		}
		c = &sdkCall{}
		s.calls[id] = c
	}
	switch e.EventType {
	case "tool_call_started":
		c.started++
	case "tool_call_completed":
		c.completed++
	}
	if e.Tool != nil {
		if c.tool == "" {
			c.tool = *e.Tool
		}
		c.differs = c.differs || !v.policy.names(id, *e.Tool)
	}
	return nil
}

// names reports whether some decision of the id, if there is any, is about the tool.
func (p *policyLayer) names(id, tool string) bool {
	return p.byID[id] == nil || p.tools[[2]string{id, tool}]
}
