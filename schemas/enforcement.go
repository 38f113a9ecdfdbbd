package schemas

// Enforcement is one kind of rules of a policy file that hold for the whole run: what
// runner-capture reports about it, and what the archive says.
type Enforcement struct {
	What   string // for messages
	When   string // the runs in which its counters and facts are reported
	State  string // fact: off or enforced
	Policy string // fact: the policy digest
	IDs    string // fact: the ids of the rules, by number

	Rules, Blocked, ByRule string // counters: rules, refusals, and the refusals of one rule

	Event   uint32 // the line of a refusal
	Note    *Note
	IDsNote *Note // the ids of the rules, by number
}

// Enforcements are all kinds, in the order of their notes.
var Enforcements = [...]Enforcement{
	{"network rules", WhenEnforced, FactNetworkRules, FactNetworkPolicy, FactNetworkIDs,
		CounterNetworkRules, CounterBlocked, CounterBlockedByRule, EventConnectBlocked, NoteNetwork, NoteNetworkIDs},
	{"file rules", WhenFileRules, FactFileRules, FactFilePolicy, FactFileRuleIDs,
		CounterFileRules, CounterFileBlocked, CounterFileBlockedByRule, EventFileBlocked, NoteFiles, NoteFileIDs},
}

// The kinds, by what they are about.
var (
	EnforcedNetwork = &Enforcements[0]
	EnforcedFiles   = &Enforcements[1]
)

// Evidence of a refusal: the mechanism reported it, or it is inferred from a call that
// failed where a rule denies.
const (
	EvidenceObserved = "observed"
	EvidenceInferred = "inferred"
	EvidenceMixed    = "mixed" // some so, some so
)

// EvidenceOf is the evidence that a mechanism gives. Landlock reports nothing. With
// fanotify, opens and executions are reported; changes are refused by read-only mounts,
// which report nothing.
func EvidenceOf(mechanism string) string {
	switch mechanism {
	case SourceLandlock:
		return EvidenceInferred
	case SourceFanotify:
		return EvidenceMixed
	}
	return EvidenceObserved
}
