package journal

import (
	"maps"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// The steps are those of the contract.
func TestStepsOfTheContract(t *testing.T) {
	var own []string
	for s := range maps.Keys(next) {
		if s != "" {
			own = append(own, string(s))
		}
	}
	slices.Sort(own)
	want := slices.Sorted(slices.Values(schemas.GateSteps[:]))
	if !slices.Equal(own, want) {
		t.Errorf("%q\nthe contract has %q", own, want)
	}
}
