package main

import (
	"fmt"
	"slices"
	"time"
)

// median of an odd number of values is the middle one, of an even number the mean
// of the two in the middle; of none it is 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// percentile is the value that a share p of the values does not exceed.
func percentile(v []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return s[min(len(s)-1, int(p*float64(len(s))))]
}

// series has the values of the pairs of one comparison, in the order of the runs.
type series struct{ plain, measured []float64 }

func (s *series) add(plain, measured float64) {
	s.plain = append(s.plain, plain)
	s.measured = append(s.measured, measured)
}

// ratios are measured/plain, pair by pair: if the machine is slow for a while, both runs
// of a pair are slow. Pairs without a plain value are left out.
func (s *series) ratios() []float64 {
	out := make([]float64, 0, len(s.plain))
	for i, p := range s.plain {
		if p > 0 {
			out = append(out, s.measured[i]/p)
		}
	}
	return out
}

// differences are measured-plain, pair by pair.
func (s *series) differences() []float64 {
	out := make([]float64, len(s.plain))
	for i, p := range s.plain {
		out[i] = s.measured[i] - p
	}
	return out
}

// span is the smallest and the largest value, as text.
func span(v []float64, format string) string {
	if len(v) == 0 {
		return ""
	}
	return fmt.Sprintf(format+".."+format, slices.Min(v), slices.Max(v))
}

// seconds are written with the digits that are significant in such a benchmark.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d < 10*time.Millisecond && d > -10*time.Millisecond:
		return fmt.Sprintf("%.2fms", s*1e3)
	case d < time.Second && d > -time.Second:
		return fmt.Sprintf("%.0fms", s*1e3)
	}
	return fmt.Sprintf("%.2fs", s)
}

func times(r float64) string { return fmt.Sprintf("%.2f", r) }

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
