package schemas

// Keys of notes that readers use.
const (
	KeyMonitorEvents   = "monitor_events"
	KeyRingbufDrops    = "ringbuf_drops"
	KeyNetworkCoverage = "network_protocol_coverage"
	KeyEndpointScope   = "network_endpoint_claim_scope"
	KeyRules           = "rules"
	KeyBlocked         = "blocked"
	KeyPolicy          = "policy"
	KeyPolicies        = "policies"
	KeyMechanism       = "mechanism"
	KeyEvidence        = "evidence"
	KeyDecisionEvents  = "decision_events"
	KeySessions        = "sessions"
	KeyRefused         = "refused"
	KeySDKEvents       = CounterSDKEvents
	KeySDKToolCalls    = "sdk_tool_calls"
	KeyLines           = "lines"
	KeyIntents         = CounterIntents
	KeyChanges         = "changes"
	KeyUnread          = "unread"
	KeyBaseChanged     = "base_changed"
	KeySurvivors       = CounterSurvivorsKilled
	KeyTicks           = "ticks"
	KeyBad             = "bad_lines"
	KeyLost            = "lost"
	KeyUnended         = "unended"
	KeyNames           = "names"
	KeyMode            = "mode"
	KeyWorkspace       = "workspace"
	KeyExchanges       = "exchanges"
	KeyUnused          = "unused"
	KeyProgram         = "program"
	KeySHA256          = "sha256"
	KeyDropped         = CounterDropped
	KeyTable           = "table"
	KeyValues          = "values"
	KeyOmitted         = "omitted"
	KeyProcesses       = CounterProcesses
	KeyStatesOmitted   = "states_omitted"
	KeyUnknown         = "unknown"
	KeyArgv            = "argv"
	KeyKey             = "key"
)

// Classes of kernel lines, which are also keys of the note about windows.
const (
	ClassCall  = "call"
	ClassSetup = "setup"
	ClassIdle  = "idle"
	ClassAgent = "agent"
	// ClassRequest is in the note only where requests that are no tool calls ran.
	ClassRequest = "request"
)

// LineClasses are all classes, in the order of the note.
var LineClasses = [...]string{ClassCall, ClassSetup, ClassIdle, ClassAgent, ClassRequest}

// Reasons of the note about a run without a capture; the last ends in the platform.
const (
	ContractOnlyNotRequested = "kernel capture was not requested"
	ContractOnlyUnsupported  = "kernel capture is not supported on "
)

// ContractOnlyReasons are the reasons of that note on a platform.
func ContractOnlyReasons(platform string) []string {
	if platform == PlatformLinux {
		return []string{ContractOnlyNotRequested}
	}
	return []string{ContractOnlyNotRequested, ContractOnlyUnsupported + platform}
}

// The notes.
var (
	NoteContractOnly = &Note{Code: "contract_only_mode", By: StageCorrelate, Shared: true, Fields: []NoteField{{Form: ValueText}},
		Says: "nothing was captured, and why; no `s2_` note follows"}
	NoteKernel = &Note{Code: "s2_kernel_capture", By: StageCorrelate, Shared: true, Fields: []NoteField{
		{Key: KeyMonitorEvents}, {Key: KeyRingbufDrops}, {Key: KeyNetworkCoverage, Form: ValueWord}, {Key: KeyEndpointScope, Form: ValueWord}},
		Says: "how many kernel lines there are; the other values are those of the fields of these names. Other implementations write it too"}
	NoteLoss = &Note{Code: "s2_kernel_loss", By: StageCorrelate, Shape: NoteOfCounts,
		Check: checkLoss,
		Says:  "why the kernel layer is not complete, by cause"}
	NoteDrops = &Note{Code: "s2_drops", By: StageCorrelate, Shape: NoteOfCounts,
		Check: checkDrops,
		Says:  "records for which the ring had no room, by operation"}
	NoteMissed = &Note{Code: "s2_missed", By: StageCorrelate, Shape: NoteOfCounts,
		Check: checkMissed,
		Says:  "events that were missed, by probe. Their sum is that of `recursion_misses` and `redundant_lost` in `s2_kernel_loss`"}
	NoteEscape = &Note{Code: "s2_cgroup_escape", By: StageCorrelate, Fields: []NoteField{{Key: CounterEscapes}}, Tail: "kernel_layer downgraded to absent", Check: positive,
		Says: "tasks left the measured cgroup"}
	NoteQuality = &Note{Code: "s2_path_quality", By: StageCorrelate, Shape: NoteOfCounts,
		Check: checkQuality,
		Says:  "counters of the role quality that are not 0"}
	NoteSurvivors = &Note{Code: "s2_survivors_killed", By: StageCorrelate, Fields: []NoteField{{}},
		Check: positive,
		Says:  "so many processes outlived the grace time and were killed"}
	NoteEnd = &Note{Code: "s2_capture_end", By: StageCorrelate, Tail: "a signal ended the capture, not the end of the last task",
		Former: []string{"stopped by a signal while the cgroup still had tasks"},
		Says:   "the cgroup still had tasks when the capture ended"}
	NoteBlind = &Note{Code: "s2_blind_spots", By: StageCorrelate, Shape: NoteOfTexts,
		Check: checkBlindSpots,
		Says:  "what no counter can see, including optional hooks that are not there"}
	NoteConfined = &Note{Code: "s3_confinement", By: StageCorrelate, Shape: NoteOfTexts,
		Check: checkConfinement,
		Says:  "what the command was started without, by the names of [Confinement](STREAMS.md#confinement)"}
	NoteNetwork = &Note{Code: "s4_network_policy", By: StageCorrelate, Fields: []NoteField{
		{Key: KeyRules}, {Key: KeyBlocked}, {Key: KeyPolicy, Form: ValueDigest}},
		Says: "network rules were enforced: how many, how many operations they refused, and the policy digest"}
	NoteNetworkIDs = &Note{Code: "s4_network_rules", By: StageCorrelate, Shape: NoteOfTexts,
		Check: checkRuleIDs,
		Says:  "the network rules, each as NUMBER=ID, in order: `rule_id` of a line 20 is the number, ID the rule's id in the policy file"}
	NoteFiles = &Note{Code: "s4_file_policy", By: StageCorrelate, Fields: []NoteField{
		{Key: KeyRules}, {Key: KeyBlocked}, {Key: KeyMechanism, Form: ValueWord}, {Key: KeyEvidence, Form: ValueWord}, {Key: KeyPolicy, Form: ValueDigest}},
		Check: checkFileNote,
		Says:  "file and exec rules were enforced: how many, how many operations they refused, by `lsm`, `fanotify` or `landlock`, whether the refusals were `observed`, are `inferred` (of Landlock), or `mixed` (of fanotify: opens and executions observed, changes inferred), and the policy digest"}
	NoteFileIDs = &Note{Code: "s4_file_rules", By: StageCorrelate, Shape: NoteOfTexts,
		Check: checkRuleIDs,
		Says:  "the same of the file and exec rules, for lines 10"}
	NotePolicy = &Note{Code: "s4_policy_capture", By: StageCorrelate, Shared: true, Fields: []NoteField{
		{Key: KeyDecisionEvents}, {Key: KeySessions, Optional: true}, {Key: KeyRefused, Optional: true}},
		Says: "lines of the policy layer; with sessions also their number, and that of refused messages. Other implementations write it too, with counts of their own"}
	NoteToolPolicy = &Note{Code: "s4_tool_policy", By: StageCorrelate, Fields: []NoteField{
		{Key: KeyPolicies}, {Key: KeyPolicy, Form: ValueDigest, Optional: true}},
		Check: checkToolPolicy,
		Says:  "there were sessions: how many different policy files they decided by, and the policy digest if it was one. Decisions have their targets"}
	NoteProcessAPI = &Note{Code: "s4_process_api", By: StageCorrelate, Fields: []NoteField{{Key: KeySessions}},
		Check: positive,
		Says:  "so many of the sessions are of runner-proc. Its policy files are its own, and are no `policy_session_of_other_policy`"}
	NoteSDK = &Note{Code: "s5_sdk_capture", By: StageCorrelate, Shared: true, Fields: []NoteField{{Key: KeySDKEvents}, {Key: KeySDKToolCalls}},
		Says: "lines of the SDK layer, and tool calls in them. Other implementations write it too"}
	NoteWindows = &Note{Code: "s6_windows", By: StageCorrelate, Fields: []NoteField{
		{Key: ClassCall}, {Key: ClassSetup}, {Key: ClassIdle}, {Key: ClassAgent}, {Key: ClassRequest, Optional: true}},
		Check: checkWindows,
		Says:  "kernel lines by class; there were sessions and times"}
	NoteIntents = &Note{Code: "s6_intents", By: StageCorrelate, Fields: []NoteField{{Key: KeyIntents}}, Tail: "self-reported",
		Check: positive,
		Says:  "lines of the layer intents: what the command says that it wants to have done. Nothing of it was done by the run"}
	NoteTimes = &Note{Code: "s7_times", By: StageCorrelate, Fields: []NoteField{{Key: KeyLines}},
		Says: "`runner-exec --times`: how many lines of other layers have a time in the layer times"}
	NoteBox = &Note{Code: "s8_box", By: StageCorrelate, Fields: []NoteField{{Key: KeyWorkspace, Form: ValueWord}, {Key: KeyChanges}, {Key: KeyUnread}, {Key: KeyBaseChanged}, {Key: KeySurvivors}},
		Says: "the command ran in a box of runner-box: what its workspace was (`copy`: of the base, as no overlay could be mounted), lines of the layer filesystem, names that could not be described, names of the base that others changed, processes that outlived the command and were killed"}
	NoteClock = &Note{Code: "s8_clock", By: StageCorrelate, Fields: []NoteField{{Key: KeyTicks}, {Key: KeyBad}, {Key: KeyLost}, {Key: KeyUnended}},
		Says: "the command had the clock of runner-clock: lines of the layer clock, which are self-reported, and `bad_lines`, `lost` and `unended` of `run/clock.json`"}
	NoteNames = &Note{Code: "s8_dns", By: StageCorrelate, Fields: []NoteField{{Key: KeyNames}, {Key: KeyLost}},
		Says: "names that the command asked runner-net for, and questions that had no room"}
	NoteExchanges = &Note{Code: "s8_network", By: StageCorrelate, Fields: []NoteField{{Key: KeyMode, Form: ValueWord}, {Key: KeyExchanges}, {Key: KeyUnused}},
		Says: "the command had the network of runner-net: in which mode, lines of the layer network, and exchanges of the recording that nothing asked for"}
	NotePIDs = &Note{Code: "canonical_pids", By: StageNormalize, Tail: "pid is the process's number in the fork tree, not the kernel's",
		Says: "`--canonical-pids`"}
	NoteNoise = &Note{Code: "normalize_noise", By: StageNormalize, Fields: []NoteField{
		{Key: KeyTable, Form: ValueWord}, {Key: KeyValues}, {Key: KeyOmitted}},
		Check: checkNoise,
		Says:  "`--noise`: by which table of rules noise was left out, how many distinct values of it the layer filtered holds, and for how many more it had no room"}
	NoteProcesses = &Note{Code: "normalize_processes", By: StageNormalize, Fields: []NoteField{
		{Key: KeyProcesses}, {Key: KeyOmitted}, {Key: KeyStatesOmitted}, {Key: KeyUnknown}, {Key: KeyArgv, Form: ValueWord}, {Key: KeyKey, Form: ValueWord}},
		Check: checkProcesses,
		Says:  "`--processes`: how many lines the layer process has, for how many more processes and states it had no room, of how many states that it has nobody knows who and where the process was, how arguments were recorded, and the SHA-256 of the key of their digests"}
	NoteDrop = &Note{Code: "normalize_drop", By: StageNormalize, Fields: []NoteField{
		{Key: KeyProgram, Form: ValueQuoted}, {Key: KeySHA256, Form: ValueHex}, {Key: KeyDropped}},
		Check: checkDrop,
		Says:  "the program of `--drop`, the digest of its text, and how many lines it left out"}
)

// Notes are all notes, in the order in which they come.
var Notes = [...]*Note{
	NoteContractOnly, NoteKernel, NoteLoss, NoteDrops, NoteMissed, NoteEscape, NoteQuality, NoteSurvivors, NoteEnd, NoteBlind,
	NoteConfined, NoteNetwork, NoteNetworkIDs, NoteFiles, NoteFileIDs, NotePolicy, NoteToolPolicy, NoteProcessAPI, NoteSDK, NoteWindows, NoteIntents, NoteTimes, NoteBox, NoteClock, NoteNames, NoteExchanges, NotePIDs, NoteNoise, NoteProcesses, NoteDrop,
}
