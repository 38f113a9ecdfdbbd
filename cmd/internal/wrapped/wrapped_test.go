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
			return s.Codes(&schemas.Net{Ports: []uint16{80, 81}})
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
