package verdict

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// codeWords say in words what an ambiguity means that is not about a log. %s is its
// path or name.
var codeWords = map[string]string{
	schemas.AmbiguityCgroupFailed:       "tasks left the measured cgroup: the kernel layer holds more than what the command did",
	schemas.AmbiguityDecisionNoEvents:   "the call was allowed, and no kernel event was observed in its window",
	schemas.AmbiguityDeniedEffects:      "the call was denied, but effects on what it named happened",
	schemas.AmbiguityExecWithoutCall:    "%s was executed by a process that is not known to be a tool server's",
	schemas.AmbiguityKernelLost:         "kernel events were lost: every count is a lower bound",
	schemas.AmbiguityOutsideWindows:     "its tool server was active between calls, after this one",
	schemas.AmbiguityTimesUnknown:       "the kernel events came without times, so windows are not known",
	schemas.AmbiguityNotInSDK:           "the SDK did not report the call",
	schemas.AmbiguityNoKernelEvents:     "there are decisions, but no kernel event",
	schemas.AmbiguitySessionNotFinished: "the policy proxy of %s did not finish its log",
	schemas.NoteLogUnused:               "no tool call went through runner-policy: nobody wrote to the decision log",
	schemas.NoteReloaded:                "the policy proxy of %s read its policy file again during the session",
	schemas.AmbiguitySessionOtherPolicy: "the policy proxy of %s used another policy file than the run",
	schemas.AmbiguitySDKCompletedDenied: "the SDK reports as completed what the policy denied",
	schemas.AmbiguitySDKRunNotFinished:  "the SDK did not report how the run ended",
	schemas.AmbiguitySDKNotCompleted:    "the SDK reported that the call started, but not that it completed",
	schemas.AmbiguitySDKNotStarted:      "the SDK reported that the call completed, but not that it started",
	schemas.AmbiguitySDKRepeated:        "the SDK reported the same event of the call more than once",
	schemas.AmbiguitySDKUnbound:         "the SDK reports a call that the policy did not see",
	schemas.AmbiguitySDKNameDiffers:     "the SDK names another tool than the policy",
	schemas.AmbiguityManyDecisions:      "several decisions, and not all have a time: one cgroup does not separate them",
	schemas.AmbiguityEffectsOutside:     "there are effects in its window on things that it did not name",
	schemas.AmbiguityCallIDRepeated:     "several calls have this id",
	schemas.AmbiguityCallNotFinished:    "the end of the call was not seen",
	schemas.AmbiguityTargetsUnknown:     "it is not known which effects are on what it named",
	schemas.AmbiguityCallsOverlap:       "another call of the same tool server ran at the same time, and not every event can be told apart",
	schemas.NoteElsewhere:               "the tool server %s is one over HTTP: what it did is not told apart, or not in the record",
	schemas.AmbiguityConnect:            "the kernel saw a connection to %s, and runner-net has no exchange for it",
	schemas.AmbiguityExchange:           "runner-net has an exchange with %s, and the kernel saw nobody ask to be connected there",
	schemas.AmbiguityNames:              "runner-net was asked for names, and the kernel saw nobody ask a server of names",
	schemas.AmbiguityRecordPartial:      "the record of %s is not whole",
	schemas.AmbiguityServerUnknown:      "the tool server %s is not at its logged place in the process tree",
	schemas.AmbiguityDeniedTarget:       "a tool server touched %s, which the policy denies by name",
	schemas.AmbiguityEffectsLate:        "an effect on what an ended call had named was seen in a later call or request that did not name it",
	schemas.AmbiguityRequestEffects:     "a tool server did something during %s that the request did not name",
	schemas.NoteNotWatched:              "the denied call named nothing that could be watched",
	schemas.NoteExecBefore:              "%s was executed before the first tool server started",
	schemas.NoteSDKFailed:               "the SDK reported no completion: the call was denied, failed or was cancelled",
	schemas.NoteSDKPrefixed:             "the SDK names the tool with its server's prefix",
	schemas.NoteServerBefore:            "a tool server did %s before its first call",
	schemas.NoteServerBetween:           "a tool server did %s after a call had ended",
	schemas.NoteServerRequest:           "a tool server did %s during a request that is no tool call",
	schemas.NoteCallCancelled:           "the client cancelled the call: its server may have gone on",
	schemas.NoteEffectsShared:           "an effect is on what both this call and an earlier one named",
	schemas.NoteNamesNothing:            "the call named nothing, so its effects are not compared with anything",
}

// faultWords say in words what is wrong with a log. %s is the log.
var faultWords = map[schemas.LogFault]string{
	schemas.LogEmpty:        "the %s was requested, but it is empty",
	schemas.LogFlooded:      "the %s exceeded its limits",
	schemas.LogInvalid:      "the %s was read up to a bad line",
	schemas.LogReplaced:     "another file replaced the %s",
	schemas.LogTruncated:    "the %s's last line was not written to its end",
	schemas.LogWriterOpen:   "a process still had the %s open when the command ended",
	schemas.LogWrittenAfter: "a process wrote to the %s after the command ended",
}

// logWords say what an ambiguity about a log means.
func logWords(a *schemas.Ambiguity) string {
	words := fmt.Sprintf(faultWords[a.Fault], a.Layer.Log.Title)
	if a.Gap && a.Layer.Log.Missing != "" {
		words += ": " + a.Layer.Log.Missing
	}
	if a.Arg == schemas.ArgLine {
		words += fmt.Sprintf(" (line %d: %s)", a.Line, a.Why)
	}
	return words
}

// InWords returns the meaning of an entry of a report's ambiguities in words, and the
// entry itself. The text has names from the archive: print it through Printable.
func InWords(entry string) string {
	a, err := schemas.ParseCode(entry)
	if err != nil {
		return entry // of another implementation
	}
	words := codeWords[a.Code]
	switch {
	case a.Layer != nil:
		words = logWords(&a)
	case a.Arg == schemas.ArgPath || a.Arg == schemas.ArgName || a.Arg == schemas.ArgEffect:
		value := fmt.Sprintf("%q", a.Value)
		if a.Arg != schemas.ArgName && a.Value == schemas.MoreCodes {
			value = "something else"
		}
		words = fmt.Sprintf(words, value)
	}
	return words + " (" + entry + ")"
}
