//go:build linux

package main

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

var (
	inet4 = regexp.MustCompile(`sin_port="([^"]*)", sin_addr="([^"]*)"`)
	inet6 = regexp.MustCompile(`sin6_port="([^"]*)".*sin6_addr="([^"]*)"`)
	short = regexp.MustCompile(`sa_family=0x2, sa_data="([^"]*)"`)
	local = regexp.MustCompile(`sun_path=(@?)"([^"]*)"`)
)

// endpoint is the text of a socket address as strace prints it; "null" for families without one. A relative
// path of a unix socket is joined to the working directory.
func endpoint(arg string, path func(name string) string) string {
	for _, form := range []*regexp.Regexp{inet4, inet6} {
		if m := form.FindStringSubmatch(arg); m != nil {
			port := unhex(m[1])
			a, ok := netip.AddrFromSlice([]byte(unhex(m[2])))
			if !ok || len(port) != 2 {
				return "null"
			}
			return netip.AddrPortFrom(a, uint16(port[0])<<8|uint16(port[1])).String()
		}
	}
	if m := local.FindStringSubmatch(arg); m != nil {
		name := unhex(m[2])
		if m[1] == "@" {
			return "unix:@" + schemas.Text(name)
		}
		if name, _, _ = strings.Cut(name, "\x00"); name == "" {
			return "null"
		}
		return "unix:" + path(name)
	}
	return "null"
}

// shortened is the text of an IPv4 address that has fewer than its 16 bytes, but port and address; strace does not decode it.
func shortened(arg string) []string {
	m := short.FindStringSubmatch(arg)
	if m == nil || len(unhex(m[1])) < 6 {
		return nil
	}
	b := []byte(unhex(m[1]))
	return []string{netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[2:6])), uint16(b[0])<<8|uint16(b[1])).String()}
}

// setPeer takes the peer of a thread's last socket. A program asks for it after each call that can change it.
func (m *meaning) setPeer(c traced) {
	m.peer[c.tid] = ""
	if c.ret != 0 || m.stream[c.tid] {
		return
	}
	peer, err := netip.ParseAddrPort(endpoint(c.args[1], func(string) string { return "" }))
	if err == nil && peer.Addr().Is4In6() {
		m.peer[c.tid] = netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()).String()
	}
}

// unnamed is the line of a send that names no address. The kernel shows one to the hook only of an IPv6 socket
// that is connected to an IPv4 address (udpv6_sendmsg).
func (m *meaning) unnamed(c *traced) []expected {
	if m.peer[c.tid] == "" {
		return nil
	}
	// one that failed need not have come to the hook
	return []expected{{kind: schemas.EventSendmsg, value: m.peer[c.tid], address: true, hooked: true, maybe: c.ret < 0}}
}

// onSocket are the calls on sockets. addr is the argument with the address; those that name none make no line,
// except listen, and sends that the hook shows.
func onSocket(kind uint32, address int) shape {
	return func(m *meaning, p *process, c *traced) []expected {
		e := expected{kind: kind, value: "null", address: true}
		if address < 0 {
			return []expected{e}
		}
		if address >= len(c.args) {
			return nil
		}
		arg := c.args[address]
		if kind == schemas.EventSendto && c.args[address+1] == "0" || kind != schemas.EventSendto && strings.Contains(arg, "msg_namelen=0") {
			return m.unnamed(c) // no bytes are no address
		}
		if _, name, ok := strings.Cut(arg, "msg_name="); ok {
			arg, _, _ = strings.Cut(name, ", msg_namelen=")
		}
		if kind != schemas.EventConnect && kind != schemas.EventBind && (arg == "NULL" || arg == "") {
			return m.unnamed(c)
		}
		e.stream = (m.stream[c.tid] || withoutFamily(arg)) && kind != schemas.EventConnect && kind != schemas.EventBind
		e.bare = endpoint(arg, func(name string) string { return new(process).join("", name) })
		e.value = endpoint(arg, func(name string) string { return p.join(m.cwd[c.tid], name) })
		e.others = shortened(arg)
		return []expected{e}
	}
}

// messages are those of sendmmsg that were sent, or the first, which failed. If one failed after others, the call
// does not tell it; the hook does, if it came there.
func messages(m *meaning, p *process, c *traced) (lines []expected) {
	if len(c.args) < 2 {
		return nil
	}
	for i, message := range split(strings.Trim(c.args[1], "[]")) {
		if c.ret >= 0 && int64(i) > c.ret || c.ret < 0 && i > 0 {
			break
		}
		one := *c
		one.args = []string{c.args[0], message}
		told := onSocket(schemas.EventSendmmsg, 1)(m, p, &one)
		for j := range told {
			if e := &told[j]; c.ret >= 0 && int64(i) == c.ret {
				e.kind, e.hooked, e.maybe = schemas.EventSendmsg, true, true
				if e.others = append(e.others, e.bare); e.value == "null" {
					return lines
				}
			}
		}
		lines = append(lines, told...)
	}
	return lines
}

// withoutFamily reports whether an address that strace shows has no family: with other bytes, or cut after it.
func withoutFamily(arg string) bool {
	return strings.Contains(arg, "sa_family=0,") || strings.Contains(arg, "sa_family=0}")
}
