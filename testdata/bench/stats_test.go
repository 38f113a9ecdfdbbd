package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 3}, 3}, {[]float64{4, 1, 100, 2}, 3},
	} {
		in := slices.Clone(c.in)
		if got := median(c.in); got != c.want || !slices.Equal(in, c.in) {
			t.Errorf("median(%v) = %v, expected %v and the values as they were: %v", in, got, c.want, c.in)
		}
	}
}

func TestSeries(t *testing.T) {
	var s series
	s.add(1, 2)
	s.add(0, 5) // without a value of the plain run there is no ratio
	s.add(4, 2)
	if got := s.ratios(); !slices.Equal(got, []float64{2, 0.5}) {
		t.Errorf("ratios %v", got)
	}
	if got := s.differences(); !slices.Equal(got, []float64{1, 5, -2}) {
		t.Errorf("differences %v", got)
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -1234: "-1,234"} {
		if got := thousands(in); got != want {
			t.Errorf("thousands(%d) = %s, expected %s", in, got, want)
		}
	}
	for in, want := range map[time.Duration]string{1230 * time.Microsecond: "1.23ms", 45 * time.Millisecond: "45ms", 1500 * time.Millisecond: "1.50s", -20 * time.Millisecond: "-20ms"} {
		if got := seconds(in.Seconds()); got != want {
			t.Errorf("seconds(%v) = %s, expected %s", in, got, want)
		}
	}
	if got := span([]float64{2, 1, 3}, "%.1f"); got != "1.0..3.0" || span(nil, "%.1f") != "" {
		t.Errorf("span %q", got)
	}
}

func TestVerdict(t *testing.T) {
	most, least := limit{bound: 2, text: "<= 2"}, limit{bound: 2, atLeast: true, text: ">= 2"}
	for _, c := range []struct {
		l     limit
		value float64
		whole bool
		want  string
	}{
		{most, 2, true, "met"}, {most, 2.01, true, "missed"}, {most, 1, false, "INCOMPLETE"},
		{least, 2, true, "met"}, {least, 1.99, true, "missed"}, {least, 9, false, "INCOMPLETE"},
		{limit{}, 9, true, ""},
	} {
		if got := c.l.verdict(c.value, c.whole); got != c.want {
			t.Errorf("%+v of %v, whole %v: %q, expected %q", c.l, c.value, c.whole, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var tab table
	tab.add(row{what: "a", plain: "1ms", measured: "22ms", ratio: "22", verdict: "missed", note: "why"})
	tab.add(row{what: "longer", note: "NOT MEASURED: a remark that is much longer than any cell above it"})
	lines := strings.Split(strings.TrimSuffix(tab.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	if v := strings.Index(lines[0], "verdict"); v < 0 || !strings.HasPrefix(lines[1][v:], "missed") {
		t.Errorf("verdict is not under its head:\n%s", tab.String())
	}
	if m := strings.Index(lines[0], "measured") + len("measured"); !strings.HasSuffix(lines[1][:m], "  22ms") {
		t.Errorf("numbers do not end under their head:\n%s", tab.String())
	}
	for _, l := range lines {
		if strings.TrimRight(l, " ") != l {
			t.Errorf("%q ends in spaces", l)
		}
	}
}

// TestTypical: the parser of the contract accepts the generated events.
func TestTypical(t *testing.T) {
	p := schemas.NewRawParser("bench")
	ops := map[string]int{}
	for i := range 1000 {
		e := typical(i)
		var back schemas.RawEvent
		if err := p.Parse(e.AppendJSON(nil, "bench"), &back); err != nil {
			t.Fatal(err)
		}
		ops[back.Op]++
	}
	if ops["fork"] != processes || ops["exec"] != 1 || ops["openat"] != 1000-processes-1 {
		t.Errorf("%v", ops)
	}
}
