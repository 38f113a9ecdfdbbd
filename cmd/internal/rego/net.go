package rego

import (
	"errors"
	"net"
	"net/netip"
	"slices"
)

var netBuiltins = []builtin{
	{"net.cidr_is_valid", []kind{anything}, func(_ *call, a []any) (any, error) {
		s, is := a[0].(string)
		_, _, err := net.ParseCIDR(s)
		return is && err == nil, nil
	}},
	{"net.cidr_expand", []kind{str}, expand},
	{"net.cidr_contains_matches", []kind{anything, anything}, containsMatches},
}

// expand gives all addresses of a network.
func expand(c *call, a []any) (any, error) {
	_, network, err := net.ParseCIDR(a[0].(string))
	if err != nil {
		return nil, err
	}
	const most = 16 // bits: 65,536 addresses
	ones, bits := network.Mask.Size()
	if bits-ones > most {
		return nil, c.tooMuch("the network has 2^%d addresses, expected at most 2^%d", bits-ones, most)
	}
	ip, _ := netip.AddrFromSlice(network.IP)
	all := make([]any, 0, 1<<(bits-ones))
	for range 1 << (bits - ones) {
		all = append(all, net.IP(ip.AsSlice()).String())
		ip = ip.Next()
	}
	return newSet(all...), nil
}

// place is a network or an address in one of the arguments, with what stands for it in the result.
type place struct {
	network string
	name    any
}

func containsMatches(c *call, a []any) (any, error) {
	outer, err := places(a[0])
	if err != nil {
		return nil, err
	}
	if len(outer) == 0 { // OPA does not look at the others then
		return newSet(), nil
	}
	found := []any{}
	inner, err := places(a[1])
	if err != nil {
		return nil, err
	}
	for _, o := range outer {
		for _, i := range inner {
			if err := c.ctx.Err(); err != nil {
				return nil, err
			}
			holds, err := contains(o.network, i.network)
			if err != nil {
				return nil, err
			}
			if holds {
				found = append(found, []any{o.name, i.name})
			}
		}
	}
	return newSet(found...), nil
}

// places are those of a string, an array (by index), a set (by member) or an object (by key).
func places(v any) (list []place, err error) {
	add := func(name, v any) {
		if tuple, is := v.([]any); is && len(tuple) > 0 {
			v = tuple[0]
		}
		s, is := v.(string)
		if !is {
			err = errType
		}
		list = append(list, place{s, name})
	}
	switch v := v.(type) {
	case string:
		add(v, v)
	case []any:
		for i, m := range v {
			add(number(int64(i)), m)
		}
	case set:
		for _, m := range v {
			add(m, m)
		}
	case object:
		for _, m := range v {
			add(m.key, m.value)
		}
	}
	return list, err
}

// contains tells whether a network has all of another one, or an address.
func contains(outer, inner string) (bool, error) {
	_, network, err := net.ParseCIDR(outer)
	if err != nil {
		return false, err
	}
	if ip := net.ParseIP(inner); ip != nil {
		return network.Contains(ip), nil
	}
	_, other, err := net.ParseCIDR(inner)
	if err != nil {
		return false, errors.New("neither an address nor a network")
	}
	if is6(network) && is6(other) {
		ones, _ := network.Mask.Size()
		otherOnes, _ := other.Mask.Size()
		return ones <= otherOnes && network.IP.Equal(other.IP.Mask(network.Mask)), nil
	}
	last := slices.Clone(other.IP)
	for i := range last {
		last[i] |= ^other.Mask[i]
	}
	return network.Contains(other.IP) && network.Contains(last), nil
}

// is6 tells whether a network is of IPv6, and not one of IPv4 in its form there.
func is6(n *net.IPNet) bool { return len(n.Mask) == net.IPv6len && n.IP.To4() == nil }
