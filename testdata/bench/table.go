package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// row is one line of the table; empty cells stay empty.
type row struct {
	what, plain, measured string
	ratio, spread, cpu    string
	target, verdict, note string
	before                string // the ratio with other tools, of bench -before
	newest                string // what was recorded on the newest kernel of the lane
	value, of, between    string // what an emulated machine records of this row, what that is, and its smallest and largest value
	failed                bool   // could not be measured
}

func (r row) cells() []string {
	return []string{r.what, r.plain, r.measured, r.ratio, r.before, r.spread, r.cpu, r.newest, r.target, r.verdict, r.note}
}

var head = row{what: "what", plain: "plain", measured: "measured", ratio: "ratio", spread: "spread", cpu: "cpu", target: "target", verdict: "verdict",
	note: "record", before: "before"}

const firstText = 9 // the verdict and what comes after it are text

// ofCPU says of what the CPU time is that an emulated machine records.
func (r row) ofCPU(format string, n int) row {
	r.of = "CPU time of the command, " + fmt.Sprintf(format, thousands(int64(n)))
	return r
}

// broken says that a row has no number, or not of a whole record.
func (r row) broken() bool { return r.verdict == incomplete || r.failed }

type table struct {
	rows   []row
	newest string // the head of the column of the newest kernel
}

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// String aligns the cells: the first, the verdict and the note to the left, numbers to the right.
func (t *table) String() string {
	first := head
	first.newest = t.newest
	all := append([]row{first}, t.rows...)
	var width []int
	for _, r := range all {
		for i, c := range r.cells() {
			if i == len(width) {
				width = append(width, 0)
			}
			// A line with only a note must not widen the table.
			if r.verdict != "" || r.measured != "" || i == 0 {
				width[i] = max(width[i], utf8.RuneCountInString(c))
			}
		}
	}
	var b strings.Builder
	for _, r := range all {
		var line strings.Builder
		for i, c := range r.cells() {
			pad := strings.Repeat(" ", max(0, width[i]-utf8.RuneCountInString(c)))
			switch {
			case i == 0 || i >= firstText:
				line.WriteString(c + pad)
			default:
				line.WriteString(pad + c)
			}
			line.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// limit is a target: a bound from above, or from below when atLeast.
type limit struct {
	bound   float64
	atLeast bool
	text    string // as printed, such as "<= 1.4"
}

const incomplete = "INCOMPLETE"

// verdict of a value. A run with losses meets no target: an incomplete measurement is
// cheap.
func (l limit) verdict(value float64, whole bool) string {
	switch {
	case !whole:
		return incomplete
	case l.text == "":
		return ""
	case l.atLeast && value >= l.bound, !l.atLeast && value <= l.bound:
		return "met"
	}
	return "missed"
}

func atMost(bound float64) limit {
	return limit{bound: bound, text: fmt.Sprintf("<= %g", bound)}
}
