//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// model is what the specification says of one call, in the words of the rules and not
// of the table that the kernel has.
type model struct{ *schemas.NetworkRules }

// first is the first rule that f accepts, nil for the default.
func (m model) first(hook string, f func(*schemas.NetworkRule) bool) *schemas.NetworkRule {
	for i := range m.Rules {
		if r := &m.Rules[i]; slices.Contains(r.On, hook) && f(r) {
			return r
		}
	}
	return nil
}

func (m model) denies(r *schemas.NetworkRule) bool {
	if r == nil {
		return m.Default == "deny"
	}
	return r.Action == "deny"
}

// inet decides about one address. Wild is every address of the family, for a bind.
func (m model) inet(hook, protocol string, to netip.AddrPort, wild bool) *schemas.NetworkRule {
	addr := to.Addr().Unmap()
	return m.first(hook, func(r *schemas.NetworkRule) bool {
		if len(r.Protocols) > 0 && !slices.Contains(r.Protocols, protocol) {
			return false
		}
		in := len(r.Ports) == 0
		for _, p := range r.Ports {
			in = in || to.Port() >= p[0] && to.Port() <= p[1]
		}
		if !in || r.Family == "unix" {
			return false
		}
		if r.Family == "any" {
			return true
		}
		p := netip.MustParsePrefix(r.Prefix)
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		return p.Contains(addr) || wild && r.Action == "deny" && p.Addr().Is4() == addr.Is4()
	})
}

// endpoint decides about a call to an address, or to all addresses that it means.
func (m model) endpoint(hook, protocol string, to netip.AddrPort) *schemas.NetworkRule {
	any := to.Addr().Unmap().IsUnspecified()
	r := m.inet(hook, protocol, to, any && hook == "bind")
	switch {
	case !any:
		return r
	case hook == "bind":
		if to.Addr() == netip.IPv6Unspecified() && !m.denies(r) {
			return m.inet(hook, protocol, netip.AddrPortFrom(netip.IPv4Unspecified(), to.Port()), true)
		}
		return r
	case r != nil && m.denies(r):
		return r
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	if to.Addr() == netip.IPv6Unspecified() {
		loopback = netip.IPv6Loopback()
	}
	return m.inet(hook, protocol, netip.AddrPortFrom(loopback, to.Port()), false)
}

func (m model) unix(hook, name string) *schemas.NetworkRule {
	name, _, _ = strings.Cut(name, "\x00")
	plain := strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "/proc/") && (name == "/" || path.Clean(name) == strings.TrimSuffix(name, "/"))
	return m.first(hook, func(r *schemas.NetworkRule) bool {
		switch {
		case len(r.Ports)+len(r.Protocols) > 0 || r.Family == "inet" || r.Family == "inet6":
			return false
		case r.Path == "":
			return true
		case name[0] == '@' || r.Path[0] == '@':
			return name == r.Path
		case !plain:
			return r.Action == "deny"
		}
		return name == r.Path || strings.HasPrefix(name, strings.TrimSuffix(r.Path, "/")+"/")
	})
}

func (m model) call(c call) *schemas.NetworkRule {
	hook := map[string]string{"connect": "connect", "sendto": "send", "sendmsg": "send", "bind": "bind"}[c.Do]
	if to, err := netip.ParseAddrPort(c.To); err == nil {
		protocol := "udp"
		if strings.Contains(c.Net, "tcp") {
			protocol = "tcp"
		}
		return m.endpoint(hook, protocol, to)
	}
	return m.unix(hook, c.To)
}

// TestRulesModel compares the kernel with the model over random rules and calls.
func TestRulesModel(t *testing.T) {
	addrs := []string{"10.0.0.1", "10.0.1.1", "10.1.0.1", "127.0.0.1", "127.0.0.2", "0.0.0.0", "255.255.255.255", "203.0.113.255"}
	addrs6 := []string{"::1", "::", "fd00::1", "fd00:0:0:1::1", "2001:db8:ffff::", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::2"}
	names := []string{"/a", "/a/b", "/a/b/c", "/ab", "a", "/a//b", "/a/../b", "/a/.", "/proc/x", "/a/", "/", "@a", "@ab", "@", "@/a", "/b\x00x"}
	pieces := []string{"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/23", "10.0.0.1/32", "127.0.0.0/8", "127.0.0.2/31", "0.0.0.0/32", "128.0.0.0/1"}
	pieces6 := []string{"::/0", "::1/128", "fd00::/63", "fd00::/64", "::/128", "::ffff:0:0/96", "::ffff:10.0.0.0/104", "2001:db8::/32", "::/127"}
	paths := []string{"", "/", "/a", "/a/b", "@a", "@", "/proc/x"}
	p := newCaller(t)
	calls, refusals := 0, 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 15))
		pick := func(s []string) string { return s[rnd.IntN(len(s))] }
		some := func(s ...string) (out []string) {
			for _, x := range s {
				if rnd.IntN(2) == 0 {
					out = append(out, x)
				}
			}
			return out
		}
		rules := ruleSet(pick([]string{"allow", "deny"}))
		size := rnd.IntN(7)
		if seed == 0 { // the whole table, and what matters at its end
			size = schemas.MaxNetworkRules
		}
		for n := range size {
			r := ruleOf(uint32(n+1), pick([]string{"allow", "deny"}), "any", "")
			switch r.Family = pick([]string{"any", "inet", "inet", "inet6", "inet6", "unix"}); r.Family {
			case "inet":
				r.Prefix = pick(pieces)
			case "inet6":
				r.Prefix = pick(pieces6)
			case "unix":
				r.Path = pick(paths)
			}
			if seed == 0 && n < size-3 {
				r.Family, r.Prefix, r.Path = "inet", "198.51.100.0/24", ""
			}
			if r.On = some("connect", "send", "bind"); len(r.On) == 0 || r.Family == "unix" {
				r.On = []string{pick([]string{"connect", "send"})}
			}
			if r.Family != "unix" {
				r.Protocols = some("tcp", "udp")
				for range rnd.IntN(3) {
					from := uint16(rnd.IntN(3000))
					r.Ports = append(r.Ports, [2]uint16{from, from + uint16(rnd.IntN(3000))})
				}
			}
			rules.Rules = append(rules.Rules, r)
		}
		s := enforce(t, p.dir, rules)
		m, want := model{rules}, map[uint32]uint64{}
		for range 250 {
			what := call{Do: pick([]string{"connect", "sendto", "sendmsg", "bind"}), Net: pick([]string{"udp4", "udp6", "tcp4", "tcp6", "stream", "dgram"})}
			stream := what.Net == "stream" || strings.HasPrefix(what.Net, "tcp")
			if stream && what.Do != "bind" { // sending is of datagrams
				what.Do = "connect"
			}
			port := 1 + rnd.IntN(5000)
			switch what.Net[len(what.Net)-1] {
			case '4':
				what.To = fmt.Sprintf("%s:%d", pick(addrs), port)
			case '6':
				what.To = fmt.Sprintf("[%s]:%d", pick(addrs6), port)
			default:
				if what.To = pick(names); what.Do == "bind" {
					what.Do = "connect"
				}
			}
			if what.Do == "bind" && !s.table.bind {
				continue // no rule applies to it
			}
			calls++
			r := m.call(what)
			if m.denies(r) {
				refusals++
				if r == nil {
					want[0]++
				} else {
					want[r.Number]++
				}
			}
			got := p.try(what)
			by, err := s.Blocked()
			if err != nil {
				t.Fatal(err)
			}
			if (got == syscall.EPERM) != m.denies(r) || fmt.Sprint(by) != fmt.Sprint(want) {
				t.Fatalf("seed %d, %s: errno %v, refusals %v; the model says %v, refusals %v\n%+v", seed, what, got, by, r, want, rules)
			}
		}
		s.Close()
	}
	t.Logf("%d calls, %d of them refused", calls, refusals)
	if refusals < calls/10 || refusals > calls*9/10 {
		t.Error("one-sided test")
	}
}
