// Package wrapped says what follows from the records of wrappers: notes, codes, and where the network and the kernel disagree.
// runner-correlate and runner-verify do it with the same code, and each on its own.
package wrapped

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// maxSeen bounds the addresses that are compared.
const maxSeen = 1 << 16

// Set is what is kept of the kernel lines and the exchanges to compare the network that runner-net was with what the kernel saw.
type Set struct {
	done  endpoints // something in the scope was connected to these; without those that have an exchange
	tried endpoints // a kernel line says that something asked to be connected to these, or sent to them, whatever became of it
	alone endpoints // these have an exchange, and are not among tried
	asked bool      // one of tried was a server of names
}

// endpoints is a bounded set of addresses and ports.
type endpoints struct {
	in   map[netip.AddrPort]bool
	full bool // there were more, and none is told: which are in the set depends on the order
}

func (s *endpoints) add(a netip.AddrPort) {
	switch {
	case s.in[a]:
	case len(s.in) == maxSeen:
		s.full = true
	default:
		if s.in == nil {
			s.in = map[netip.AddrPort]bool{}
		}
		s.in[a] = true
	}
}

// one is an address and port in the form in which they are compared: IPv4 within IPv6 is IPv4, and the interface of a link says nothing.
func one(a netip.Addr, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Unmap().WithZone(""), port)
}

// reaching are the kernel lines of calls that can make a connection (MSG_FASTOPEN is one of a send) or ask a server of names.
var reaching = []uint32{schemas.EventConnect, schemas.EventSendto, schemas.EventSendmsg, schemas.EventSendmmsg}

// loopbacks are where the kernel connects what asks for no address in particular.
var loopbacks = [...]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// Add takes in a kernel line.
func (s *Set) Add(e *schemas.KernelEvent) {
	if !slices.Contains(reaching, e.EventType) {
		return
	}
	p, err := netip.ParseAddrPort(string(e.Value))
	if err != nil { // of a unix socket, or not known
		return
	}
	a := one(p.Addr(), p.Port())
	s.asked = s.asked || a.Port() == dns
	s.tried.add(a)
	if a.Addr().IsUnspecified() {
		for _, to := range loopbacks {
			s.tried.add(one(to, a.Port()))
		}
	}
	done := e.Has&schemas.KernelHasReturn != 0 && e.ReturnValue == 0 || e.Has&schemas.KernelHasConnectResult != 0 && e.ConnectResult == 0
	if e.EventType == schemas.EventConnect && done {
		s.done.add(a)
	}
}

// Recorded takes in an exchange, after all kernel lines.
func (s *Set) Recorded(e *schemas.NetExchange) {
	p, err := netip.ParseAddr(e.Address)
	if err != nil {
		return
	}
	a := one(p, e.Port)
	delete(s.done.in, a)
	if !s.tried.in[a] {
		s.alone.add(a)
	}
}

// Codes are the codes of a run whose network runner-net was: of connections to its ports for which it has no exchange, and, where the
// kernel lines are all there are (whole), of exchanges and names that no kernel line asked for.
func (s *Set) Codes(n *schemas.Net, whole bool) (list []string) {
	maps.DeleteFunc(s.done.in, func(a netip.AddrPort, _ bool) bool { return !slices.Contains(n.Ports, a.Port()) || a.Port() == dns })
	list = s.done.codes(schemas.AmbiguityConnect)
	if whole && !s.tried.full {
		list = append(list, s.alone.codes(schemas.AmbiguityExchange)...)
	}
	if whole && n.Names > 0 && !s.asked {
		list = append(list, schemas.AmbiguityNames)
	}
	return list
}

// codes are those of a kind about a set.
func (s *endpoints) codes(code string) (list []string) {
	if s.full {
		return []string{code + ":" + schemas.MoreCodes}
	}
	for a := range s.in {
		list = append(list, code+":"+a.String())
	}
	slices.Sort(list)
	if len(list) > schemas.MaxCodesOfKind {
		list = append(list[:schemas.MaxCodesOfKind], code+":"+schemas.MoreCodes)
	}
	return list
}

// dns is the port where questions about names are answered, which are no exchanges.
const dns = 53

// Partial are the codes of records that are not whole.
func Partial(documents []any) (list []string) {
	for _, d := range documents {
		wrapper, bad := "", false
		switch d := d.(type) {
		case *schemas.Box:
			wrapper, bad = schemas.StageBox, d.Unread > 0 || d.BaseChanged > 0
		case *schemas.Clock:
			wrapper, bad = schemas.StageClock, d.Bad > 0 || d.Lost > 0
		case *schemas.Net:
			wrapper, bad = schemas.StageNet, d.NamesLost > 0
		}
		if bad {
			list = append(list, schemas.AmbiguityRecordPartial+":"+wrapper)
		}
	}
	return list
}

// Notes are the notes of the health that follow from a document.
func Notes(document any) []string {
	switch d := document.(type) {
	case *schemas.Box:
		n := uint64(0)
		for _, k := range d.Changes {
			n += k
		}
		return []string{schemas.NoteBox.Format(d.Workspace, n, d.Unread, d.BaseChanged, d.SurvivorsKilled)}
	case *schemas.Net:
		return []string{schemas.NoteNames.Format(d.Names, d.NamesLost), schemas.NoteExchanges.Format(d.Mode, d.Exchanges, d.Unused)}
	}
	return nil
}

// ClockNote is the note about a clock, which does not count its ticks itself.
func ClockNote(c *schemas.Clock, ticks uint64) string {
	return schemas.NoteClock.Format(ticks, c.Bad, c.Lost, c.Unended)
}
