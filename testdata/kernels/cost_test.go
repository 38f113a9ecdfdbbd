package main

import (
	"slices"
	"testing"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// TestCostsOf: only what a kernel measured whole is recorded.
func TestCostsOf(t *testing.T) {
	a, b := emulated.Row{What: "a", Value: "1.40"}, emulated.Row{What: "b", Value: "1.50"}
	tools := guest.Line{Check: toolsCheck, Result: guest.OK, Detail: "version 1"}
	boot := guest.Line{Check: bootCheck, Result: guest.OK}
	lines := []guest.Line{boot, tools, {Check: "cost/a", Result: guest.OK, Cost: &a}, {Check: "cost-2-cores/b", Result: guest.OK, Cost: &b}}
	c, err := costsOf(report{Kernel: "7.3", Release: "7.3.4", Arch: "amd64", Checks: lines})
	if err != nil || c.Kernel != "7.3" || c.Release != "7.3.4" || c.Version != "version 1" || !slices.Equal(c.Rows, []emulated.Row{a, b}) {
		t.Error(c, err)
	}
	for name, lines := range map[string][]guest.Line{
		"a row failed":      append(slices.Clone(lines), guest.Line{Check: "cost/c", Result: guest.Failed}),
		"the kernel warned": append([]guest.Line{{Check: bootCheck, Result: guest.Failed}}, lines...),
		"no row":            {boot, tools},
		"no tools":          append(slices.Clone(lines[:1]), lines[2:]...),
	} {
		if c, err := costsOf(report{Kernel: "7.3", Checks: lines}); err == nil {
			t.Errorf("%s: recorded as %+v", name, c)
		}
	}
}
