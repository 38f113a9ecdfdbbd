package schemas

// What policies of runner-gate say.

// GateApprove is the action of a rule that leaves a decision to people.
const GateApprove = "require_approval"

// Classes of what a plan has, as rules name them.
const (
	GateFile    = "file"
	GateIntent  = "intent"
	GateNetwork = "network"
	GateCall    = "call"
	GateAny     = "any" // all of them
)

// GateActions and GateClasses are all actions and classes; RollbackMethods are those that can undo a request.
var (
	GateActions     = [...]string{DecisionAllow, DecisionDeny, GateApprove}
	GateClasses     = [...]string{GateFile, GateIntent, GateNetwork, GateCall}
	RollbackMethods = [...]string{"DELETE", "POST"}
)

// Kinds of policies.
const (
	GateYAML = "yaml"
	GateWasm = "wasm"
	GateExec = "exec"
)

// Verdicts of an approval.
const (
	GateVerdictApprove = "approve"
	GateVerdictDeny    = "deny"
)

// How far the commit of a plan came.
const (
	GateCommitted = "committed"
	GateReverted  = "reverted"
	GateFailed    = "failed"        // some of it could not be taken back
	GateStarted   = "started"       // it was cut: it goes on, or back
	GateNot       = "not committed" // not begun, refused, or taken back after an error
)

// GatePolicyKinds, GateVerdicts, GateStatuses and GateSteps are all kinds, verdicts, statuses, and steps of a journal.
var (
	GatePolicyKinds = [...]string{GateYAML, GateWasm, GateExec}
	GateVerdicts    = [...]string{GateVerdictApprove, GateVerdictDeny}
	GateStatuses    = [...]string{GateCommitted, GateReverted, GateFailed, GateStarted, GateNot}
	GateSteps       = [...]string{"begin", "opened", "refused", "checked", "saved", "applying", "applied", "effect_prepare", "effect_receipt", "committed",
		"undoing", "reverting", "effect_undoing", "effect_undone", "effect_left", "undone", "reverted", "revert_refused", "failed"}
)
