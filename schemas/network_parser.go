package schemas

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Limits of a rule set for the kernel.
const (
	MaxNetworkRules     = 256     // objects in rules
	MaxNetworkPorts     = 32      // port ranges of one of them
	MaxNetworkRulesSize = 1 << 20 // bytes of the document
	maxUnixName         = 107     // bytes of a unix socket's path or name
)

// ParseNetworkRules parses the rules that runner-exec passes to runner-capture for
// enforcement. runner-capture decides whether this kernel can enforce them.
func ParseNetworkRules(b []byte) (*NetworkRules, error) {
	if len(b) > MaxNetworkRulesSize {
		return nil, fmt.Errorf("network rules: %d bytes, at most %d", len(b), MaxNetworkRulesSize)
	}
	n := new(NetworkRules)
	err := decode(b, n)
	if err == nil {
		err = n.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("network rules: %w", err)
	}
	return n, nil
}

// Check says what is wrong with a rule set.
func (n *NetworkRules) Check() error {
	err := first(oneOf("schema", n.Schema, SchemaNetworkRules), digest(n.PolicyDigest),
		oneOf("default", n.Default, DecisionAllow, DecisionDeny))
	if err == nil && len(n.Rules) > MaxNetworkRules {
		err = fmt.Errorf("%d rules with one address each, at most %d", len(n.Rules), MaxNetworkRules)
	}
	if err != nil {
		return err
	}
	last := NetworkRule{}
	for i := range n.Rules {
		r := &n.Rules[i]
		err := r.Check()
		switch {
		case err != nil:
		case r.Number < last.Number:
			err = fmt.Errorf("number %d after %d, expected the order of the policy file", r.Number, last.Number)
		case r.Number == last.Number && (r.ID != last.ID || r.Action != last.Action):
			err = fmt.Errorf("number %d is rule %q above", r.Number, last.ID)
		}
		if err != nil {
			return fmt.Errorf("rules[%d] (%.64q): %w", i, r.ID, err)
		}
		last = *r
	}
	return nil
}

// Check says what is wrong with one rule.
func (r *NetworkRule) Check() error {
	switch {
	case r.Number == 0:
		return errors.New("number is 0, expected the rule's place in the policy file, from 1")
	case r.ID == "" || len(r.ID) > 64:
		return fmt.Errorf("id has %d bytes, expected 1 to 64", len(r.ID))
	case len(r.Ports) > MaxNetworkPorts:
		return fmt.Errorf("%d port ranges, at most %d", len(r.Ports), MaxNetworkPorts)
	case len(r.On) == 0:
		return errors.New("on is empty, expected connect, send or bind")
	}
	for _, p := range r.Ports {
		if p[0] > p[1] {
			return fmt.Errorf("ports %d to %d: the range is not sorted", p[0], p[1])
		}
	}
	err := oneOf("action", r.Action, DecisionAllow, DecisionDeny)
	for _, p := range r.Protocols {
		err = first(err, oneOf("protocols", p, NetworkProtocols[:]...))
	}
	for _, o := range r.On {
		err = first(err, oneOf("on", o, NetworkHooks[:]...))
	}
	if err != nil {
		return err
	}
	return r.checkAddress()
}

func (r *NetworkRule) checkAddress() error {
	switch r.Family {
	case FamilyAny:
		if r.Prefix != "" || r.Path != "" {
			return errors.New("family any takes neither prefix nor path")
		}
		return nil
	case FamilyInet, FamilyInet6:
		p, err := netip.ParsePrefix(r.Prefix)
		switch {
		case r.Path != "":
			return fmt.Errorf("family %s takes no path", r.Family)
		case err != nil || p.Addr().Is4() != (r.Family == FamilyInet):
			return fmt.Errorf("prefix is %.80q, expected ADDRESS/BITS of family %s", r.Prefix, r.Family)
		}
		return nil
	case FamilyUnix:
		return r.checkUnix()
	}
	return oneOf("family", r.Family, NetworkFamilies[:]...)
}

func (r *NetworkRule) checkUnix() error {
	if r.Prefix != "" || len(r.Ports) > 0 || len(r.Protocols) > 0 {
		return errors.New("family unix takes neither prefix, ports nor protocols")
	}
	if slices.Contains(r.On, HookBind) {
		return errors.New("family unix with bind: the kernel has no hook for it")
	}
	name, err := r.UnixName()
	switch {
	case err != nil:
		return fmt.Errorf("path %.120q is not a text: %w", r.Path, err)
	case name == "" || name[0] == '@':
	case name[0] != '/' || strings.ContainsRune(name, 0):
		return fmt.Errorf("path is %.120q, expected /PATH or @NAME", r.Path)
	case name != path.Clean(name):
		return fmt.Errorf("path is %.120q, expected %.120q: names are compared as programs spell them", r.Path, path.Clean(name))
	}
	if len(name) > maxUnixName {
		return fmt.Errorf("path has %d bytes, the name of a unix socket at most %d", len(name), maxUnixName)
	}
	return nil
}

// UnixName is the rule's path as bytes.
func (r *NetworkRule) UnixName() (string, error) {
	b, err := Untext(r.Path)
	return string(b), err
}
