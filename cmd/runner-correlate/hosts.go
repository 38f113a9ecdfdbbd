package main

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// A target may name a host, and the kernel sees addresses. Which of them are the
// host's nobody here can know: such a target is followed by its port.

// anyAddress begins the text that stands for a port of every address. No text of a
// log and no name of a kernel line holds this byte.
const anyAddress = "\xff:"

// hostPort is the port of a target that names a host.
func hostPort(target string) (port uint16, ok bool) {
	i := strings.LastIndexByte(target, ':')
	if i <= 0 || target[0] == '/' || strings.HasPrefix(target, "unix:") {
		return 0, false
	}
	n, err := strconv.ParseUint(target[i+1:], 10, 16)
	if _, noHost := netip.ParseAddrPort(target); noHost == nil || err != nil {
		return 0, false
	}
	return uint16(n), true
}

// endpoint is the text by which a target is compared: an IPv4-mapped address is the
// IPv4 one.
func endpoint(target string) string {
	if a, err := netip.ParseAddrPort(target); err == nil && a.Addr().Is4In6() {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
	}
	return target
}

// name numbers a target of a decision, and what stands for its host.
func (x *targetIndex) name(d *decision, target string) {
	d.targets = append(d.targets, x.number(endpoint(target)))
	if port, ok := hostPort(target); ok {
		n := x.number(anyAddress + strconv.Itoa(int(port)))
		x.ports[port] = n
		d.hosts = append(d.hosts, n)
	}
}

// subject is what a kernel line is about, as targets are compared.
type subject struct {
	name    []byte
	address bool   // a connection or datagram to an IP address, which some host has
	host    uint32 // the target that stands for its port, if there is one
	named   bool   // there is
}

func (x *targetIndex) subject(e *schemas.KernelEvent) subject {
	s := subject{name: e.Value}
	switch e.EventType {
	case schemas.EventConnect, schemas.EventSendto, schemas.EventSendmsg, schemas.EventSendmmsg, schemas.EventBind, schemas.EventListen:
	default:
		return s
	}
	a, err := netip.ParseAddrPort(string(e.Value))
	if err != nil {
		return s
	}
	if a.Addr().Is4In6() {
		s.name = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).AppendTo(nil)
	}
	if s.address = e.EventType != schemas.EventBind && e.EventType != schemas.EventListen; s.address {
		s.host, s.named = x.ports[a.Port()]
	}
	return s
}
