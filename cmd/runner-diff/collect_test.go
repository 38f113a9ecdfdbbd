package main

import (
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/schemas"
)

// TestEveryGroup: what an act of each group names is an item, and only the group of all others makes items of that kind.
func TestEveryGroup(t *testing.T) {
	for g := range acts.Group(acts.Groups) {
		a := &acts.Act{Group: g, Op: "op", Path: "/named", NewPath: "/named", Outcome: schemas.ActDone}
		if a.Net() {
			a.Path, a.NewPath, a.Endpoint = "", "", "/named"
		}
		c := &collector{folds: fold.Builtin(), to: newSide()}
		if err := c.take(a); err != nil || c.to.items.count == 0 {
			t.Fatalf("group %s: %d items, %v", acts.Words[g].Group, c.to.items.count, err)
		}
		for k := range c.to.items.all() {
			if k.value != "/named" || (k.kind == kindOther) != (g == acts.Other) {
				t.Errorf("group %s makes an item %s %s", acts.Words[g].Group, k.name(), k.value)
			}
		}
	}
}
