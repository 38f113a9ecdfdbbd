//go:build linux

package cgroup

import (
	"context"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Who reads a cgroup while another one removes it is told that it is gone, at every moment of the removal.
func TestGone(t *testing.T) {
	parent, err := Own()
	if err != nil {
		testkit.Missing(t, "a cgroup that is removed", err)
	}
	half := 0
	for round := range 300 {
		dir, err := MakeBelow(parent, "runner-test-gone-")
		if err != nil {
			testkit.Missing(t, "a cgroup that is removed", err)
		}
		removed := make(chan error)
		go func() {
			time.Sleep(time.Duration(round%10) * 20 * time.Microsecond)
			removed <- Remove(dir)
		}()
		err = nil
		for err == nil {
			err = Wait(context.Background(), dir, false)
		}
		if Exists(dir) == nil {
			half++
		}
		if !Gone(dir, err) {
			t.Fatalf("round %d: %v, and the cgroup is there", round, err)
		}
		testkit.Must(t, <-removed)
	}
	t.Logf("%d times the cgroup was still there when its files were not", half)
	if dir := parent; Gone(dir, context.Canceled) || Gone(dir, nil) {
		t.Error("a cgroup that is there is gone")
	}
}
