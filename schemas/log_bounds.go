package schemas

// Bounds of the measured command's logs, collected or plain (POLICY.md, "Collected logs").
// The specification fixes them, not a flag: what a log may hold must not depend on who
// collected it.
const (
	MaxLogLine  = 64 << 10 // bytes of a line, without LF
	MaxLogBytes = 32 << 20 // bytes of all kept lines, with LF
	MaxLogLines = 1 << 18
)

// MaxToolCalls is how many tool calls a layer may name.
const MaxToolCalls = MaxLogLines
