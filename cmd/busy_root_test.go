//go:build linux

package cmd_test

import (
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBusyMachine: the stages make room for the measured command and not for all others: beside programs that want every processor
// for themselves, a run still gets to its archive. With the lowest priority to the end, the stages need a minute here.
func TestBusyMachine(t *testing.T) {
	requireBPF(t)
	const long = 30 * time.Second
	ctx, stop := context.WithTimeout(context.Background(), long)
	defer stop()
	for range 16 * runtime.NumCPU() {
		busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		testkit.Must(t, busy.Start())
		defer busy.Wait()
		defer stop()
	}
	m := measure(t, nil, "true")
	if m.code != 0 {
		t.Fatal(m.outcome)
	}
	if ctx.Err() != nil {
		t.Errorf("the run did not end in the %v that the other programs ran", long)
	}
}
