//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// RulesError says that rules cannot be enforced here: those about files, or else those about
// the network.
type RulesError struct {
	Err   error
	Files bool
}

func (e *RulesError) Error() string {
	if e.Files {
		return "file rules: " + e.Err.Error()
	}
	return "network rules: " + e.Err.Error()
}
func (e *RulesError) Unwrap() error { return e.Err }

// The constants of rules.h.
const (
	familyAny, familyUnix, familyInet, familyInet6 = 0, 1, 2, 10

	hookConnect, hookSend, hookBind = 1, 2, 4
	namePath, nameAbstract          = 1, 2
)

var (
	ruleHooks     = map[string]uint8{schemas.HookConnect: hookConnect, schemas.HookSend: hookSend, schemas.HookBind: hookBind}
	ruleProtocols = map[string]uint8{schemas.ProtocolTCP: 1, schemas.ProtocolUDP: 2}
)

// ruleTable is the table for the kernel, and the hooks that are needed to enforce it.
type ruleTable struct {
	entries []objects.RulesRule // the default, then one for each rule
	bind    bool                // a rule applies to bind: only then are the bind hooks attached
	unix    bool                // a rule or the default applies to unix sockets
	socket  bool                // a destination is denied that a raw socket would reach
	first   uint32              // the entry that refuses such a socket
}

func compileRules(n *schemas.NetworkRules) (*ruleTable, error) {
	if err := n.Check(); err != nil {
		return nil, &RulesError{Err: err}
	}
	t := &ruleTable{entries: make([]objects.RulesRule, 1, 1+len(n.Rules))}
	if n.Default != schemas.DecisionAllow {
		t.entries[0].Deny = 1
		t.unix, t.socket = true, true
	}
	for i := range n.Rules {
		r := &n.Rules[i]
		e, err := compileRule(r)
		if err != nil {
			return nil, &RulesError{Err: fmt.Errorf("rule %d (%s): %w", r.Number, r.ID, err)}
		}
		t.entries = append(t.entries, e)
		out := e.Deny != 0 && e.On&(hookConnect|hookSend) != 0
		t.bind = t.bind || e.On&hookBind != 0
		t.unix = t.unix || e.Family == familyUnix || out && e.Family == familyAny && e.Nports == 0 && e.Protocols == 0
		if out && e.Family != familyUnix && t.first == 0 {
			t.socket, t.first = true, uint32(len(t.entries)-1)
		}
	}
	if len(t.entries) == 1 {
		// The verifier may remove a loop that never runs, and Linux 6.18 then fails on its
		// body. So there is always one rule, if only for no hook.
		t.entries = append(t.entries, objects.RulesRule{})
	}
	return t, nil
}

// compileRule writes a rule that was checked as the kernel's table has it.
func compileRule(r *schemas.NetworkRule) (e objects.RulesRule, err error) {
	e.Number = r.Number
	if r.Action != schemas.DecisionAllow {
		e.Deny = 1
	}
	for _, on := range r.On {
		e.On |= ruleHooks[on]
	}
	for _, p := range r.Protocols {
		e.Protocols |= ruleProtocols[p]
	}
	for i, p := range r.Ports {
		e.Ports[i].From, e.Ports[i].To = p[0], p[1]
	}
	e.Nports = uint8(len(r.Ports))
	switch r.Family {
	case schemas.FamilyInet, schemas.FamilyInet6:
		err = setPrefix(&e, r.Prefix)
	case schemas.FamilyUnix:
		err = setUnix(&e, r)
	}
	return e, err
}

// setPrefix treats an IPv4-mapped IPv6 prefix as IPv4.
func setPrefix(e *objects.RulesRule, text string) error {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return err
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	var addr, mask [16]byte
	copy(addr[:], p.Addr().AsSlice())
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	e.Family = familyInet6
	if p.Addr().Is4() {
		e.Family = familyInet
	}
	e.Addr, e.Mask = inMemory(addr), inMemory(mask)
	return nil
}

// inMemory returns the bytes as words in the kernel's byte order.
func inMemory(b [16]byte) [2]uint64 { return *(*[2]uint64)(unsafe.Pointer(&b)) }

// setUnix writes the name as a sockaddr_un holds it.
func setUnix(e *objects.RulesRule, r *schemas.NetworkRule) error {
	e.Family = familyUnix
	name, err := r.UnixName()
	if err != nil || name == "" {
		return err
	}
	const at = 2 // of sun_path
	var addr, mask [unsafe.Sizeof(e.Name)]byte
	if name[0] == '@' {
		e.NameKind, e.NameLen = nameAbstract, uint16(len(name))
		copy(addr[at+1:], name[1:])
		for i := at; i < len(mask); i++ {
			mask[i] = 0xff
		}
	} else {
		name = strings.TrimSuffix(name, "/") // the slash after it is compared separately
		e.NameKind, e.NameLen = namePath, uint16(len(name))
		for i := range copy(addr[at:], name) {
			mask[at+i] = 0xff
		}
	}
	e.Name = *(*[len(e.Name)]uint64)(unsafe.Pointer(&addr))
	e.NameMask = *(*[len(e.Name)]uint64)(unsafe.Pointer(&mask))
	return nil
}

// attachRules makes the kernel check the rules. They are attached after the hooks that
// record, so that a refused call is recorded too.
func (s *Session) attachRules(dir *os.File, shared map[string]*ebpf.Map, t *ruleTable) error {
	spec, err := objects.LoadRules()
	if err != nil {
		return err
	}
	spec.Maps[objects.RulesMapRules].MaxEntries = uint32(len(t.entries))
	spec.Maps[objects.RulesMapBlocked].MaxEntries = uint32(len(t.entries))
	if err := spec.Variables[objects.RulesVarSocketEntry].Set(t.first); err != nil {
		return err
	}
	hooks := map[string]ebpf.AttachType{
		objects.RulesProgRuleConnect4: ebpf.AttachCGroupInet4Connect, objects.RulesProgRuleConnect6: ebpf.AttachCGroupInet6Connect,
		objects.RulesProgRuleSendmsg4: ebpf.AttachCGroupUDP4Sendmsg, objects.RulesProgRuleSendmsg6: ebpf.AttachCGroupUDP6Sendmsg,
	}
	if t.bind {
		hooks[objects.RulesProgRuleBind4] = ebpf.AttachCGroupInet4Bind
		hooks[objects.RulesProgRuleBind6] = ebpf.AttachCGroupInet6Bind
	}
	if t.socket {
		hooks[objects.RulesProgRuleSocket] = ebpf.AttachCGroupInetSockCreate
	}
	coll, err := s.loadRuleObject(dir, spec, shared, t, hooks)
	if err != nil {
		return err
	}
	s.blocked, s.table = coll.Maps[objects.RulesMapBlocked], t
	if !t.unix {
		return freeze(coll)
	}
	if spec, err = loadUnixRules(); err != nil {
		return err
	}
	all := map[string]*ebpf.Map{objects.RulesMapRules: coll.Maps[objects.RulesMapRules], objects.RulesMapBlocked: s.blocked}
	for name, m := range shared {
		all[name] = m
	}
	_, err = s.loadRuleObject(dir, spec, all, t, map[string]ebpf.AttachType{
		objects.RulesUnixProgRuleConnectUnix: ebpf.AttachCgroupUnixConnect, objects.RulesUnixProgRuleSendmsgUnix: ebpf.AttachCgroupUnixSendmsg,
	})
	if err != nil {
		return fmt.Errorf("they apply to unix sockets, whose addresses this kernel does not check (Linux 6.7 does): %w", err)
	}
	return freeze(coll)
}

// loadUnixRules is a variable so that a test can see what happens without these hooks.
var loadUnixRules = objects.LoadRulesUnix

// freeze makes the table read-only, after all objects are loaded. The verifier reads a
// frozen table as constants, and fails if it has several entries.
func freeze(coll *ebpf.Collection) error {
	if err := coll.Maps[objects.RulesMapRules].Freeze(); err != nil {
		return fmt.Errorf("freezing the table: %w", err)
	}
	return nil
}

// loadRuleObject loads the named programs, fills the table where it is this
// object's own, and attaches.
func (s *Session) loadRuleObject(dir *os.File, spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, t *ruleTable, hooks map[string]ebpf.AttachType) (*ebpf.Collection, error) {
	if err := spec.Variables[objects.RulesVarRuleCount].Set(uint32(len(t.entries) - 1)); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(hooks))
	for name := range hooks {
		names = append(names, name)
	}
	coll, err := s.load(spec, shared, names...)
	if err != nil {
		return nil, fmt.Errorf("loading the hooks: %w", err)
	}
	if shared[objects.RulesMapRules] == nil {
		m := coll.Maps[objects.RulesMapRules]
		for i := range t.entries {
			if err := m.Put(uint32(i), &t.entries[i]); err != nil {
				return nil, fmt.Errorf("filling the table: %w", err)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := s.hook(dir, coll.Programs[name], hooks[name]); err != nil {
			return nil, fmt.Errorf("attaching %s: %w", name, err)
		}
	}
	return coll, nil
}

// Blocked is how often each rule refused, by its number, 0 for the default. The
// kernel counted whether or not the ring had room. Nil without rules.
func (s *Session) Blocked() (map[uint32]uint64, error) {
	if s.table == nil {
		return nil, nil
	}
	out := map[uint32]uint64{}
	for i := range s.table.entries {
		var n uint64
		if err := s.blocked.Lookup(uint32(i), &n); err != nil {
			return nil, fmt.Errorf("reading refusals: %w", err)
		}
		if n > 0 {
			out[s.table.entries[i].Number] += n
		}
	}
	return out, nil
}
