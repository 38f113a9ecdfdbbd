package schemas

// NetworkRules is the rule set that runner-exec passes to runner-capture for enforcement
// (POLICY.md, "Network enforcement"): the network section of a policy file, in which each
// rule has its number and one address.
type NetworkRules struct {
	Schema       string        `json:"schema"`
	PolicyDigest string        `json:"policy_digest"`
	Default      string        `json:"default"` // allow, deny: rule number 0
	Rules        []NetworkRule `json:"rules"`
}

// Families of network rules.
const (
	FamilyAny   = "any"
	FamilyInet  = "inet"
	FamilyInet6 = "inet6"
	FamilyUnix  = "unix"
)

// Protocols and hooks that a network rule can name. The event of a refused call also names
// the hook, which can be the one for creating sockets.
const (
	ProtocolTCP = "tcp"
	ProtocolUDP = "udp"
	HookConnect = "connect"
	HookSend    = "send"
	HookBind    = "bind"
	HookSocket  = "socket"
)

// NetworkFamilies, NetworkProtocols and NetworkHooks are the closed sets of a rule.
var (
	NetworkFamilies  = [...]string{FamilyAny, FamilyInet, FamilyInet6, FamilyUnix}
	NetworkProtocols = [...]string{ProtocolTCP, ProtocolUDP}
	NetworkHooks     = [...]string{HookConnect, HookSend, HookBind}
)

// NetworkRule is one rule; the first that matches decides. A rule of the policy
// file with several addresses becomes several of these with one number.
type NetworkRule struct {
	Number    uint32      `json:"number"` // place of the rule in the policy file, from 1
	ID        string      `json:"id"`
	Action    string      `json:"action"`    // allow, deny
	Family    string      `json:"family"`    // any, inet, inet6, unix
	Prefix    string      `json:"prefix"`    // CIDR of inet and inet6, "" otherwise
	Path      string      `json:"path"`      // unix: path and all below, or @name; text form; "" is all
	Ports     [][2]uint16 `json:"ports"`     // ranges, ends included; empty is all
	Protocols []string    `json:"protocols"` // tcp, udp; empty is all
	On        []string    `json:"on"`        // connect, send, bind
}

// Numbers is how many rules the policy file has.
func (n *NetworkRules) Numbers() uint64 {
	return highest(len(n.Rules), func(i int) uint32 { return n.Rules[i].Number })
}

// Policy is the digest of the policy file.
func (n *NetworkRules) Policy() string { return n.PolicyDigest }
