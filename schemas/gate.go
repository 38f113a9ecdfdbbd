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
