package strict

import (
	"strings"
	"testing"
)

// TestFaultLine: a problem points at the line with the fault, not at the construct that the
// parser was in.
func TestFaultLine(t *testing.T) {
	const good = "a:\n  - b: [x,\n     y]\n    c: d\n" // 4 lines
	for fault, line := range map[string]int{
		"   e: f\n  - b: z\n":            5,
		"    e: [x, y\n  - b: z\nc: d\n": 5,
		"    e: *nowhere\n  - b: z\n":    5,
		"    e: \"x\n  - b: z\n":         5,
		"\te: f\n":                       5,
		"    e: f: g\n  - b: z\n":        5,
		"    e f\n    g: h\n":            5,
		"    e: @x\n":                    5,
	} {
		r := &Reader{File: "f", What: "a file"}
		if r.Document([]byte(good+fault)) != nil {
			t.Fatalf("%q is read", fault)
		}
		if p := r.Problems().List[0]; p.Line != line {
			t.Errorf("%s: line %d, want %d", strings.ReplaceAll(fault, "\n", "⏎"), p.Line, line)
		}
	}
}
