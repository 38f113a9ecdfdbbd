package main

import (
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// call is one tool call: what the record has of it under one id.
type call struct {
	id, span string
	tool     string
	parts    []*verdict.Call // more than one where an id was used again
	from, to uint64          // by the proxy; 0 is not known
	said     [2]uint64       // first and last time of the SDK's lines
}

// during takes the time of a decision.
func (c *call) during(m moment) {
	if c == nil || m.at == 0 {
		return
	}
	if c.from == 0 || m.at < c.from {
		c.from = m.at
	}
	c.to = max(c.to, m.at, m.end)
}

// reported takes the time of a line of the SDK.
func (c *call) reported(m moment) {
	if c == nil || m.at == 0 {
		return
	}
	if c.said[0] == 0 {
		c.said[0] = m.at
	}
	c.said[1] = max(c.said[1], m.at)
}

// collectCalls takes the calls of runner-verify's explanation: one for each id.
func (x *exporter) collectCalls() {
	x.calls = map[string]*call{}
	list := x.e.Report.Explanation.Calls
	for i := range list {
		p := &list[i]
		c := x.calls[p.ToolCallID]
		if c == nil {
			c = &call{id: p.ToolCallID, span: otlp.SpanOf(x.e.Report.RunID, p.ToolCallID)}
			x.calls[c.id] = c
			x.order = append(x.order, c)
		}
		switch {
		case c.tool != "":
		case p.Policy != nil:
			c.tool = p.Policy.Tool
		case p.SDK != nil:
			c.tool = p.SDK.Tool
		}
		c.parts = append(c.parts, p)
	}
}

// spans makes the spans.
func (x *exporter) spans() error {
	if err := x.traces.Scope("runner-otel", tool.Version(), x.scope(nil)); err != nil {
		return err
	}
	for _, c := range x.order {
		if err := x.traces.Done(x.span(x.traces.Record(), c)); err != nil {
			return err
		}
	}
	return x.traces.Flush()
}

// Of OTLP.
const (
	kindInternal = `1`
	statusError  = `2`
)

func (x *exporter) span(dst []byte, c *call) []byte {
	name := "execute_tool"
	if c.tool != "" {
		name += " " + c.tool
	}
	from, to, by := c.from, c.to, schemas.TimeProxy
	switch {
	case from > 0:
	case c.said[0] > 0:
		from, to, by = c.said[0], c.said[1], schemas.TimeReceived
	default:
		from, to, by = x.opt.Generated, x.opt.Generated, "none"
	}
	dst = append(append(append(dst, `{"traceId":"`...), x.trace.ID...), `","spanId":"`...)
	dst = append(dst, c.span...)
	if x.trace.Parent != "" {
		dst = append(append(dst, `","parentSpanId":"`...), x.trace.Parent...)
	}
	dst = schemas.AppendQuote(append(dst, `","name":`...), []byte(name))
	dst = append(dst, `,"kind":`+kindInternal+`,"startTimeUnixNano":"`...)
	dst = strconv.AppendUint(dst, from, 10)
	dst = strconv.AppendUint(append(dst, `","endTimeUnixNano":"`...), to, 10)
	dst = append(dst, `","attributes":[`...)
	dst = otlp.Text(dst, "gen_ai.operation.name", "execute_tool")
	dst = otlp.Text(dst, attrCall, c.id)
	if c.tool != "" {
		dst = otlp.Text(dst, attrTool, c.tool)
	}
	dst = otlp.Text(dst, attrTimeOf, by)
	failed := ""
	for i, p := range c.parts {
		dst, failed = appendPart(dst, p, i, failed)
	}
	if len(c.parts) > 1 {
		dst = otlp.Int(dst, "runner.parts", int64(len(c.parts)))
	}
	if failed != "" {
		dst = otlp.Text(dst, attrError, failed)
	}
	dst = append(otlp.Trim(dst), ']')
	if failed != "" {
		dst = append(dst, `,"status":{"code":`+statusError+`}`...)
	}
	return append(dst, '}')
}

// appendPart appends what the policy, the SDK and the kernel say of a call. Where an id was used again, the parts
// are numbered.
func appendPart(dst []byte, p *verdict.Call, i int, failed string) ([]byte, string) {
	own := "runner."
	if i > 0 {
		own = "runner.part" + strconv.Itoa(i+1) + "."
	}
	text := func(key, value string) {
		if value != "" {
			dst = otlp.Text(dst, own+key, value)
		}
	}
	if d := p.Policy; d != nil {
		if d.IDSource != "" && i == 0 { // runner-policy decided, between an MCP client and a server that speak by pipes
			dst = otlp.Text(otlp.Text(dst, "mcp.method.name", "tools/call"), "network.transport", "pipe")
		}
		text("policy.decision", d.Decision)
		text("policy.reason_code", d.ReasonCode)
		text("policy.rule_id", d.RuleID)
		text("policy.outcome", d.Outcome)
		text("policy.tool_call_id_source", d.IDSource)
		dst = otlp.Uint(dst, own+"policy.attempt", d.Attempt)
		if len(d.Targets) > 0 {
			dst = otlp.Bool(otlp.Texts(dst, own+"policy.targets", d.Targets), own+"policy.targets_cut", d.TargetsCut)
		}
		switch {
		case d.Outcome == "" && d.Decision == schemas.DecisionDeny:
			failed = schemas.OutcomeDenied
		case d.Outcome != "" && d.Outcome != schemas.OutcomeCompleted && d.Outcome != schemas.OutcomeInputRequired:
			failed = d.Outcome
		}
	}
	if s := p.SDK; s != nil {
		dst = otlp.Int(otlp.Int(dst, own+"sdk.started", int64(s.Started)), own+"sdk.completed", int64(s.Completed))
		text("sdk.tool", s.Tool)
	}
	if k := p.Kernel; k != nil {
		text("kernel.window.start", k.Window.Start)
		text("kernel.window.end", k.Window.End)
		text("kernel.scope", k.Scope)
		dst = otlp.Uint(dst, own+"kernel.events", k.Events)
		dst = otlp.Texts(dst, own+"kernel.effects", k.Effects)
		dst = otlp.Bool(dst, own+"kernel.effects_cut", k.Cut)
	}
	if len(p.Ambiguities) > 0 {
		dst = otlp.Texts(dst, own+"ambiguities", p.Ambiguities)
	}
	if len(p.Notes) > 0 {
		dst = otlp.Texts(dst, own+"notes", p.Notes)
	}
	return dst, failed
}
