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
}

func (r row) cells() []string {
	return []string{r.what, r.plain, r.measured, r.ratio, r.before, r.spread, r.cpu, r.target, r.verdict, r.note}
}

var head = row{"what", "plain", "measured", "ratio", "spread", "cpu", "target", "verdict", "record", "before"}

type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// String aligns the cells: the first, the verdict and the note to the left, numbers to the right.
func (t *table) String() string {
	all := append([]row{head}, t.rows...)
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
			case i == 0 || i >= 8:
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

// verdict of a value. A run with losses meets no target: an incomplete measurement is
// cheap.
func (l limit) verdict(value float64, whole bool) string {
	switch {
	case !whole:
		return "INCOMPLETE"
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
