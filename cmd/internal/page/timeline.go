package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

// Bounds of the timeline.
const (
	maxLanes   = 40  // processes, those with the most operations
	maxSpans   = 100 // lines of other layers
	parts      = 160 // of a bar
	clockWords = "2006-01-02 15:04:05.000 UTC"
)

// Timeline says when things happened, of a record that has times.
type Timeline struct {
	Started  string // on the wall clock
	Lasted   string
	Lanes    []*Lane
	MoreProc int // processes without a lane
	MoreSpan int // lines of other layers without one

	end uint64
	of  map[lineOf]string // what the lines of other layers are
}

type lineOf struct {
	layer string
	line  uint64
}

// Lane is one line of the timeline.
type Lane struct {
	What, Kind, Name string
	From, To         string
	Events           uint64
	Marks            []Mark

	process int
	first   uint64
	last    uint64
	counts  [parts]uint64
}

// Mark is a part of a bar, in units of the bar's width.
type Mark struct {
	X, Width int
	Opacity  string
}

// Name keeps what a line of another layer is, for its lane.
func (t *Timeline) Name(layer string, line uint64, words string) {
	if t.of == nil {
		t.of = map[lineOf]string{}
	}
	if len(t.of) < 2*maxSpans {
		t.of[lineOf{layer, line}] = words
	}
}

// Take takes a line of the layer times.
func (t *Timeline) Take(e *schemas.TimeEvent, d *Data) {
	switch {
	case e.Type == schemas.TimeAnchor:
		t.end = max(1, e.FinishedNS)
		t.Started = time.Unix(0, int64(min(e.WallNS, math.MaxInt64))).UTC().Format(clockWords)
		t.Lasted = seconds(e.FinishedNS)
	case e.Layer == schemas.LayerKernel:
		d.Time(e.Line, e.NS)
	default:
		words, known := t.of[lineOf{e.Layer, e.Line}]
		if !known || len(t.Lanes) >= maxSpans {
			t.MoreSpan++
			return
		}
		l := &Lane{What: e.Layer, Kind: e.Layer, Name: words, Events: 1, process: -1, first: e.NS, last: e.NS}
		if e.HasEnd {
			l.last = e.EndNS
		}
		t.Lanes = append(t.Lanes, l)
	}
}

// Recorded reports whether the record has times.
func (t *Timeline) Recorded() bool { return t.Started != "" }

// Finish makes the lanes of the processes, once all times are known. program names a process.
func (t *Timeline) Finish(d *Data, program func(process int) string) {
	lanes := map[int]*Lane{}
	for i := range d.rows {
		if ns := d.rows[i].ns; ns >= 0 {
			t.end = max(t.end, uint64(ns))
		}
	}
	for _, l := range t.Lanes {
		t.end = max(t.end, l.last)
	}
	for i := range d.rows {
		r := &d.rows[i]
		if r.ns < 0 {
			continue
		}
		l := lanes[r.process]
		if l == nil {
			l = &Lane{What: "process", Kind: schemas.LayerKernel, process: r.process, first: uint64(r.ns)}
			lanes[r.process] = l
		}
		l.Events++
		l.first, l.last = min(l.first, uint64(r.ns)), max(l.last, uint64(r.ns))
		l.counts[t.place(uint64(r.ns))]++
	}
	t.busiest(lanes, d, program)
	for _, l := range t.Lanes {
		l.finish(t)
	}
}

func (t *Timeline) busiest(lanes map[int]*Lane, d *Data, program func(int) string) {
	var list []*Lane
	for _, l := range lanes {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *Lane) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.process, b.process))
	})
	if len(list) > maxLanes {
		t.MoreProc, list = len(list)-maxLanes, list[:maxLanes]
	}
	for _, l := range list {
		l.Name = fmt.Sprintf("%d %s", d.pids[l.process], program(l.process))
	}
	t.Lanes = append(t.Lanes, list...)
	slices.SortStableFunc(t.Lanes, func(a, b *Lane) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
}

// place is the part of a bar in which a time is.
func (t *Timeline) place(ns uint64) int {
	return int(min(float64(ns)/float64(t.end)*parts, parts-1))
}

func (l *Lane) finish(t *Timeline) {
	l.From, l.To = seconds(l.first), seconds(l.last)
	if l.process < 0 {
		from, to := t.place(l.first), t.place(l.last)
		l.Marks = []Mark{{from, to - from + 1, "1"}}
		return
	}
	most := slices.Max(l.counts[:])
	for i, n := range l.counts {
		if n > 0 {
			l.Marks = append(l.Marks, Mark{i, 1, fmt.Sprintf("%.2f", 0.35+0.65*math.Log1p(float64(n))/math.Log1p(float64(most)))})
		}
	}
}

func seconds(ns uint64) string { return fmt.Sprintf("%d.%06d s", ns/1e9, ns%1e9/1e3) }
