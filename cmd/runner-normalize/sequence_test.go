package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// numberedEvents are events of two probes on two CPUs, each with its number.
func numberedEvents(n int) (events []schemas.RawEvent) {
	next := map[[2]uint32]uint64{}
	for i := range n {
		cpu, probe := uint32(i%2), uint32(i%3%2)
		e := schemas.RawEvent{Op: schemas.OpUnlink, CPU: cpu, Probe: uint8(probe), CPUSeq: next[[2]uint32{cpu, probe}],
			Has: schemas.HasProbe | schemas.HasRet, PID: 100, TID: 100, UserPath: []byte("/tmp/x")}
		next[[2]uint32{cpu, probe}]++
		events = append(events, e)
	}
	return events
}

// An event that is missing or there twice is refused, unless the capture's counters explain it.
func TestSequences(t *testing.T) {
	const n = 40
	without := func(at ...int) (list []schemas.RawEvent) {
		for i, e := range numberedEvents(n) {
			gone := false
			for _, x := range at {
				gone = gone || x == i
			}
			if !gone {
				list = append(list, e)
			}
		}
		return list
	}
	swapped := numberedEvents(n)
	swapped[3], swapped[30] = swapped[30], swapped[3]
	twice := without(17)
	twice[20] = twice[8]
	plain := numberedEvents(n)
	for i := range plain {
		plain[i].Has &^= schemas.HasProbe
	}
	one := numberedEvents(n)
	one[5].Has &^= schemas.HasProbe
	last := numberedEvents(n)
	last[n-1].CPUSeq = math.MaxUint64
	for _, tc := range []struct {
		name           string
		events         []schemas.RawEvent
		seen, inserted uint64
		want           string
	}{
		{"all", numberedEvents(n), n, 0, ""},
		{"others were not written out", numberedEvents(n), n + 5, 0, ""},
		{"late", swapped, n, 0, ""},
		{"a stream of before", plain, 0, 0, ""},
		{"one dropped", without(17), n, 0, ""},
		{"one missing", without(17), n - 1, 0, "events are missing: by their cpu_seq, the probes began 40 records or more, by the capture's counters 39"},
		{"the first of a probe missing", without(0, 1), n - 2, 0, "events are missing"},
		{"twice", twice, n, 0, "is there twice"},
		{"no number of a record", last, n, 0, "is no number of a record"},
		{"one without a probe", one, n, 0, "1 events without the key probe, expected 0"},
		{"one that did not come through the ring", one, n, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := rawStream(t, tc.events, func(h *schemas.StageHealth) {
				h.Counters = map[string]uint64{schemas.CounterSeen: tc.seen, schemas.CounterFileInserted: tc.inserted}
			})
			out, errs, code := call(t, in)
			if tc.want == "" && code != 0 || tc.want != "" && (code != 3 || !strings.Contains(errs, tc.want) || strings.Contains(out, "trailer")) {
				t.Errorf("exit %d, expected %q\n%s", code, tc.want, errs)
			}
		})
	}
}

// A sequence knows what came, against a set of the numbers.
func TestSequenceModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var q sequence
		came := map[uint64]bool{}
		for range 200 {
			n := r.Uint64N(120)
			if q.add(n) == came[n] {
				t.Fatalf("%d after %v: %+v", n, came, q)
			}
			came[n] = true
		}
	}
	var q sequence
	for i := range uint64(4 * maxHoles) {
		if !q.add(2 * i) {
			t.Fatal(i)
		}
	}
	if len(q.holes) > maxHoles || q.add(8*maxHoles-2) || !q.add(8*maxHoles-3) || q.next != 8*maxHoles-1 {
		t.Errorf("%d holes, next %d", len(q.holes), q.next)
	}
}
