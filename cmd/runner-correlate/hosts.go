package main

import (
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// A target may name a host, but the kernel sees addresses. Which addresses belong to
// the host is not known, so such a target is compared by its port.

// anyAddress begins the text of the target that represents a port of any address. The
// byte does not occur in the text of a log or in the value of a kernel line.
const anyAddress = "\xff:"

// name numbers a target of a decision. If it names a host, the target that represents
// the host's port is numbered too.
func (x *targetIndex) name(d *decision, target string) {
	d.named = append(d.named, x.number(target))
	d.targets = append(d.targets, x.number(schemas.TargetEndpoint(target)))
	if port, ok := schemas.TargetHost(target); ok {
		n := x.number(anyAddress + strconv.Itoa(int(port)))
		x.ports[port] = n
		d.hosts = append(d.hosts, n)
	}
}

// subject is what a kernel line is about, in the form in which targets are compared.
type subject struct {
	name    []byte
	address bool   // a connection or datagram to an IP address, which may be a host's
	host    uint32 // the target that represents its port
	hasHost bool   // there is such a target
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
		s.host, s.hasHost = x.ports[a.Port()]
	}
	return s
}
