package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

const maxUnix = 107 // bytes of a socket's path, of 108 with its NUL

// network reads the network section and compiles it: one entry for each address.
func (r *reader) network(n *yaml.Node, ids map[string]int) *schemas.NetworkRules {
	out := &schemas.NetworkRules{Schema: schemas.SchemaNetworkRules, Rules: []schemas.NetworkRule{}}
	number := uint32(0)
	out.Default = r.section(n, "network", schemas.DecisionDeny, func(item *yaml.Node) {
		number++
		out.Rules = append(out.Rules, r.networkRule(item, number, ids)...)
		r.bound(item, len(out.Rules), schemas.MaxNetworkRules, "addresses in all network rules together")
	})
	return out
}

// networkRule reads one rule.
func (r *reader) networkRule(n *yaml.Node, number uint32, ids map[string]int) []schemas.NetworkRule {
	o := r.Object(n, "the network rule", "id", "allow", "deny", "ports", "protocols", "on")
	if o == nil {
		return nil
	}
	base := schemas.NetworkRule{Number: number, ID: r.id(n, o, ids), Action: schemas.DecisionDeny,
		Ports: [][2]uint16{}, Protocols: []string{}, On: []string{schemas.HookConnect, schemas.HookSend}}
	addresses, allow, ok := r.side(n, o, "addresses")
	if allow {
		base.Action = schemas.DecisionAllow
	}
	if f, ok := o["ports"]; ok {
		for _, item := range r.Items(f.Value, "ports") {
			base.Ports = append(base.Ports, r.ports(item))
		}
		if len(base.Ports) > schemas.MaxNetworkPorts {
			r.Bad(f.Value, fmt.Sprintf("more than %d ports and ranges", schemas.MaxNetworkPorts), "ranges, or a second rule", "")
		}
	}
	if f, ok := o["protocols"]; ok {
		base.Protocols = r.words(f.Value, "a protocol", schemas.NetworkProtocols[:]...)
	}
	if f, ok := o["on"]; ok {
		base.On = r.words(f.Value, "on", schemas.NetworkHooks[:]...)
		if slices.Equal(base.On, []string{schemas.HookSend}) && slices.Equal(base.Protocols, []string{schemas.ProtocolTCP}) {
			r.Bad(f.Key, "a rule on send only, for tcp only, never applies", "tcp with connect, or udp", "")
		}
	}
	var out []schemas.NetworkRule
	if !ok {
		return nil
	}
	ipOnly := len(base.Ports)+len(base.Protocols) > 0
	bind := slices.Contains(base.On, schemas.HookBind)
	for _, item := range r.Items(addresses.Value, addresses.Key.Value) {
		s, ok := r.Text(item, "an address")
		if !ok {
			continue
		}
		if bind && strings.HasPrefix(s, "unix:") {
			r.Bad(item, "a unix socket in a rule on bind", "connect and send: the kernel does not ask for it on bind", "")
			continue
		}
		for _, x := range r.address(item, s, ipOnly) {
			entry := base
			entry.Family, entry.Prefix, entry.Path = x.Family, x.Prefix, x.Path
			out = append(out, entry)
		}
	}
	return out
}

// words reads a list of words, each once, in the order of the known ones.
func (r *reader) words(n *yaml.Node, what string, known ...string) []string {
	given := []string{}
	for _, item := range r.Items(n, what) {
		s, ok := r.Word(item, what, known...)
		if ok && slices.Contains(given, s) {
			r.Bad(item, what+" "+s+" is here twice", "each once", "")
		}
		given = append(given, s)
	}
	out := []string{}
	for _, k := range known {
		if slices.Contains(given, k) {
			out = append(out, k)
		}
	}
	return out
}

// ports reads a port or a range FROM-TO.
func (r *reader) ports(n *yaml.Node) [2]uint16 {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!str") {
		from, to, isRange := strings.Cut(n.Value, "-")
		if !isRange {
			to = from
		}
		a, ok1 := portNumber(from)
		b, ok2 := portNumber(to)
		if ok1 && ok2 && a <= b {
			return [2]uint16{a, b}
		}
	}
	if n.Kind != yaml.AliasNode {
		r.Bad(n, "a port is "+strict.Kind(n), "a number of 0 to 65535, or a range like 8000-8999", "")
	}
	return [2]uint16{}
}

func portNumber(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && strconv.FormatUint(n, 10) == s
}

// address compiles one address. Only IP has ports and protocols: in a rule with them, any
// means all IP addresses, and a unix socket is an error.
func (r *reader) address(n *yaml.Node, s string, ipOnly bool) []schemas.NetworkRule {
	const form = "any, an address, a CIDR, unix:/path or unix:@name"
	if s == "any" {
		if ipOnly {
			return []schemas.NetworkRule{{Family: schemas.FamilyInet, Prefix: "0.0.0.0/0"}, {Family: schemas.FamilyInet6, Prefix: "::/0"}}
		}
		return []schemas.NetworkRule{{Family: schemas.FamilyAny}}
	}
	if name, ok := strings.CutPrefix(s, "unix:"); ok {
		switch {
		case ipOnly:
			r.Bad(n, "a unix socket in a rule with ports or protocols", "a rule of its own: unix sockets have neither", "")
		case len(name) > maxUnix:
			r.Bad(n, fmt.Sprintf("a unix socket's name of %d bytes", len(name)), fmt.Sprintf("at most %d", maxUnix), "")
		case strings.HasPrefix(name, "@") && len(name) > 1:
			return []schemas.NetworkRule{{Family: schemas.FamilyUnix, Path: schemas.Text(name)}}
		case strings.HasPrefix(name, "/"):
			p, _ := r.absolute(n, name)
			return []schemas.NetworkRule{{Family: schemas.FamilyUnix, Path: schemas.Text(p)}}
		default:
			r.Bad(n, "address "+strict.Quote(s), "unix: with an absolute path or @name", nearUnix(name))
		}
		return nil
	}
	var p netip.Prefix
	if strings.Contains(s, "/") {
		x, err := parsePrefix(s)
		if err != nil {
			r.Bad(n, "address "+strict.Quote(s)+": "+err.Error(), form, "")
			return nil
		}
		p = x
	} else {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			what := "address " + strict.Quote(s)
			if d, err := parseDest(s); err == nil && d.name != "" {
				what += " is a name; the kernel sees addresses"
			}
			r.Bad(n, what, form, "")
			return nil
		}
		a = a.Unmap()
		p = netip.PrefixFrom(a, a.BitLen())
	}
	family := schemas.FamilyInet
	if p.Addr().Is6() {
		family = schemas.FamilyInet6
	}
	return []schemas.NetworkRule{{Family: family, Prefix: p.String()}}
}

func nearUnix(name string) string {
	if name == "" || name[0] == '@' {
		return ""
	}
	return "unix:" + path.Join("/", name)
}
