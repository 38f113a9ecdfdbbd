package schemas

import "sync"

// StreamForm is one kind of stream: who writes it, and its records in order.
type StreamForm struct {
	Name    string
	By      string
	Records []string // schema strings, then words
}

// Streams are all kinds of streams: those of logs and the layers of a joined stream
// are rows of the layer table.
var Streams = sync.OnceValue(func() []StreamForm {
	health := "`" + SchemaStageHealth + "`"
	normalized := []string{"`" + SchemaEvent + "`"}
	for _, l := range Layers {
		switch {
		case l.Name == LayerKernel:
			normalized = append(normalized, "`"+SchemaKernelEvent+"` in canonical order (with `--windows` and `"+SchemaProcess+"` between them)")
		case l.Normalized:
			normalized = append(normalized, "`"+l.Schema+"` (optional)")
		}
	}
	normalized = append(normalized, "2 "+health)
	list := []StreamForm{
		{StreamRaw, "runner-capture (runner-exec with `--no-kernel`)", []string{
			"`" + SchemaEvent + "` and `" + SchemaRawEvent + "` as they happen", "1 " + health}},
		{StreamNormalized, StageNormalize, normalized},
	}
	joined := []string{"`" + SchemaEvent + "`"}
	for _, l := range Layers {
		if l.Log != nil {
			list = append(list, StreamForm{l.Log.Stream, StageExec, []string{"`" + SchemaLogLine + "`", "1 " + health}})
		}
		record := "`" + l.Schema + "`"
		if l.Optional {
			record += " (optional)"
		}
		joined = append(joined, record)
	}
	list = append(list, StreamForm{StreamBox, StageBox, []string{"`" + SchemaFileChange + "` sorted", "1 `" + SchemaBox + "`"}})
	list = append(list, StreamForm{StreamNet, StageNet, []string{"`" + SchemaNetExchange + "` sorted", "`" + SchemaNetName + "` sorted", "1 `" + SchemaNet + "`", "1 " + health}})
	list = append(list, StreamForm{StreamClock, StageClock, []string{"1 `" + SchemaClock + "`", "`" + SchemaClockTick + "` sorted"}})
	return append(list, StreamForm{StreamJoined, StageCorrelate, append(joined, "`"+SchemaBox+"` (optional)", "`"+SchemaClock+"` (optional)", "`"+SchemaRunEnv+"` (optional)", "`"+SchemaNet+"` (optional)", "`"+SchemaSurfaceEntry+"` sorted",
		"`"+SchemaBinding+"`", "`"+SchemaAmbiguity+"`", "`"+SchemaReport+"`", "`"+SchemaHealth+"`", "3 "+health)})
})

// ReaderOf says how a stream is read: the tool, and its flag.
func ReaderOf(name string) string {
	switch name {
	case StreamRaw:
		return StageNormalize
	case StreamNormalized:
		return StageCorrelate
	case StreamJoined:
		return StagePack
	}
	for _, l := range Layers {
		if l.Log != nil && l.Log.Stream == name {
			return StageCorrelate + " --" + l.Name
		}
		if l.Wrapper == name {
			return StageCorrelate + " --record"
		}
	}
	return ""
}
