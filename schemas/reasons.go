package schemas

// ReasonUse says whether a reason code is for an allowed call, a denied call or a refused
// message.
type ReasonUse int

// Uses of reason codes.
const (
	ReasonAllows  ReasonUse = iota // of a call that is forwarded
	ReasonDenies                   // of a call that is denied
	ReasonRefuses                  // of a message that is not forwarded
	ReasonPasses                   // of another request, or of roots, that are forwarded
	ReasonStops                    // of roots that are not forwarded
)

// ReasonRule says whether a reason names a rule of the policy file.
type ReasonRule int

// Whether a decision with a reason has a rule_id.
const (
	RuleNever ReasonRule = iota
	RuleAlways
	RuleMaybe
)

// Reason is one reason code of the decision log (POLICY.md, "Reason codes").
type Reason struct {
	Code string
	Use  ReasonUse
	Rule ReasonRule
	Why  string
}

// Reason codes: P_ of decisions, M_ of messages, S_ of the state of the proxy.
const (
	ReasonAllowRule    = "P_ALLOW_RULE"
	ReasonAllowDefault = "P_ALLOW_DEFAULT"
	ReasonDenyRule     = "P_DENY_RULE"
	ReasonDenyDefault  = "P_DENY_DEFAULT"
	ReasonEvalError    = "P_EVAL_ERROR"
	ReasonEvalTimeout  = "P_EVAL_TIMEOUT"

	ReasonAllowAudit    = "P_ALLOW_AUDIT"
	ReasonDenyArguments = "P_DENY_ARGUMENTS"
	ReasonDenyRate      = "P_DENY_RATE"
	ReasonDenyLimit     = "P_DENY_LIMIT"

	ReasonAllowProtocol = "P_ALLOW_PROTOCOL"
	ReasonAllowRoots    = "P_ALLOW_ROOTS"
	ReasonDenyRoots     = "P_DENY_ROOTS"

	ReasonBadJSON      = "M_BAD_JSON"
	ReasonBadUTF8      = "M_BAD_UTF8"
	ReasonDuplicateKey = "M_DUPLICATE_KEY"
	ReasonCaseKey      = "M_CASE_KEY"
	ReasonBatch        = "M_BATCH"
	ReasonTooLong      = "M_TOO_LONG"
	ReasonTooDeep      = "M_TOO_DEEP"
	ReasonNotJSONRPC   = "M_NOT_JSONRPC"
	ReasonBadID        = "M_BAD_ID"
	ReasonIDInUse      = "M_ID_IN_USE"
	ReasonBadCall      = "M_BAD_CALL"
	ReasonBadProcess   = "M_BAD_PROCESS"

	ReasonLogFailed    = "S_LOG_FAILED"
	ReasonTooManyCalls = "S_TOO_MANY_CALLS"
)

// Reasons are all reason codes.
var Reasons = [...]Reason{
	{ReasonAllowRule, ReasonAllows, RuleAlways, "a rule allows the call"},
	{ReasonAllowDefault, ReasonAllows, RuleNever, "no rule matches, and the default allows"},
	{ReasonDenyRule, ReasonDenies, RuleAlways, "a rule denies the call"},
	{ReasonDenyDefault, ReasonDenies, RuleNever, "no rule matches, and the default denies"},
	{ReasonEvalError, ReasonDenies, RuleMaybe, "a rule could not be evaluated"},
	{ReasonEvalTimeout, ReasonDenies, RuleMaybe, "a rule could not be evaluated in time"},
	{ReasonAllowAudit, ReasonAllows, RuleMaybe, "the policy denies, and `--audit` forwards; `would_deny` has the reason"},
	{ReasonDenyArguments, ReasonDenies, RuleMaybe, "an argument that neither a condition of the rule that would allow nor its `also` names, or that the tool's input schema does not know"},
	{ReasonDenyRate, ReasonDenies, RuleAlways, "more calls in the time than the `rate` of the rule that would allow"},
	{ReasonDenyLimit, ReasonDenies, RuleNever, "of runner-proc: more than a bound of the policy, or too many processes"},

	{ReasonAllowProtocol, ReasonPasses, RuleNever, "a request of the protocol itself, about which no rule is asked"},
	{ReasonAllowRoots, ReasonPasses, RuleNever, "each root is one that the policy file names"},
	{ReasonDenyRoots, ReasonStops, RuleNever, "a root that the policy file does not name, or that cannot be read"},

	{ReasonBadJSON, ReasonRefuses, RuleNever, "not one JSON value as RFC 8259 says; a carriage return other than before the LF; a blank line (not answered); bytes after the last LF"},
	{ReasonBadUTF8, ReasonRefuses, RuleNever, "not UTF-8; an escape of half a surrogate pair (allowed in texts of the server)"},
	{ReasonDuplicateKey, ReasonRefuses, RuleNever, "a key twice: of the client in any object, of the server in the message, its params, result and tools"},
	{ReasonCaseKey, ReasonRefuses, RuleNever, "in the message, its params, result and tools a key that equals a known one, or of the client any other, only by case: in Unicode's simple case folding, with the Turkish letters `ı` and `İ` taken for an `i`, as some libraries do; in arguments as under [Names](#names)"},
	{ReasonBatch, ReasonRefuses, RuleNever, "an array"},
	{ReasonTooLong, ReasonRefuses, RuleNever, "a client's line over `--max-line`; an answer to `tools/list` over 8 MiB; an answer that asks for input over 256 KiB, where the policy does not allow all that a server may ask"},
	{ReasonTooDeep, ReasonRefuses, RuleNever, "nested more than 512 deep"},
	{ReasonNotJSONRPC, ReasonRefuses, RuleNever, "anything else that is not a request, notification or answer of JSON-RPC 2.0, or has params that are not an object, a method with characters other than printable ASCII, or (of the client) anywhere a key `__proto__`"},
	{ReasonBadID, ReasonRefuses, RuleNever, "neither a whole number of at most 2^53−1 in either direction (JavaScript takes larger ones for others) nor a string of at most 256 bytes without control characters; an answer to no request"},
	{ReasonIDInUse, ReasonRefuses, RuleNever, "the id of a request that is not answered yet"},
	{ReasonBadCall, ReasonRefuses, RuleNever, "a `tools/call` without a name (1 to 1,024 bytes without control characters), with arguments or `_meta` that are not objects; a method that differs from it in case or blanks only"},
	{ReasonBadProcess, ReasonRefuses, RuleNever, "of runner-proc: a request of the process API, or its limits, that are not valid"},
	{ReasonLogFailed, ReasonRefuses, RuleNever, "anything of the client, when the log cannot be written"},
	{ReasonTooManyCalls, ReasonRefuses, RuleNever, "a request when 4,096 are not answered yet"},
}

// Decision is the decision about a call that a reason goes with; "" of one that is not of calls.
func (r *Reason) Decision() string {
	switch r.Use {
	case ReasonAllows:
		return DecisionAllow
	case ReasonDenies:
		return DecisionDeny
	}
	return ""
}

// Outcomes are the outcomes that a call with this reason can have. A call whose end was
// not recorded has no outcome.
func (r *Reason) Outcomes() []string {
	switch r.Use {
	case ReasonAllows:
		return CallOutcomes
	case ReasonDenies:
		return []string{OutcomeDenied}
	}
	return nil
}

// ReasonsOf are the codes of one use.
func ReasonsOf(use ReasonUse) (codes []string) {
	for i := range Reasons {
		if Reasons[i].Use == use {
			codes = append(codes, Reasons[i].Code)
		}
	}
	return codes
}

// LookupReason returns a reason by its code.
func LookupReason(code string) (*Reason, bool) {
	for i := range Reasons {
		if Reasons[i].Code == code {
			return &Reasons[i], true
		}
	}
	return nil, false
}
