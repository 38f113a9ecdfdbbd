package schemas

import (
	"slices"
	"strings"
)

// Stages, as stage healths and stream headers name them.
const (
	StageCapture   = "runner-capture"
	StageExec      = "runner-exec"
	StageNormalize = "runner-normalize"
	StageCorrelate = "runner-correlate"
	StagePack      = "runner-pack"
	StageBox       = "runner-box"
	StageNet       = "runner-net"
	StageClock     = "runner-clock"
)

// Role says what a counter means for the record.
type Role int

// Roles of counters.
const (
	RoleNone    Role = iota // does not affect completeness
	RoleLoss                // above 0, the kernel layer is not complete
	RoleEscape              // above 0, the record has lost track of the command
	RoleQuality             // every event is there, but what it says is less than exact
	RoleEnd                 // says how the run ended
	RoleBlind               // enters the note about blind spots
	RoleBalance             // is part of the sums, and has no meaning without the others
)

var roleNames = [...]string{"", "loss", "escape", "quality", "ended", "blind", "balance"}

// String is the role as the specification names it.
func (r Role) String() string { return roleNames[r] }

// Counter is one counter of a stage health (STREAMS.md, "Stage health").
type Counter struct {
	Name  string
	Stage string // who reports it
	Role  Role
	When  string // the runs in which it is reported; "" is all
	Each  string // for a family of counters, what follows Name in their names; otherwise ""
	Why   string // what it counts
}

// Counters of runner-capture.
const (
	CounterBlocked         = "blocked"
	CounterChanged         = "changed"
	CounterCanary          = "canary"
	CounterCompatUnmapped  = "compat_unmapped"
	CounterCoreDumps       = "core_dumps"
	CounterCoveredMisses   = "covered_misses"
	CounterDecodeErrors    = "decode_errors"
	CounterDropped         = "dropped"
	CounterEmitted         = "emitted"
	CounterEscapes         = "escapes"
	CounterFileBlocked     = OpFileBlocked
	CounterFileInserted    = "file_inserted"
	CounterFileRules       = FactFileRules
	CounterFileRulesAuto   = "file_rules_automatic"
	CounterFileUnresolved  = "file_unresolved"
	CounterForeign         = "foreign"
	CounterRoots           = "roots"
	CounterEarlier         = "earlier_processes"
	CounterForeignSockets  = "foreign_sockets"
	CounterSharedArguments = "shared_arguments"
	CounterInheritedFDs    = "inherited_fds"
	CounterIOUringUnmapped = "io_uring_unmapped"
	CounterLexical         = "lexical"
	CounterNetworkRules    = "network_rules"
	CounterPathFault       = "path_fault"
	CounterPathTruncated   = "path_truncated"
	CounterOutcomes        = "outcomes"
	CounterRead            = "read"
	CounterReceived        = "received_fds"
	CounterRecursionMisses = "recursion_misses"
	CounterScratchMissing  = "scratch_missing"
	CounterSeen            = "seen"
	CounterSpooledBytes    = "spooled_bytes"
	CounterSurvivorsKilled = "survivors_killed"
	CounterUnproven        = "unproven"
	CounterUserFault       = "user_fault"
	CounterUserTruncated   = "user_truncated"

	CounterBlockedByRule     = "blocked.rule."      // and the number of the rule
	CounterFileBlockedByRule = "file_blocked.rule." // and the number of the rule
	CounterMissed            = "missed."            // and the probe
	CounterDroppedByOp       = "dropped."           // and the operation
)

// Counters of the stages after runner-capture. CounterLexical is one of
// runner-normalize as well.
const (
	CounterAdded          = "added"
	CounterHookOnly       = "hook_only"
	CounterNullValues     = "null_values"
	CounterOrphans        = "orphans"
	CounterProcesses      = "processes"
	CounterProcessRecords = "process_records"
	CounterTasks          = "tasks"

	CounterPolicyEvents   = "policy_events"
	CounterIntents        = "intents"
	CounterSDKEvents      = "sdk_events"
	CounterSurfaceEntries = "surface_entries"
	CounterTimes          = "times"
	CounterTicks          = "clock_ticks"
	CounterNames          = "dns_names"
	CounterChanges        = "file_changes"
	CounterExchanges      = "network_exchanges"
	CounterFiltered       = "filtered"
	CounterProcessLines   = "process_lines"
)

// Counters of a collected log.
const (
	CounterAfterEndBytes = "after_end_bytes"
	CounterBytes         = "bytes"
	CounterDroppedBytes  = "dropped_bytes"
	CounterLines         = "lines"
)

// Counters of runner-net.
const (
	CounterNetAllowed   = "allowed"
	CounterNetDenied    = "denied"
	CounterNetReplayed  = "replayed"
	CounterNetMissed    = "misses"
	CounterNetUnused    = "unused"
	CounterNetFailed    = "failed"
	CounterNetRedacted  = "redacted"
	CounterNetNames     = "names"
	CounterNetNamesLost = "names_lost"
)

// The runs in which a counter or a fact is reported, if not in all.
const (
	WhenEnforced  = "only under network rules"
	WhenFileRules = "only under file rules"
	WhenSome      = "only if there was some"
	WhenMissed    = "only if events of PROBE were missed"
	WhenDrops     = "only with drops of operation OP"
	WhenRefused   = "only if rule number N refused something"
	WhenConfined  = "only if the command was confined"
	WhenCaptured  = "only with a kernel capture"
	WhenOptional  = "optional"
	WhenWindows   = "only with `--windows`"
	WhenPolicyLog = "only with `--policy`"
	WhenSDKLog    = "only with `--sdk`"
	WhenIntentLog = "only with `--intents`"
	WhenPolicy    = "only of the policy log, under `--policy`"
	WhenTimes     = "only with `--times`"
	WhenFiltered  = "only if there are some"
)

// Counters are all counters, by stage and name.
var Counters = [...]Counter{
	{Name: CounterCanary, Stage: StageCapture, Role: RoleBalance, Why: "records of the runner's own test call, which proves that the hooks work; not written out"},
	{Name: CounterCompatUnmapped, Stage: StageCapture, Role: RoleLoss, Why: "calls through the 32-bit or x32 system call entry that are not decoded"},
	{Name: CounterDecodeErrors, Stage: StageCapture, Role: RoleLoss, Why: "records that arrived but could not be decoded"},
	{Name: CounterDropped, Stage: StageCapture, Role: RoleLoss, Why: "records for which the ring had no room"},
	{Name: CounterEmitted, Stage: StageCapture, Role: RoleBalance, Why: "records handed to the ring"},
	{Name: CounterEscapes, Stage: StageCapture, Role: RoleEscape, Why: "tasks that left the measured cgroup, by a move or by a fork into another; with drops and misses also moves that cannot be ruled out: dropped and missed moves, and with dropped or missed forks or execs the moves of unknown tasks"},
	{Name: CounterForeign, Stage: StageCapture, Role: RoleBalance, Why: "moves of tasks outside the scope; not written out"},
	{Name: CounterCoreDumps, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "core dumps of processes, by their exit status. The kernel wrote each to a file or gave it to a program outside of the cgroup, by its core_pattern: which one is not known"},
	{Name: CounterRoots, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "roots of mount namespaces that programs changed, as container engines do"},
	{Name: CounterEarlier, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "processes that were in the cgroup when a capture of one that was there before began"},
	{Name: CounterInheritedFDs, Stage: StageCapture, Role: RoleBlind, Why: "descriptors above 2 that the command was started with; of a cgroup that was there before, those of its processes when the capture began"},
	{Name: CounterReceived, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "descriptors that recvmsg and recvmmsg of 64-bit programs and pidfd_getfd were seen to bring. It is the least number: messages are read in the program's memory after the call, of a call only the first, and the first 4 parts of its control data; and what io_uring receives is not counted"},
	{Name: CounterIOUringUnmapped, Stage: StageCapture, Role: RoleLoss, Why: "io_uring requests that are not decoded, had no room or were not seen to complete; where io_uring cannot be observed, the rings that were made"},
	{Name: CounterLexical, Stage: StageCapture, Role: RoleQuality, Why: "records whose path is known only as text, not as the kernel resolved it; runner-normalize counts the same over its lines, and then the note has that number"},
	{Name: CounterPathFault, Stage: StageCapture, Role: RoleQuality, Why: "records whose resolved path could not be read from the kernel"},
	{Name: CounterPathTruncated, Stage: StageCapture, Role: RoleQuality, Why: "records whose resolved path is longer than a record holds"},
	{Name: CounterRead, Stage: StageCapture, Role: RoleBalance, Why: "records received from the ring"},
	{Name: CounterRecursionMisses, Stage: StageCapture, Role: RoleLoss, Why: "runs of a probe that the kernel skipped because the same probe was already running on that CPU, without those of probes with copies"},
	{Name: CounterScratchMissing, Stage: StageCapture, Role: RoleLoss, Why: "events for which the probe found no memory to build the record in"},
	{Name: CounterSeen, Stage: StageCapture, Role: RoleBalance, Why: "records that the probes began"},
	{Name: CounterSpooledBytes, Stage: StageCapture, Role: RoleBalance, Why: "bytes of lines that went through a file on disk because the next stage was slower"},
	{Name: CounterSurvivorsKilled, Stage: StageCapture, Role: RoleEnd, Why: "processes that outlived the command by more than the grace time and were killed"},
	{Name: CounterUserFault, Stage: StageCapture, Role: RoleQuality, Why: "records whose path or socket address in the program's memory could not be read"},
	{Name: CounterUserTruncated, Stage: StageCapture, Role: RoleQuality, Why: "records whose path text is longer than a record holds"},
	{Name: CounterForeignSockets, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "connects and sends of tasks outside of the scope, kernel threads too, on sockets that were made in it; not written out"},
	{Name: CounterSharedArguments, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "openat2, and socket calls whose address neither the socket nor an address hook tells, with their structure or address in memory that other tasks have, too: these could change it before the kernel took it, and change it back. Where it was another one at the end of the call than at its beginning, or the opened file says otherwise, the record is counted as `changed` as well"},
	{Name: CounterChanged, Stage: StageCapture, Role: RoleQuality, When: WhenSome, Why: "records of calls whose objects or arguments could have changed under the call: their lines have the key `doubt`"},
	{Name: CounterUnproven, Stage: StageCapture, Role: RoleQuality, When: WhenSome, Why: "records of calls that nothing shows to have run: their lines have the status `unproven`"},
	{Name: CounterCoveredMisses, Stage: StageCapture, Role: RoleNone, When: WhenOptional, Why: "the skipped runs of probes that have copies, which are then not in `recursion_misses`; the fact `redundant` says what they cost. Otherwise 0"},
	{Name: CounterOutcomes, Stage: StageCapture, Role: RoleBalance, When: WhenOptional, Why: "records that only say that a program was told EINTR: the event of that call has it as its `ret`"},
	{Name: CounterMissed, Stage: StageCapture, Role: RoleNone, When: WhenMissed, Each: "PROBE", Why: "events of one probe that were missed: runs that the kernel skipped or, of a probe with copies, events that no copy saw; of io_uring's probes also those of other programs, if the run uses io_uring. Their sum is `recursion_misses` and the N of `redundant`"},
	{Name: CounterDroppedByOp, Stage: StageCapture, Role: RoleNone, When: WhenDrops, Each: "OP", Why: "the part of `dropped` that one operation has; their sum is `dropped`"},
	{Name: CounterNetworkRules, Stage: StageCapture, Role: RoleNone, When: WhenEnforced, Why: "rules of the policy file that were enforced"},
	{Name: CounterBlocked, Stage: StageCapture, Role: RoleNone, When: WhenEnforced, Why: "operations that the rules refused"},
	{Name: CounterBlockedByRule, Stage: StageCapture, Role: RoleNone, When: WhenRefused, Each: "N", Why: "the part of `blocked` that one rule refused, by its number; their sum is `blocked`"},
	{Name: CounterFileRules, Stage: StageCapture, Role: RoleNone, When: WhenFileRules, Why: "file and exec rules of the policy file that were enforced"},
	{Name: CounterFileBlocked, Stage: StageCapture, Role: RoleNone, When: WhenFileRules, Why: "file operations that the rules refused"},
	{Name: CounterFileBlockedByRule, Stage: StageCapture, Role: RoleNone, When: WhenRefused, Each: "N", Why: "the part of `file_blocked` that one rule refused, by its number; 0 are both defaults. Their sum is `file_blocked`"},
	{Name: CounterFileInserted, Stage: StageCapture, Role: RoleBalance, When: WhenFileRules, Why: "events of refused file operations that did not come through the ring: runner-capture made them where it listens itself"},
	{Name: CounterFileRulesAuto, Stage: StageCapture, Role: RoleBlind, When: WhenSome, Why: "rules that runner-exec put before those of the policy file, so that the command can write to the logs of the run; they have no number"},
	{Name: CounterFileUnresolved, Stage: StageCapture, Role: RoleQuality, When: WhenSome, Why: "the part of `file_blocked` that was refused because the object's place could not be found: a rule that denies could be about it, and the number is that of the first one that could be"},

	{Name: CounterAfterEndBytes, Stage: StageExec, Role: RoleNone, Why: "bytes of the log that arrived after the command's end"},
	{Name: CounterBytes, Stage: StageExec, Role: RoleNone, Why: "bytes of the log that arrived"},
	{Name: CounterDroppedBytes, Stage: StageExec, Role: RoleNone, Why: "bytes of the log after the first limit that it met; they are not kept"},
	{Name: CounterLines, Stage: StageExec, Role: RoleNone, Why: "lines of the log that were kept"},

	{Name: CounterAdded, Stage: StageNormalize, Role: RoleBalance, Why: "second lines of operations with two lines"},
	{Name: CounterHookOnly, Stage: StageNormalize, Role: RoleNone, Why: "lines of what only the address hook saw"},
	{Name: CounterLexical, Stage: StageNormalize, Role: RoleQuality, Why: "values joined from text, over the lines before `--drop`"},
	{Name: CounterNullValues, Stage: StageNormalize, Role: RoleNone, Why: "lines with the value null, over the lines before `--drop`"},
	{Name: CounterOrphans, Stage: StageNormalize, Role: RoleNone, Why: "tasks whose creation was not seen"},
	{Name: CounterProcessRecords, Stage: StageNormalize, Role: RoleBalance, When: WhenWindows, Why: "`runner.process.v0` records written. It also says that the stream has times"},
	{Name: CounterProcesses, Stage: StageNormalize, Role: RoleNone, Why: "processes of the tree"},
	{Name: CounterTasks, Stage: StageNormalize, Role: RoleNone, Why: "tasks of the tree"},

	{Name: CounterNetAllowed, Stage: StageNet, Role: RoleNone, Why: "exchanges that were passed on"},
	{Name: CounterNetDenied, Stage: StageNet, Role: RoleNone, Why: "exchanges that no rule allows"},
	{Name: CounterNetFailed, Stage: StageNet, Role: RoleNone, Why: "exchanges with a failure"},
	{Name: CounterNetMissed, Stage: StageNet, Role: RoleNone, Why: "exchanges that no recording answers"},
	{Name: CounterNetNames, Stage: StageNet, Role: RoleNone, Why: "names that were asked for, by name and type"},
	{Name: CounterNetNamesLost, Stage: StageNet, Role: RoleNone, Why: "questions about names beyond the first 65,536 names"},
	{Name: CounterNetRedacted, Stage: StageNet, Role: RoleNone, Why: "values of headers and queries that were taken out"},
	{Name: CounterNetReplayed, Stage: StageNet, Role: RoleNone, Why: "exchanges that were answered from a recording"},
	{Name: CounterNetUnused, Stage: StageNet, Role: RoleNone, Why: "exchanges of the recording that nothing asked for"},

	{Name: CounterFiltered, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer filtered"},
	{Name: CounterIntents, Stage: StageCorrelate, Role: RoleBalance, When: WhenIntentLog, Why: "lines of the layer intents"},
	{Name: CounterProcessLines, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer process"},
	{Name: CounterTicks, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer clock"},
	{Name: CounterNames, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer dns"},
	{Name: CounterChanges, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer filesystem"},
	{Name: CounterExchanges, Stage: StageCorrelate, Role: RoleBalance, When: WhenFiltered, Why: "lines of the layer network"},
	{Name: CounterPolicyEvents, Stage: StageCorrelate, Role: RoleBalance, When: WhenPolicyLog, Why: "lines of the policy layer"},
	{Name: CounterSDKEvents, Stage: StageCorrelate, Role: RoleBalance, When: WhenSDKLog, Why: "lines of the SDK layer"},
	{Name: CounterSurfaceEntries, Stage: StageCorrelate, Role: RoleBalance, Why: "entries of the capability surface"},
	{Name: CounterTimes, Stage: StageCorrelate, Role: RoleBalance, When: WhenTimes, Why: "lines of the layer times"},
}

// KnownCounter reports whether a stage has a counter, or a family of counters, of that name.
func KnownCounter(stage, name string) bool {
	for i := range Counters {
		if c := &Counters[i]; c.Stage == stage && (c.Name == name || c.Each != "" && len(name) > len(c.Name) && strings.HasPrefix(name, c.Name)) {
			return true
		}
	}
	return false
}

// CountersOf are the names of the counters that a stage reports in every run (when is ""),
// or in the runs that when names. Families of counters are left out.
func CountersOf(stage, when string) (names []string) {
	for i := range Counters {
		if c := &Counters[i]; c.Stage == stage && c.When == when && c.Each == "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// Cause is a reason for an incomplete kernel layer that is not one counter above 0.
type Cause struct {
	Name  string
	Value string                  // what follows the name in the note
	Is    func(value string) bool // whether a value is of this form; nil: a number above 0
	Why   string
}

// Causes that are not counters.
const (
	CauseCanaryAfter   = FactCanaryAfter
	CauseCanaryBefore  = FactCanaryBefore
	CauseEngines       = FactEngines
	CauseHooksMissing  = FactHooksMissing
	CauseInterference  = FactInterference
	CauseRedundantLost = "redundant_lost"
	CauseUnaccounted   = "unaccounted"
	CauseUnread        = "unread"
)

// Causes are all causes that are not counters, by name.
var Causes = [...]Cause{
	{CauseCanaryAfter, "`missed` or `not_run`", notSeen, "the test call at the end was not reported"},
	{CauseCanaryBefore, "`missed` or `not_run`", notSeen, "the test call at the start was not reported"},
	{CauseEngines, "names, comma separated", isEngines, "[container engines](STREAMS.md#container-engines) started something outside of the cgroup, or could"},
	{CauseHooksMissing, "names, comma separated", isList, "required hooks did not attach"},
	{CauseInterference, "kinds, comma separated", isKinds, "programs of the scope interfered with the measurement itself"},
	{CauseRedundantLost, "count", nil, "events of probes with copies that no copy saw"},
	{CauseUnaccounted, "count", nil, "`seen` differs from `emitted + dropped` by so many"},
	{CauseUnread, "count", nil, "`emitted` differs from `read` by so many"},
}

func notSeen(value string) bool { return value == CanaryMissed || value == NotRun }

func isList(value string) bool { return !slices.Contains(strings.Split(value, ","), "") }

// isKinds reports whether a value is kinds of interference, each once and in their order.
func isKinds(value string) bool {
	last := -1
	for kind := range strings.SplitSeq(value, ",") {
		i := slices.IndexFunc(Interferences[:], func(k Interference) bool { return k.Kind == kind })
		if i <= last {
			return false
		}
		last = i
	}
	return true
}
