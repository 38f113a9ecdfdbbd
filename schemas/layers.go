package schemas

// Layer is one row of the layer table: the observations of one source, as lines of one
// archive member. Every tool uses this table. runner-exec collects the logs,
// runner-correlate reads them and writes the lines, runner-pack writes the lines to their
// members, runner-verify reads the members. A new layer needs a row here with its parser
// and the words that it names. What its lines mean for other layers is defined by rules of
// runner-correlate and runner-verify. The project's README says how to add a layer.
type Layer struct {
	Name   string // kernel, policy, …: in flags, messages and the layer times
	Member string // archive member
	Schema string // schema string of each line
	File   string // name of the JSON Schema file in this directory

	// An optional layer is present only in a run that asked for it: an archive without
	// the member is valid. The other members are always present, but may be empty.
	Optional bool
	// A volatile layer differs from run to run, whatever the command does. The tools also
	// print the identity of the archive without it.
	Volatile bool
	// MaxBytes bounds the member. 0 is the bound of the archive format: such a layer
	// is never kept in memory.
	MaxBytes int64

	// Parse parses one line, without LF. It is nil for the kernel layer: its lines are
	// many, and the tools read them with a KernelParser.
	Parse func(line []byte) (LayerLine, error)

	Counter string // runner-correlate's counter of the lines; "" is its out
	Note    *Note  // declares the layer in the health
	// Field is the health's field for the presence of the layer, or nil. Present is its
	// value if the layer is present.
	Field   func(*Health) *string
	Present string

	Log *LayerLog // what the layer is made from; nil: not from a log
	// Normalized layers are made by runner-normalize: their lines are in a kernel.normalized
	// stream, in the order of this table, and the note is one of its own.
	Normalized bool
	// Wrapper is the stream of the wrapper that recorded the layer, or "". Such a layer has no times.
	Wrapper string
}

// LayerLog is a log that the measured command writes and runner-exec collects. Its
// flags are --NAME-log of runner-exec and --NAME of runner-correlate.
type LayerLog struct {
	Stream    string // name of the collected stream
	Env       string // variable that tells the command the path of the log
	SchemaEnv string // variable that tells it the schema of the lines, or ""

	// The rest makes the ambiguity codes of the log (LogFault).
	Title     string   // the log in words for people
	Nothing   string   // what an empty log holds: "no event"; "": there need not be anything in it
	GapStatus string   // status of a report whose log has a gap: partial or failed
	Missing   string   // what may be missing then; "" is only later lines of the layer
	Whys      []string // why a line of it can be bad
	OwnLines  bool     // its lines are those of the layer, one for one
}

// LayerLine is a parsed line of any layer.
type LayerLine struct {
	RunID string
	Seq   uint64
	Value any // what Marshal writes as the line's canonical form
}

// Names of layers.
const (
	LayerClock     = "clock"
	LayerNames     = "dns"
	LayerChanges   = "filesystem"
	LayerExchanges = "network"

	LayerFiltered = "filtered"
	LayerIntents  = "intents"
	LayerKernel   = "kernel"
	LayerPolicy   = "policy"
	LayerProcess  = "process"
	LayerSDK      = "sdk"
	LayerTimes    = "times"
)

// MaxLogLayer bounds a layer that is made from a log, in bytes.
const MaxLogLayer = MaxLogBytes

// Layers is the layer table, in the order of the layers in a run.joined stream.
var Layers = []Layer{
	{Name: LayerClock, Member: MemberClock, Schema: SchemaClockTick, File: "clock-tick-v0.schema.json", Optional: true, Wrapper: StreamClock,
		Parse: layerParser(ParseClockTick, func(t *ClockTick) (string, uint64) { return t.RunID, t.Seq }), Counter: CounterTicks, Note: NoteClock},
	{Name: LayerNames, Member: MemberNames, Schema: SchemaNetName, File: "dns-name-v0.schema.json", Optional: true, Wrapper: StreamNet,
		Parse: layerParser(ParseNetName, func(n *NetName) (string, uint64) { return n.RunID, n.Seq }), Counter: CounterNames, Note: NoteNames},
	{Name: LayerChanges, Member: MemberChanges, Schema: SchemaFileChange, File: "file-change-v0.schema.json", Optional: true, Wrapper: StreamBox,
		Parse: layerParser(ParseFileChange, func(c *FileChange) (string, uint64) { return c.RunID, c.Seq }), Counter: CounterChanges, Note: NoteBox},
	{Name: LayerFiltered, Member: MemberFiltered, Schema: SchemaFiltered, File: "filtered-v0.schema.json", Optional: true, MaxBytes: MaxFilteredLayer, Normalized: true,
		Parse: layerParser(ParseFiltered, func(f *FilteredEvent) (string, uint64) { return f.RunID, f.Seq }), Counter: CounterFiltered, Note: NoteNoise},
	{Name: LayerIntents, Member: MemberIntents, Schema: SchemaIntent, File: "intent-v0.schema.json", Optional: true, MaxBytes: MaxLogLayer,
		Parse: layerParser(ParseIntent, func(i *Intent) (string, uint64) { return i.RunID, i.Seq }), Counter: CounterIntents, Note: NoteIntents,
		Log: &LayerLog{Stream: StreamIntentLog, Env: EnvIntentLog, SchemaEnv: EnvIntentSchema,
			Title: "log of intents", GapStatus: CorrelationPartial,
			Whys: []string{WhyJSON, WhySchema, WhyRunID, WhySeq, WhyType, WhyField, WhyConflict, WhySecret}, OwnLines: true}},
	{Name: LayerKernel, Member: MemberKernel, Schema: SchemaKernelEvent, File: "kernel-event-v0.schema.json",
		Note: NoteKernel, Field: func(h *Health) *string { return &h.KernelLayer }},
	{Name: LayerExchanges, Member: MemberExchanges, Schema: SchemaNetExchange, File: "network-exchange-v0.schema.json", Optional: true, Wrapper: StreamNet,
		Parse: layerParser(ParseNetExchange, func(e *NetExchange) (string, uint64) { return e.RunID, e.Seq }), Counter: CounterExchanges, Note: NoteExchanges},
	{Name: LayerPolicy, Member: MemberPolicy, Schema: SchemaPolicyEvent, File: "policy-event-v0.schema.json", MaxBytes: MaxLogLayer,
		Parse: layerParser(ParsePolicyEvent, func(e *PolicyEvent) (string, uint64) { return e.RunID, e.Seq }), Counter: CounterPolicyEvents,
		Note: NotePolicy, Field: func(h *Health) *string { return &h.PolicyLayer }, Present: LayerPresent,
		Log: &LayerLog{Stream: StreamPolicyLog, Env: EnvPolicyLog,
			Title: "decision log", Nothing: "neither decision nor session", GapStatus: CorrelationFailed, Missing: "decisions may be missing",
			Whys: []string{WhyJSON, WhyType, WhyField, WhySeq, WhyConflict}}},
	{Name: LayerProcess, Member: MemberProcess, Schema: SchemaProcessEvent, File: "process-event-v0.schema.json", Optional: true, MaxBytes: MaxProcessLayer, Normalized: true,
		Parse: layerParser(ParseProcessEvent, func(p *ProcessEvent) (string, uint64) { return p.RunID, p.Seq }), Counter: CounterProcessLines, Note: NoteProcesses},
	{Name: LayerSDK, Member: MemberSDK, Schema: SchemaSDKEvent, File: "sdk-event-v0.schema.json", MaxBytes: MaxLogLayer,
		Parse: layerParser(ParseSDKEvent, func(e *SDKEvent) (string, uint64) { return e.RunID, e.Seq }), Counter: CounterSDKEvents,
		Note: NoteSDK, Field: func(h *Health) *string { return &h.SDKLayer }, Present: LayerSelfReported,
		Log: &LayerLog{Stream: StreamSDKLog, Env: EnvSDKLog, SchemaEnv: EnvSDKSchema,
			Title: "SDK log", Nothing: "no event", GapStatus: CorrelationPartial,
			Whys: []string{WhyJSON, WhySchema, WhyRunID, WhySeq, WhyEventType, WhyField}, OwnLines: true}},
	{Name: LayerTimes, Member: MemberTimes, Schema: SchemaTime, File: "time-v0.schema.json", Optional: true, Volatile: true,
		Parse: layerParser(ParseTime, func(t *TimeEvent) (string, uint64) { return t.RunID, t.Seq }), Counter: CounterTimes, Note: NoteTimes},
}

// layerParser makes the table's parser from that of one layer.
func layerParser[E any](parse func([]byte) (*E, error), head func(*E) (runID string, seq uint64)) func([]byte) (LayerLine, error) {
	return func(line []byte) (LayerLine, error) {
		e, err := parse(line)
		if err != nil {
			return LayerLine{}, err
		}
		l := LayerLine{Value: e}
		l.RunID, l.Seq = head(e)
		return l, nil
	}
}

// LayerOf returns the layer of that name.
func LayerOf(name string) (Layer, bool) {
	for _, l := range Layers {
		if l.Name == name {
			return l, true
		}
	}
	return Layer{}, false
}

// LogLayers are the layers that are made from logs.
func LogLayers() (list []Layer) {
	for _, l := range Layers {
		if l.Log != nil {
			list = append(list, l)
		}
	}
	return list
}

// form is the layer's row in the table of forms.
func (l *Layer) form() Form {
	return Form{Schema: l.Schema, File: l.File, Member: l.Member, Lines: true, Optional: l.Optional, MaxBytes: l.MaxBytes}
}
