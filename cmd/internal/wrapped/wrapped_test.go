package wrapped

import (
	"fmt"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestCodesOrder: the codes do not depend on the order of the lines, however many addresses there are.
func TestCodesOrder(t *testing.T) {
	for _, n := range []int{3, schemas.MaxCodesOfKind + 1, maxSeen, maxSeen + 1} {
		var lines []*schemas.KernelEvent
		for i := range n {
			lines = append(lines, &schemas.KernelEvent{EventType: schemas.EventConnect, Has: schemas.KernelHasReturn, Value: fmt.Appendf(nil, "198.18.%d.%d:%d", i>>8&255, i&255, 80+i>>16)})
		}
		codes := func() []string {
			var s Set
			for _, e := range lines {
				s.Add(e)
			}
			s.Recorded(&schemas.NetExchange{Address: "198.18.0.1", Port: 80})
			return s.Codes(&schemas.Net{Ports: []uint16{80, 81}}, true)
		}
		then := codes()
		slices.Reverse(lines)
		if now := codes(); !slices.Equal(then, now) {
			t.Errorf("%d addresses: %q\nand backwards %q", n, then, now)
		}
		if want := min(n-1, schemas.MaxCodesOfKind+1); n <= maxSeen && len(then) != want || n > maxSeen && len(then) != 1 {
			t.Errorf("%d addresses: %d codes", n, len(then))
		}
	}
}

// TestExchangesOrder: the same holds for exchanges that no kernel line asked for, and for what kernel lines asked for.
func TestExchangesOrder(t *testing.T) {
	for _, n := range []int{3, schemas.MaxCodesOfKind + 1, maxSeen, maxSeen + 1} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255))
		}
		port := func(i int) uint16 { return uint16(80 + i>>16) }
		codes := func(from, step int) []string {
			var s Set
			s.Add(&schemas.KernelEvent{EventType: schemas.EventSendto, Value: []byte("198.18.0.1:80")})
			for i := range n {
				s.Recorded(&schemas.NetExchange{Address: list[from+step*i], Port: port(from + step*i)})
			}
			return s.Codes(&schemas.Net{}, true)
		}
		then, now := codes(0, 1), codes(n-1, -1)
		if !slices.Equal(then, now) || len(then) == 0 {
			t.Errorf("%d addresses: %q\nand backwards %q", n, then, now)
		}
		var s Set
		for i := range n {
			s.Add(&schemas.KernelEvent{EventType: schemas.EventConnect, Value: fmt.Appendf(nil, "%s:%d", list[i], port(i))})
		}
		s.Recorded(&schemas.NetExchange{Address: "10.0.0.1", Port: 80})
		if got := len(s.Codes(&schemas.Net{}, true)); (got == 1) != (n <= maxSeen) {
			t.Errorf("%d addresses were asked for: %d codes", n, got)
		}
		if got := s.Codes(&schemas.Net{Names: 1}, false); len(got) > 0 {
			t.Errorf("lines can be missing: %q", got)
		}
	}
}
