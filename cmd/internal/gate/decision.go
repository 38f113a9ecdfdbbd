package gate

// Input is what a policy decides about. Keys that other gates have, too, are spelled as they spell them.
type Input struct {
	Context  Context    `json:"context"`
	RunID    string     `json:"runId"`
	Archive  string     `json:"archive"`
	Evidence Evidence   `json:"evidence"`
	Files    []File     `json:"files"`
	Intents  []Intent   `json:"intents"`
	Network  []Exchange `json:"network"`
	Calls    []Call     `json:"calls"`
}

// Stages at which a policy is asked.
const (
	StagePlan   = "plan"
	StageCommit = "commit"
)

// Context says when a policy is asked.
type Context struct {
	Stage string `json:"stage"`
	// CurrentMinutes is the time of the day in UTC, in minutes since midnight. Only at commit: a plan is the same each time.
	CurrentMinutes *int `json:"currentMinutes,omitempty"`
}

// Decision is what policies say of a plan. Its keys are those of other gates. Reasons are sorted sets.
type Decision struct {
	PolicyVersion string            `json:"policyVersion"`
	Bundle        BundleDecision    `json:"bundle"`
	Files         []ItemDecision    `json:"files"`
	Intents       []ItemDecision    `json:"intents"`
	Network       []NetworkDecision `json:"network"`
	Calls         []ItemDecision    `json:"calls"`
}

// BundleDecision is about the whole. It is not allowed if any item is not.
type BundleDecision struct {
	Allowed          bool     `json:"allowed"`
	RequiresApproval bool     `json:"requiresApproval"`
	Reasons          []string `json:"reasons"` // why it is not allowed
}

// ItemDecision is about one item of a class.
type ItemDecision struct {
	Index            int      `json:"index"`
	Type             string   `json:"type"` // of an intent its type; of a file its op; of a call its tool
	Allowed          bool     `json:"allowed"`
	RequiresApproval bool     `json:"requiresApproval"`
	Reasons          []string `json:"reasons"`
	ApprovalReasons  []string `json:"approvalReasons"`
	Rule             string   `json:"rule,omitempty"` // of a YAML policy, that decided; absent: its default
}

// NetworkDecision is about one exchange.
type NetworkDecision struct {
	Index            int      `json:"index"`
	URL              string   `json:"url"`
	Method           string   `json:"method"`
	Allowed          bool     `json:"allowed"`
	RequiresApproval bool     `json:"requiresApproval"`
	Reasons          []string `json:"reasons"`
	Rule             string   `json:"rule,omitempty"`
}

// Requirement is a number of people who must approve. Each key counts once.
type Requirement struct {
	Why   string   `json:"why"`   // the rule, or the policy, that demands it
	Count int      `json:"count"` // from 1
	Keys  []string `json:"keys"`  // fingerprints of the keys that count, sorted; empty: those that commit is given with --public-key
}
