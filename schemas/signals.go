package schemas

// Signal is one kind of evidence about a run that a pack can require (PACKS.md, "Signals"). What an
// archive has of it follows from the archive alone.
type Signal struct {
	Name string
	What string // what it is
	At   string // where an archive has it: a member and a JSON pointer
	When string // when it is captured, for the specification
	// Weight is how much of a replay depends on it: its weight in the closure score. 0: nothing.
	Weight uint64
}

// Signals of an archive. The names of the last group are of the registry that packs of others use; no
// archive of this contract has them.
const (
	SignalRunCommand       = "run_command"
	SignalExitStatus       = "exit_status"
	SignalHealth           = "observation_health"
	SignalKernelEvents     = "kernel_events"
	SignalProcessExecs     = "process_execs"
	SignalFileAccesses     = "file_accesses"
	SignalNetwork          = "network_endpoints"
	SignalProcessTree      = "process_tree"
	SignalProcessArguments = "process_arguments"
	SignalFiltered         = "filtered_events"
	SignalEventTimes       = "event_times"
	SignalFileRules        = FactFileRules
	SignalNetworkRules     = FactNetworkRules
	SignalToolCalls        = "tool_calls"
	SignalPolicyDecisions  = "policy_decisions"
	SignalPolicyIdentity   = "policy_identity"
	SignalToolTargets      = "tool_targets"
	SignalToolEffects      = "tool_effects"
	SignalSDKEvents        = CounterSDKEvents
	SignalPlatform         = "platform"

	SignalEnvironmentValues = "environment_values"
	SignalFileContents      = "file_contents"
	SignalNetworkContents   = "network_contents"
	SignalToolBodies        = "tool_io_bodies"
	SignalModelIdentity     = "model_identity"
	SignalPromptLineage     = "prompt_lineage"
	SignalRandomSeeds       = "rng_seeds"
	SignalClock             = "clock_readings"
	SignalHumanApprovals    = "human_approvals"
)

// notRecorded is when a signal is captured that the contract has no place for.
const notRecorded = "never: no layer of this contract records it"

// Signals are the registry: all signals, in the order of the specification.
var Signals = [...]Signal{
	{SignalRunCommand, "the command and its arguments", MemberEvents + "#/0/command", "it is not empty. Redacted if a rule took a secret out", 2},
	{SignalExitStatus, "how the command ended", MemberEvents + "#/1/exit_code", "an exit code or a signal was observed", 0},
	{SignalPlatform, "the system that the command ran on", MemberHealth + "#/platform", "always", 0},
	{SignalHealth, "how well the run was observed", MemberHealth, "always", 0},
	{SignalKernelEvents, "what the kernel saw", MemberKernel, "the kernel layer is complete", 0},
	{SignalProcessExecs, "programs that were executed", MemberSurface + "#/process_execs", "the kernel layer is complete", 2},
	{SignalFileAccesses, "files that were opened, changed or removed", MemberSurface + "#/filesystem_paths", "the kernel layer is complete", 2},
	{SignalNetwork, "endpoints that were named to the kernel", MemberSurface + "#/network_endpoints", "the kernel layer is complete", 1},
	{SignalProcessTree, "who started whom", MemberProcess, "the layer process is there, with all processes", 0},
	{SignalProcessArguments, "arguments of all programs", MemberProcess + "#/*/states/*/arguments", "`runner-exec --argv full`. Redacted with digests (`--argv hash` with a key), or if a rule took a secret out", 1},
	{SignalFiltered, "what was left out as noise", MemberFiltered, "the layer filtered is there, with all values", 0},
	{SignalEventTimes, "when lines happened", MemberTimes, "`runner-exec --times`", 0},
	{SignalFileRules, "that file and exec rules were enforced", MemberHealth + "#/notes/" + NoteFiles.Code, "the record has the note", 0},
	{SignalNetworkRules, "that network rules were enforced", MemberHealth + "#/notes/" + NoteNetwork.Code, "the record has the note", 0},
	{SignalToolCalls, "which tools were called", MemberPolicy, "the policy or the SDK layer has lines", 1},
	{SignalPolicyDecisions, "what a policy decided about calls", MemberPolicy, "the policy layer has lines", 0},
	{SignalPolicyIdentity, "the digest of the one policy file", MemberHealth + "#/notes/" + NoteToolPolicy.Code, "all calls were decided by one policy file", 0},
	{SignalToolTargets, "paths and endpoints that calls named", MemberPolicy + "#/*/targets", "the policy layer has lines of runner-policy that records them", 0},
	{SignalToolEffects, "what the kernel saw during calls", MemberReport + "#/bindings/*/kernel_effects", "calls are bound to kernel lines, and the report is clean", 0},
	{SignalSDKEvents, "what an SDK said about itself", MemberSDK, "the SDK layer has lines", 0},

	{SignalEnvironmentValues, "values of environment variables", MemberRunEnv + "#/env", "`runner-exec --replayable`, and no secret was taken out", 1},
	{SignalFileContents, "contents of the files that were read", "", "never: of a run behind runner-box those of the workspace are there, and no others", 3},
	{SignalNetworkContents, "what came over the network", MemberExchanges, "behind runner-net, and nothing of headers and queries was taken out", 2},
	{SignalToolBodies, "arguments and results of tool calls", "", notRecorded, 3},
	{SignalModelIdentity, "which model answered", "", notRecorded, 2},
	{SignalPromptLineage, "the prompts, and what they were made from", "", notRecorded, 2},
	{SignalRandomSeeds, "seeds of random numbers", MemberRunClock + "#/seed", "behind runner-clock: those of Node and Python", 1},
	{SignalClock, "what the clocks said", MemberClock, "behind runner-clock, with all ticks: as Node and Python say", 1},
	{SignalHumanApprovals, "who approved what", "", notRecorded, 0},
}

// SignalNames are the names of all signals.
func SignalNames() []string {
	names := make([]string, len(Signals))
	for i := range Signals {
		names[i] = Signals[i].Name
	}
	return names
}

// SignalOf returns the signal of a name.
func SignalOf(name string) (Signal, bool) {
	for i := range Signals {
		if Signals[i].Name == name {
			return Signals[i], true
		}
	}
	return Signal{}, false
}
