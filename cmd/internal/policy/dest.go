package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// dest is where a URL or HOST[:PORT] leads: a name or an address, and a port, 0 when
// there is none.
type dest struct {
	name string // lower case, without dot at the end; empty for an address
	addr netip.Addr
	port uint16
}

// defaultPorts are those that a URL's scheme implies.
var defaultPorts = map[string]uint16{"http": 80, "https": 443, "ws": 80, "wss": 443}

// local are schemes whose URLs lead to no host, even if they name one.
var local = []string{"about", "blob", "data", "file", "jar", "javascript", "npipe", "unix"}

// maxDest is the longest text that is read as a destination.
const maxDest = 8192

// parseDest reads a URL or HOST[:PORT]. Programs read some such texts differently. A text
// that can be read in two ways is an error.
func parseDest(s string) (dest, error) {
	if len(s) > maxDest {
		return dest{}, fmt.Errorf("it is longer than %d bytes", maxDest)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return dest{}, errors.New("it holds a blank, a control character or a backslash")
		}
	}
	scheme, rest, isURL := strings.Cut(s, "://")
	if !isURL {
		return parseHostPort(s)
	}
	if !schemeForm(scheme) {
		return dest{}, fmt.Errorf("%s is not a scheme", strict.Quote(scheme))
	}
	if scheme = strings.ToLower(scheme); slices.Contains(local, scheme) {
		return dest{}, fmt.Errorf("a %s URL leads to no host", scheme)
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
		if rest[i] != '/' && strings.ContainsRune(rest[i:], '@') {
			return dest{}, errors.New("an @ follows the host, which some read as a user's name")
		}
	}
	d, err := parseHostPort(authority)
	if err == nil && d.port == 0 {
		d.port = defaultPorts[scheme]
	}
	return d, err
}

func schemeForm(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !('a' <= c && c <= 'z') && (i == 0 || !('0' <= s[i] && s[i] <= '9') && s[i] != '+' && s[i] != '-' && s[i] != '.') {
			return false
		}
	}
	return s != ""
}

func parseHostPort(s string) (dest, error) {
	host, port := s, ""
	hasPort := false
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return dest{}, errors.New("a bracket is not closed")
		}
		host = s[:end+1]
		if rest := s[end+1:]; rest != "" {
			if rest[0] != ':' {
				return dest{}, errors.New("text follows the bracket")
			}
			port, hasPort = rest[1:], true
		}
	} else {
		host, port, hasPort = strings.Cut(s, ":")
		// Some programs read http:443 as port 443 of a host named http, some as the host 443.
		if name := strings.ToLower(host); hasPort && (defaultPorts[name] != 0 || name == "ftp" || name == "file") {
			return dest{}, errors.New("it begins like a URL, without //")
		}
	}
	d, err := parseHost(host)
	if err != nil || !hasPort {
		return d, err
	}
	d.port, err = parsePort(port)
	return d, err
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("%s is not a port", strict.Quote(s))
	}
	return uint16(n), nil
}

// parseHost reads a name or an address. An address is clear in only one form: four
// decimal numbers without leading zeros, or IPv6 in brackets without a zone.
func parseHost(s string) (dest, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !a.Is6() || a.Zone() != "" {
			return dest{}, fmt.Errorf("%s is not an IPv6 address", strict.Quote(s))
		}
		return dest{addr: a.Unmap()}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	labels := strings.Split(name, ".")
	if len(name) > 253 {
		return dest{}, errors.New("a name is longer than 253 bytes")
	}
	for _, l := range labels {
		if !label(l) {
			return dest{}, fmt.Errorf("%s is not a plain host name or address", strict.Quote(s))
		}
	}
	if last := labels[len(labels)-1]; numeric(last) {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return dest{}, fmt.Errorf("%s is not an address in its plain form", strict.Quote(s))
		}
		return dest{addr: a}, nil
	}
	return dest{name: name}, nil
}

func label(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 63
}

// numeric reports whether a name's last label makes resolvers take it for an address.
func numeric(s string) bool {
	digits := strings.TrimPrefix(s, "0x")
	if digits != s {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(s, "0123456789") == ""
}

// endpoint is the form in which kernel lines show a destination; false when the port
// is not known.
func (d dest) endpoint() (string, bool) {
	switch {
	case d.port == 0:
		return "", false
	case d.name != "":
		return d.name + ":" + strconv.Itoa(int(d.port)), true
	}
	return netip.AddrPortFrom(d.addr, d.port).String(), true
}

// destPattern is one pattern of destinations in a rule.
type destPattern struct {
	text   string
	name   string // a name, or with below the parent of the names
	below  bool   // *.name
	prefix netip.Prefix
	port   uint16 // 0 for all
}

func parseDestPattern(s string) (destPattern, error) {
	p := destPattern{text: s}
	if strings.Contains(s, "/") {
		x, err := parsePrefix(s)
		p.prefix = x
		return p, err
	}
	rest, below := strings.CutPrefix(s, "*.")
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() && a.Zone() == "" {
		rest = "[" + s + "]" // a rule without a port may omit the brackets
	}
	d, err := parseHostPort(rest)
	if err != nil {
		return p, err
	}
	p.port = d.port
	if d.name == "" {
		if below {
			return p, errors.New("an address has no names below it")
		}
		p.prefix = netip.PrefixFrom(d.addr, d.addr.BitLen())
		return p, nil
	}
	p.name, p.below = d.name, below
	return p, nil
}

// parsePrefix reads a CIDR whose host bits are zero. IPv4-mapped ones are IPv4.
func parsePrefix(s string) (netip.Prefix, error) {
	x, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return x, errors.New("it is not a CIDR")
	case x.Masked() != x:
		return x, fmt.Errorf("it has bits beyond its length: %s is meant", x.Masked())
	case x.Addr().Is4In6() && x.Bits() >= 96:
		return netip.PrefixFrom(x.Addr().Unmap(), x.Bits()-96), nil
	}
	return x, nil
}

var errNoPort = errors.New("it has no port, and the rule requires one")

// match reports whether a destination matches the pattern.
func (p destPattern) match(d dest) (bool, error) {
	switch {
	case p.name == "":
		if d.name != "" || !p.prefix.Contains(d.addr) {
			return false, nil
		}
	case p.below:
		if !strings.HasSuffix(d.name, "."+p.name) {
			return false, nil
		}
	case d.name != p.name:
		return false, nil
	}
	if p.port != 0 && d.port == 0 {
		return false, errNoPort
	}
	return p.port == 0 || p.port == d.port, nil
}

// nat64 is the prefix under which networks without IPv4 reach it.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// others are further destinations that the same text reaches: the IPv4 address for its
// IPv6 form, and this host for its name. A rule that denies applies to them as well.
func (d dest) others() []dest {
	switch {
	case d.name == "localhost" || strings.HasSuffix(d.name, ".localhost"):
		return []dest{{addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}), port: d.port}, {addr: netip.IPv6Loopback(), port: d.port}}
	case d.name == "" && nat64.Contains(d.addr):
		b := d.addr.As16()
		return []dest{{addr: netip.AddrFrom4([4]byte(b[12:])), port: d.port}}
	}
	return nil
}

// leadsTo reports whether a destination matches one of the patterns.
func leadsTo(d dest, patterns []destPattern, allow bool) (bool, error) {
	ok, err := d.matches(patterns)
	if ok || allow {
		return ok, err
	}
	for _, other := range d.others() {
		if ok, err2 := other.matches(patterns); ok {
			return true, nil
		} else if err2 != nil {
			err = err2
		}
	}
	return false, err
}

func (d dest) matches(patterns []destPattern) (bool, error) {
	if d.name == "" && d.addr.IsUnspecified() {
		return false, errors.New("an unspecified address leads to the host of the server")
	}
	var unclear error
	for _, p := range patterns {
		ok, err := p.match(d)
		if ok {
			return true, nil
		}
		if err != nil {
			unclear = err
		}
	}
	return false, unclear
}
