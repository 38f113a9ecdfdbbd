package schemas

import "strings"

// LogFault is what is wrong with the log of a layer as a whole. The code of a fault is
// the layer's name, "_log_" and the fault.
type LogFault string

// Faults of logs.
const (
	LogEmpty        LogFault = "empty"
	LogFlooded      LogFault = "flooded"
	LogInvalid      LogFault = "invalid"
	LogReplaced     LogFault = "replaced"
	LogTruncated    LogFault = "truncated"
	LogWriterOpen   LogFault = "writer_open_at_end"
	LogWrittenAfter LogFault = "written_after_end"
)

// logFault is one row of the table of faults.
type logFault struct {
	fault LogFault
	says  string // what the code stands for
	// kept is what the layer holds if the fault leaves a gap in the log, "" if it
	// leaves none. LayerLog.Missing replaces it.
	kept string
}

var logFaults = [...]logFault{
	{fault: LogEmpty, says: "a log was asked for and holds "},
	{fault: LogFlooded, says: "the log went beyond its limits", kept: "the layer holds what was before"},
	{fault: LogInvalid, says: "the log is read up to a bad line", kept: "the layer holds what was valid before"},
	{fault: LogReplaced, says: "the path of the log led to another file", kept: "the layer holds what was valid"},
	{fault: LogTruncated, says: "the last line has no LF; it is left out if it is not JSON"},
	{fault: LogWriterOpen, says: "a process held the log open when the command ended"},
	{fault: LogWrittenAfter, says: "something was written to the log after the command ended"},
}

const logInfix = "_log_"

// LogCode is the ambiguity code of a fault of the layer's log, without argument.
func (l *Layer) LogCode(f LogFault) string { return l.Name + logInfix + string(f) }

// canHave reports whether a fault is one of the layer's log: some may be empty.
func (l *Layer) canHave(f *logFault) bool { return f.fault != LogEmpty || !l.Log.MayBeEmpty() }

// MayBeEmpty reports whether an empty log is in order.
func (l *LayerLog) MayBeEmpty() bool { return l.Nothing == "" }

// faultKind is the kind of ambiguity that a fault of the layer's log is.
func (l *Layer) faultKind(f *logFault) AmbiguityKind {
	k := AmbiguityKind{Code: l.LogCode(f.fault), Status: CorrelationPartial, Says: f.says, Layer: l, Fault: f.fault, Gap: f.kept != ""}
	if k.Gap {
		k.Status = l.Log.GapStatus
		if l.Log.Missing != "" {
			k.Says += ": " + l.Log.Missing
		} else {
			k.Says += ": " + f.kept
		}
	}
	switch f.fault {
	case LogEmpty:
		k.Says += l.Log.Nothing
	case LogInvalid:
		k.Arg, k.Whys = ArgLine, l.Log.Whys
	}
	return k
}

// logKind returns the kind of a code about a log of the layer table, nil if there is
// none.
func logKind(code string) *AmbiguityKind {
	name, fault, ok := strings.Cut(code, logInfix)
	if !ok {
		return nil
	}
	l, ok := LayerOf(name)
	if !ok || l.Log == nil {
		return nil
	}
	for i := range logFaults {
		if f := &logFaults[i]; string(f.fault) == fault && l.canHave(f) {
			k := l.faultKind(f)
			return &k
		}
	}
	return nil
}
