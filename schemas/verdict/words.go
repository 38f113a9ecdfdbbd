package verdict

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// codeWords say in words what an ambiguity means. %s is its id, path or name.
var codeWords = map[string]string{
	schemas.AmbiguityCgroupFailed:       "tasks left the measured cgroup: what the kernel layer holds is not of the command alone",
	schemas.AmbiguityDecisionNoEvents:   "the call was allowed, and no kernel event was observed in its window",
	schemas.AmbiguityDeniedEffects:      "the call was denied, and effects on what it named came all the same",
	schemas.AmbiguityExecWithoutCall:    "%s was executed by a process that is not known to be a tool server's",
	schemas.AmbiguityKernelLost:         "kernel events were lost: every count is a lower bound",
	schemas.AmbiguityOutsideWindows:     "its tool server went on between calls, after this one",
	schemas.AmbiguityTimesUnknown:       "the kernel events came without times, so windows cannot be told",
	schemas.AmbiguityNotInSDK:           "the SDK never mentioned the call",
	schemas.AmbiguityNoKernelEvents:     "there are decisions, and not one kernel event",
	schemas.AmbiguityPolicyEmpty:        "a decision log was asked for and holds nothing",
	schemas.AmbiguityPolicyFlooded:      "the decision log went beyond its limits: decisions may be missing",
	schemas.AmbiguityPolicyInvalid:      "the decision log is read up to a bad line: decisions may be missing (%s)",
	schemas.AmbiguityPolicyReplaced:     "another file stood in the decision log's place: decisions may be missing",
	schemas.AmbiguityPolicyTruncated:    "the decision log's last line was not written to its end",
	schemas.AmbiguityPolicyWriterOpen:   "somebody held the decision log open when the command ended",
	schemas.AmbiguityPolicyWrittenAfter: "somebody wrote to the decision log after the command ended",
	schemas.AmbiguitySessionNotFinished: "the policy proxy of %s was cut off",
	schemas.AmbiguitySessionOtherPolicy: "the policy proxy of %s decided by another policy file than the run's",
	schemas.AmbiguitySDKCompletedDenied: "the SDK reports as completed what the policy denied",
	schemas.AmbiguitySDKEmpty:           "an SDK log was asked for and holds no event",
	schemas.AmbiguitySDKFlooded:         "the SDK log went beyond its limits",
	schemas.AmbiguitySDKInvalid:         "the SDK log is read up to a bad line (%s)",
	schemas.AmbiguitySDKReplaced:        "another file stood in the SDK log's place",
	schemas.AmbiguitySDKTruncated:       "the SDK log's last line was not written to its end",
	schemas.AmbiguitySDKWriterOpen:      "somebody held the SDK log open when the command ended",
	schemas.AmbiguitySDKWrittenAfter:    "somebody wrote to the SDK log after the command ended",
	schemas.AmbiguitySDKRunNotFinished:  "the SDK never said how the run ended",
	schemas.AmbiguitySDKNotCompleted:    "the SDK said that the call started, and not that it completed",
	schemas.AmbiguitySDKNotStarted:      "the SDK said that the call completed, and not that it started",
	schemas.AmbiguitySDKRepeated:        "the SDK said the same of the call more than once",
	schemas.AmbiguitySDKUnbound:         "the SDK names a call that the policy never saw",
	schemas.AmbiguitySDKNameDiffers:     "the SDK names another tool than the policy",
	schemas.AmbiguityManyDecisions:      "several decisions, and not all have a time: one cgroup cannot tell them apart",
	schemas.AmbiguityEffectsOutside:     "there are effects in its window on things that it did not name",
	schemas.AmbiguityCallIDRepeated:     "several calls have this id",
	schemas.AmbiguityCallNotFinished:    "nobody saw the call end",
	schemas.AmbiguityTargetsUnknown:     "nobody can tell which effects are on what it named",
	schemas.AmbiguityCallsOverlap:       "another call of the same tool server ran at the same time",
	schemas.AmbiguityServerUnknown:      "the tool server %s is not in the process tree where its log says",
}

// InWords says what an entry of a report's ambiguities means, and the entry.
func InWords(entry string) string {
	a, err := schemas.ParseCode(entry)
	if err != nil {
		return entry // of another implementation
	}
	words := codeWords[a.Code]
	switch a.Arg {
	case schemas.ArgPath, schemas.ArgName:
		value := fmt.Sprintf("%q", a.Value)
		if a.Code == schemas.AmbiguityExecWithoutCall && a.Value == schemas.ExecWithoutCallMore {
			value = "something else"
		}
		words = fmt.Sprintf(words, value)
	case schemas.ArgLine:
		words = fmt.Sprintf(words, fmt.Sprintf("line %d: %s", a.Line, a.Why))
	}
	return words + " (" + entry + ")"
}
