package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// Fact is one fact of a stage health: a name and a text (STREAMS.md, "Facts of runner-capture";
// POLICY.md, "Collected logs").
type Fact struct {
	Name   string
	Stage  string   // who reports it
	Values []string // the texts that it may have; empty is any text
	Form   string   // the form of texts that Values does not list, for the specification
	When   string   // the runs in which it is reported; "" is all
	Why    string   // what it says
}

// Facts of runner-capture.
const (
	FactArguments     = "arguments"
	FactArgumentsKey  = "arguments_key"
	FactCanaryAfter   = "canary_after"
	FactCanaryBefore  = "canary_before"
	FactConfined      = "confined"
	FactEngines       = "engines"
	FactEnd           = "end"
	FactFileMechanism = "file_mechanism"
	FactFilePolicy    = "file_policy"
	FactFileRuleIDs   = "file_rule_ids"
	FactFileRules     = "file_rules"
	FactHooksMissing  = "hooks_missing"
	FactInterference  = "interference"
	FactIOUring       = "io_uring"
	FactIOUringForm   = "io_uring_form"
	FactKernelCapture = "kernel_capture"
	FactLoaded        = "loaded"
	FactMountNS       = "capture_mount_ns"
	FactNetworkPolicy = "network_policy"
	FactNetworkIDs    = "network_rule_ids"
	FactNetworkRules  = "network_rules"
	FactPathObjects   = "path_objects"
	FactPlatform      = "platform"
	FactPreemption    = "preemption"
	FactProbes        = "probes"
	FactRedundant     = "redundant"
	FactRunClock      = "run_clock"
	FactSupervisor    = "supervisor"
	FactResults       = "connect_results"
	FactUnixHooks     = "unix_hooks"
)

// Facts of a collected log.
const (
	FactPolicyDigest = "policy_digest"
	FactReplaced     = "replaced"
	FactStopped      = "stopped"
	FactUnterminated = "unterminated"
	FactWritersAtEnd = "writers_at_end"
)

// Values of kernel_capture. The first is also that of an optional hook.
const (
	CaptureAttached     = "attached"
	CaptureNotRequested = "not_requested"
	CaptureUnsupported  = "unsupported"
)

// Parts of the kernel that the probes can do without: names in the fact loaded, and in the
// flag by which a test makes them do so.
const (
	LoadCast    = "cast"
	LoadLoop    = "loop"
	LoadObjects = "objects"
	LoadNone    = "none"
)

// LoadWithout are the sets of parts that the flag takes.
var LoadWithout = []string{LoadNone, LoadCast, LoadLoop, LoadCast + "," + LoadLoop, LoadObjects}

// LoadedWhole is the fact loaded of a capture whose programs use everything that they can.
const LoadedWhole = "whole"

// Values of canary_before and canary_after. In a run without a capture, every fact of the
// capture has the last one.
const (
	CanarySeen   = "seen"
	CanaryMissed = "missed"
	NotRun       = "not_run"
)

// Values of end: how the capture ended.
const (
	EndEmpty  = "empty"
	EndKilled = "killed"
	EndSignal = "signal"
)

// Values of network_rules and of file_rules.
const (
	RulesOff      = "off"
	RulesEnforced = "enforced"
)

// Values of redundant. The last two are prefixes, before a count and before a reason. A
// reason follows in the facts of optional hooks too.
const (
	RedundantOff       = "off"
	redundantLost      = "on: lost="
	UnavailableBecause = "unavailable: "
)

// Values of preemption. The last is a prefix, before a reason.
const (
	PreemptionNone       = "none"
	PreemptionTasks      = "tasks"
	PreemptionCalls      = "calls"
	PreemptionTasksCalls = "tasks calls"
	preemptionUnknown    = "unknown: "
)

// Whose probes a run uses: the flag --probes. The last is also the fact probes.
const (
	ProbesAuto   = "auto"
	ProbesOwn    = "own"
	ProbesShared = "shared"
)

// ProbesWords are the values of the flag.
var ProbesWords = [...]string{ProbesAuto, ProbesOwn, ProbesShared}

// Values of supervisor.
const (
	SupervisorExec = "exec"
	SupervisorNone = "none"
)

// Values of the facts of a collected log.
const (
	Yes            = "yes"
	No             = "no"
	WritersNone    = "none"
	WritersOpen    = "open"
	WritersUnknown = "unknown"
	StoppedNot     = ""
	StoppedLine    = "line_too_long"
	StoppedBytes   = "too_many_bytes"
	StoppedLines   = "too_many_lines"
)

// PlatformLinux is the platform that has a kernel layer.
const PlatformLinux = "linux"

// Facts are all facts, by stage and name.
var Facts = [...]Fact{
	{Name: FactCanaryAfter, Stage: StageCapture, Values: []string{CanarySeen, CanaryMissed, NotRun}, Why: "whether the hooks reported the runner's own test call at the end"},
	{Name: FactCanaryBefore, Stage: StageCapture, Values: []string{CanarySeen, CanaryMissed, NotRun}, Why: "the same at the start"},
	{Name: FactEnd, Stage: StageCapture, Values: []string{EndEmpty, EndKilled, EndSignal}, Why: "how the capture ended: the cgroup was empty, what was left was killed, or a signal came"},
	{Name: FactHooksMissing, Stage: StageCapture, Form: "names, space separated, or empty", Why: "required hooks that did not attach"},
	{Name: FactIOUring, Stage: StageCapture, Form: "`attached`, `unavailable: WHY`", Why: "whether io_uring is observed"},
	{Name: FactKernelCapture, Stage: StageCapture, Values: []string{CaptureAttached, CaptureNotRequested, CaptureUnsupported}, Why: "whether there was a kernel capture"},
	{Name: FactInterference, Stage: StageCapture, Form: "`KIND=N` words, space separated", When: WhenSome, Why: "what programs of the scope did to the measurement itself, by [kind](#interference)"},
	{Name: FactEngines, Stage: StageCapture, Form: "names, space separated", When: WhenSome, Why: "[container engines](#container-engines) that started something outside of the cgroup, or could"},
	{Name: FactPlatform, Stage: StageCapture, Form: "`linux`, `macos`, `windows` …", Why: "the operating system"},
	{Name: FactRedundant, Stage: StageCapture, Form: "`off`, `on: lost=N`, `unavailable: WHY`", Why: "whether probes ran in several copies, and how many events no copy saw"},
	{Name: FactSupervisor, Stage: StageCapture, Values: []string{SupervisorExec, SupervisorNone}, Why: "whether runner-exec started the command"},
	{Name: FactUnixHooks, Stage: StageCapture, Form: "`attached`, `unavailable: WHY`", Why: "whether the address hooks of unix sockets are there"},
	{Name: FactIOUringForm, Stage: StageCapture, Form: "`SUBMIT COMPLETE NAMES`, or empty", When: WhenCaptured, Why: "the forms in which the kernel reports io_uring's requests, by which the probes were chosen: the tracepoint at submission, what the one at completion gives, and the type of the names"},
	{Name: FactLoaded, Stage: StageCapture, Form: "`" + LoadedWhole + "`, `without PART: WHY; …`", When: WhenCaptured, Why: "what the probes do without on this kernel (`cast`, reads by single instructions; `loop`, the helper bpf_loop; `objects`, the objects of path operations), and why: its types, the verifier's words, or as asked. Without `cast` or `loop` they record the same, except that loaders of programs are not known without `loop`"},
	{Name: FactResults, Stage: StageCapture, Form: "`attached`, `unavailable: WHY`", When: WhenCaptured, Why: "whether the kernel reports the results of connects that were pending at the end of their calls. Where it does not, they stay pending"},
	{Name: FactPathObjects, Stage: StageCapture, Form: "names of functions, space separated, or `unavailable: WHY`", When: WhenCaptured, Why: "the functions of the kernel from which the objects of path operations come. Where they are unavailable, all paths of such operations are lexical"},
	{Name: FactPreemption, Stage: StageCapture, Form: "`none`, `tasks`, `calls`, `tasks calls`, `unknown: WHY`", When: WhenCaptured, Why: "what a test at the start found: at which hooks the kernel can preempt a task inside a probe, and then skips that probe for the other tasks of the CPU. `tasks` are exec, fork, exit, moves and io_uring, `calls` the system calls. The probes of exec, fork, exit and of system calls then have copies, unless `--redundant` says otherwise; if it is not known, all of these have"},
	{Name: FactProbes, Stage: StageCapture, Values: []string{ProbesShared}, When: WhenOptional, Why: "only if the run used probes that other runs used too: `--probes`"},
	{Name: FactArguments, Stage: StageCapture, Values: ArgvModes[:], When: WhenCaptured, Why: "how arguments of programs were recorded: `--argv`"},
	{Name: FactArgumentsKey, Stage: StageCapture, Form: "`none`, `sha256:HEX`", When: WhenCaptured, Why: "the SHA-256 of the key of their digests: `--argv-key`"},
	{Name: FactMountNS, Stage: StageCapture, Form: "`N`", When: WhenCaptured, Why: "inode number of the mount namespace of runner-capture: that of the run, where runner-exec did not start the command ([DERIVATION.md](DERIVATION.md#processes-and-their-context))"},
	{Name: FactNetworkRules, Stage: StageCapture, Values: []string{RulesOff, RulesEnforced}, When: WhenCaptured, Why: "whether network rules were enforced"},
	{Name: FactNetworkPolicy, Stage: StageCapture, Form: "`sha256:HEX`", When: WhenEnforced, Why: "the policy digest of the enforced rules"},
	{Name: FactNetworkIDs, Stage: StageCapture, Form: "`NUMBER=ID` words, space separated, or empty", When: WhenOptional, Why: "under network rules, of each rule the number that events name and its id in the policy file. Streams of before do not have it"},
	{Name: FactFileRules, Stage: StageCapture, Values: []string{RulesOff, RulesEnforced}, When: WhenCaptured, Why: "whether file rules were enforced"},
	{Name: FactFilePolicy, Stage: StageCapture, Form: "`sha256:HEX`", When: WhenFileRules, Why: "the policy digest of the enforced file rules"},
	{Name: FactFileRuleIDs, Stage: StageCapture, Form: "`NUMBER=ID` words, space separated, or empty", When: WhenOptional, Why: "the same under file rules"},
	{Name: FactFileMechanism, Stage: StageCapture, Values: FileMechanisms[:], When: WhenFileRules, Why: "what enforced them"},
	{Name: FactConfined, Stage: StageCapture, Form: "names of [Confinement](#confinement), comma separated", When: WhenConfined, Why: "what the command was started without"},
	{Name: FactRunClock, Stage: StageCapture, Form: "`monotonic_ns=N realtime_ns=N finished_ns=N`", When: WhenTimes, Why: "the clocks CLOCK_MONOTONIC and CLOCK_REALTIME at run_started, and how long after it the command had ended"},

	{Name: FactReplaced, Stage: StageExec, Values: []string{Yes, No}, Why: "whether the path led to another file at the end, or on Linux at any time"},
	{Name: FactStopped, Stage: StageExec, Values: []string{StoppedNot, StoppedLine, StoppedBytes, StoppedLines}, Why: "the limit that the log met; from the start of that line on, bytes are dropped and counted"},
	{Name: FactUnterminated, Stage: StageExec, Values: []string{Yes, No}, Why: "whether the last line lacks its LF"},
	{Name: FactWritersAtEnd, Stage: StageExec, Values: []string{WritersNone, WritersOpen, WritersUnknown}, Why: "whether a process held the log open when the command ended"},
	{Name: FactPolicyDigest, Stage: StageExec, Form: "`sha256:HEX`", When: WhenPolicy, Why: "the policy digest of the run"},
}

// FactsOf are the facts that a stage reports in every run (when is ""), or in the runs
// that when names.
func FactsOf(stage, when string) (facts []*Fact) {
	for i := range Facts {
		if f := &Facts[i]; f.Stage == stage && f.When == when {
			facts = append(facts, f)
		}
	}
	return facts
}

// LookupFact returns the fact of a stage.
func LookupFact(stage, name string) (*Fact, bool) {
	for i := range Facts {
		if f := &Facts[i]; f.Stage == stage && f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// Check says why a fact of a stage health is wrong.
func (f *Fact) Check(h *StageHealth) error {
	v, there := h.Facts[f.Name]
	if !there {
		return fmt.Errorf("%s reports no fact %q", h.Stage, f.Name)
	}
	for _, w := range f.Values {
		if v == w {
			return nil
		}
	}
	if len(f.Values) > 0 {
		return fmt.Errorf("%s reports %s=%q, expected one of %s", h.Stage, f.Name, v, strings.Join(f.Values, ", "))
	}
	return nil
}

// PreemptionUnknown is the fact preemption of a run in which the test failed.
func PreemptionUnknown(why string) string { return preemptionUnknown + why }

// RedundantOn is the fact redundant of a run with copies of probes, in which no copy saw so
// many events.
func RedundantOn(lost uint64) string { return redundantLost + strconv.FormatUint(lost, 10) }

// Covers reports whether the fact of an optional hook, or the fact redundant, says
// that nothing is missing.
func Covers(state string) bool {
	return state == CaptureAttached || state == RedundantOff || strings.HasPrefix(state, redundantLost)
}

// ParseRedundant reads from the fact redundant how many events no copy saw. Without copies
// the result is 0: no loss is known.
func ParseRedundant(s string) (lost uint64, err error) {
	if s == RedundantOff || strings.HasPrefix(s, UnavailableBecause) {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(s, redundantLost)
	if ok {
		lost, err = strconv.ParseUint(digits, 10, 64)
	}
	if !ok || err != nil {
		return 0, fmt.Errorf("redundant=%q, expected off, on: lost=N or unavailable: why", s)
	}
	return lost, nil
}
