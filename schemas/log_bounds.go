package schemas

// Bounds of the measured command's logs, collected or plain (POLICY.md, "Collected logs").
// They are part of the specification and there is no flag for them, so that they do not
// depend on who collected a log.
const (
	MaxLogLine  = 64 << 10 // bytes of a line, without LF
	MaxLogBytes = 32 << 20 // bytes of all kept lines, with LF
	MaxLogLines = 1 << 17
)

// Bounds of what a reader keeps of a layer that is made from a log: how many tool calls it
// may name, and the bytes of their ids and tools, added up.
const (
	MaxToolCalls     = 1 << 16
	MaxToolCallBytes = 8 << 20
)

// CallRoom is the room that a reader has for the tool calls of one layer.
type CallRoom struct{ calls, bytes int }

// Take makes room for one call with these texts, if there is any.
func (r *CallRoom) Take(texts ...string) bool {
	r.calls++
	for _, t := range texts {
		r.bytes += len(t)
	}
	return r.calls <= MaxToolCalls && r.bytes <= MaxToolCallBytes
}

// Room takes the room for a decision.
func (e *PolicyEvent) Room(r *CallRoom) bool {
	return r.Take(e.ToolCallID, e.Tool, e.Decision, e.Outcome, e.ReasonCode, e.RuleID, e.ToolCallIDSource)
}
