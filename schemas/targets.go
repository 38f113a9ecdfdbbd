package schemas

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What a call names, compared with what kernel lines show (DERIVATION.md, "Effects and targets").

// TargetHolds reports whether a value is the target or a path below it. Of a value with a ".."
// component the directories above it are not known.
func TargetHolds(target string, value []byte) bool {
	n := len(target)
	if n > len(value) || string(value[:n]) != target {
		return false
	}
	return n == len(value) || (value[n] == '/' || target == "/") && !HasDotDot(value)
}

// TargetBeside reports whether what was done goes with an operation on the target, although it is about
// another name: its directory was read, a directory above it was made, or a file beside it was changed whose
// name says that it is a draft of it (NAME.*, .NAME.*), which programs rename over it. Verbs are those of
// effects.
func TargetBeside(target, verb string, value []byte) bool {
	at := strings.LastIndexByte(target, '/')
	if at < 0 || target[0] != '/' {
		return false
	}
	dir, name := target[:max(at, 1)], target[at+1:]
	switch {
	case verb == AccessModes[0]:
		return string(value) == dir && !HasDotDot(value)
	case verb == effectVerbs[EventMkdir]:
		return len(value) > 1 && TargetHolds(string(value), []byte(dir)) && !HasDotDot(value)
	case name == "" || len(value) <= len(dir) || string(value[:len(dir)]) != dir || !draftVerbs[verb]:
		return false
	}
	i := bytes.LastIndexByte(value, '/')
	if string(value[:max(i, 1)]) != dir || HasDotDot(value) {
		return false
	}
	base := string(value[i+1:])
	return strings.HasPrefix(base, name+".") || strings.HasPrefix(base, "."+name+".")
}

// draftVerbs are the verbs of what programs do to a draft.
var draftVerbs = map[string]bool{AccessModes[1]: true, AccessModes[2]: true, effectVerbs[EventRenameFrom]: true, effectVerbs[EventUnlink]: true,
	effectVerbs[EventLinkFrom]: true, effectVerbs[EventChmod]: true, effectVerbs[EventChown]: true, effectVerbs[EventTruncate]: true}

// TargetEndpoint is the text by which a target or a value is compared: an IPv4-mapped address
// becomes the IPv4 one.
func TargetEndpoint(target string) string {
	if a, err := netip.ParseAddrPort(target); err == nil && a.Addr().Is4In6() {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
	}
	return target
}

// TargetHost returns the port of a target that names a host. The kernel sees addresses, and which
// ones are the host's is not known.
func TargetHost(target string) (port uint16, ok bool) {
	i := strings.LastIndexByte(target, ':')
	if i <= 0 || target[0] == '/' || strings.HasPrefix(target, EndpointUnix+":") {
		return 0, false
	}
	n, err := strconv.ParseUint(target[i+1:], 10, 16)
	if _, notAddress := netip.ParseAddrPort(target); notAddress == nil || err != nil {
		return 0, false
	}
	return uint16(n), true
}

// Asked is how an effect goes with the targets of a call.
type Asked int

// How an effect goes with targets.
const (
	NoEffect   Asked = iota // it was not done, or is not about a name
	AskedFor                // it matches a target
	MaybeHost               // it is about an address, and the call names a host
	Unasked                 // it matches none
	MaybeAsked              // the same, if the verb is about a name, which it need not be
)

// AskedOf compares an effect, in the words of kernel_effects, with the targets of an allowed call.
func AskedOf(effect string, targets []string) Asked { return askedOf(effect, targets, true) }

// DeniedOf is AskedOf for a denied call, of which nothing beside a target is held against anybody.
func DeniedOf(effect string, targets []string) Asked { return askedOf(effect, targets, false) }

func askedOf(effect string, targets []string, beside bool) Asked {
	verb, value, _ := strings.Cut(effect, " ")
	setOfVerb, mixedVerbs := verbSets()
	set, known := setOfVerb[verb]
	if !known || set == SetNone || !EffectDone(effect) {
		return NoEffect
	}
	text, network := []byte(value), set == SetNetworkEndpoints
	if network {
		text = []byte(TargetEndpoint(value))
	}
	if slices.ContainsFunc(targets, func(t string) bool { return TargetHolds(TargetEndpoint(t), text) }) {
		return AskedFor
	}
	if beside && !network && slices.ContainsFunc(targets, func(t string) bool { return TargetBeside(t, verb, text) }) {
		return AskedFor
	}
	_, err := netip.ParseAddrPort(value)
	if network && err == nil && verb != effectVerbs[EventBind] && verb != effectVerbs[EventListen] &&
		slices.ContainsFunc(targets, func(t string) bool { _, host := TargetHost(t); return host }) {
		return MaybeHost
	}
	if mixedVerbs[verb] {
		return MaybeAsked
	}
	return Unasked
}

// verbSets are the surface set that the value of an effect is in, by its verb, and the verbs that are also of lines whose value
// is a text. They are made when they are first asked.
var verbSets = sync.OnceValues(func() (map[string]int, map[string]bool) {
	verbs, of := EffectVerbs()
	sets, mixed := map[string]int{}, map[string]bool{}
	for _, verb := range verbs {
		sets[verb] = SetNone
		for _, id := range of[verb] {
			mixed[verb] = mixed[verb] || SetOf(id) != SetOf(of[verb][0])
			sets[verb] = max(sets[verb], SetOf(id))
		}
	}
	return sets, mixed
})
