package schemas

// StreamForm is one kind of stream: who writes it, and its records in order.
type StreamForm struct {
	Name    string
	By      string
	Records []string // schema strings, then words
}

// Streams are all kinds of streams.
var Streams = [...]StreamForm{
	{StreamRaw, "runner-capture (runner-exec with `--no-kernel`)", []string{
		"`" + SchemaEvent + "` and `" + SchemaRawEvent + "` as they happen", "1 `" + SchemaStageHealth + "`"}},
	{StreamNormalized, StageNormalize, []string{
		"`" + SchemaEvent + "`", "`" + SchemaKernelEvent + "` in canonical order (with `--windows` and `" + SchemaProcess + "` between them)", "2 `" + SchemaStageHealth + "`"}},
	{StreamPolicyLog, StageExec, []string{"`" + SchemaLogLine + "`", "1 `" + SchemaStageHealth + "`"}},
	{StreamSDKLog, StageExec, []string{"`" + SchemaLogLine + "`", "1 `" + SchemaStageHealth + "`"}},
	{StreamJoined, StageCorrelate, []string{
		"`" + SchemaEvent + "`", "`" + SchemaKernelEvent + "`", "`" + SchemaPolicyEvent + "`", "`" + SchemaSDKEvent + "`", "`" + SchemaSurfaceEntry + "` sorted",
		"`" + SchemaBinding + "`", "`" + SchemaAmbiguity + "`", "`" + SchemaReport + "`", "`" + SchemaHealth + "`", "3 `" + SchemaStageHealth + "`"}},
}
