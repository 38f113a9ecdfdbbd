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
	MaxNetworkRules = 256 // objects in rules
	MaxNetworkPorts = 32  // port ranges of one of them
	maxUnixName     = 107 // bytes of a unix socket's path or name
)

// ParseNetworkRules parses the rules that runner-exec passes to runner-capture for
// enforcement. runner-capture decides whether this kernel can enforce them.
func ParseNetworkRules(b []byte) (*NetworkRules, error) {
	return parseRules(b, "network rules", new(NetworkRules))
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
	last := ruleHead{}
	for i := range n.Rules {
		r := &n.Rules[i]
		if err := first(r.Check(), r.head().after(last)); err != nil {
			return fmt.Errorf("rules[%d] (%.64q): %w", i, r.ID, err)
		}
		last = r.head()
	}
	return nil
}

func (r *NetworkRule) head() ruleHead { return ruleHead{r.Number, r.ID, r.Action} }

// Check says what is wrong with one rule.
func (r *NetworkRule) Check() error {
	switch {
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
	err := r.head().check()
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
