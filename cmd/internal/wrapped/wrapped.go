// Package wrapped says what follows from the records of wrappers: notes, codes, and where the network and the kernel disagree.
// runner-correlate and runner-verify do it with the same code, and each on its own.
package wrapped

import (
	"net/netip"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// maxSeen bounds the addresses that are compared.
const maxSeen = 1 << 16

// Set is the addresses and ports that something in the scope was connected to.
type Set struct {
	seen map[netip.AddrPort]bool
	full bool // there were more, and none is told: which are in seen depends on the order
}

// Add takes in a kernel line.
func (s *Set) Add(e *schemas.KernelEvent) {
	done := e.Has&schemas.KernelHasReturn != 0 && e.ReturnValue == 0 || e.Has&schemas.KernelHasConnectResult != 0 && e.ConnectResult == 0
	if e.EventType != schemas.EventConnect || !done {
		return
	}
	a, err := netip.ParseAddrPort(string(e.Value))
	if err != nil { // of a unix socket, or not known
		return
	}
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	switch {
	case s.seen[a]:
	case len(s.seen) == maxSeen:
		s.full = true
	default:
		if s.seen == nil {
			s.seen = map[netip.AddrPort]bool{}
		}
		s.seen[a] = true
	}
}

// Recorded takes in an exchange.
func (s *Set) Recorded(e *schemas.NetExchange) {
	if a, err := netip.ParseAddr(e.Address); err == nil {
		delete(s.seen, netip.AddrPortFrom(a.Unmap(), e.Port))
	}
}

// Codes are the codes of a run whose network runner-net was: of connections to its ports for which it has no exchange.
func (s *Set) Codes(n *schemas.Net) (list []string) {
	if s.full {
		return []string{schemas.AmbiguityConnect + ":" + schemas.MoreCodes}
	}
	for a := range s.seen {
		if slices.Contains(n.Ports, a.Port()) && a.Port() != dns {
			list = append(list, schemas.AmbiguityConnect+":"+a.String())
		}
	}
	slices.Sort(list)
	if len(list) > schemas.MaxCodesOfKind {
		list = append(list[:min(len(list), schemas.MaxCodesOfKind)], schemas.AmbiguityConnect+":"+schemas.MoreCodes)
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
