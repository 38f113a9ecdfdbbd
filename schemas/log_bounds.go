package schemas

// Bounds of the measured command's logs, collected or plain (POLICY.md, "Collected logs").
// They are part of the specification and there is no flag for them, so that they do not
// depend on who collected a log.
const (
	MaxLogLine  = 64 << 10 // bytes of a line, without LF
	MaxLogBytes = 32 << 20 // bytes of all kept lines, with LF
	MaxLogLines = 1 << 18
)

// MaxToolCalls is how many tool calls a layer may name.
const MaxToolCalls = MaxLogLines
