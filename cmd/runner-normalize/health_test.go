package main

import (
	"errors"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// TestConservation loses an event on purpose: there must be no seal after that.
func TestConservation(t *testing.T) {
	n, err := newTestNormalizer()
	if err != nil {
		t.Fatal(err)
	}
	if err := conserved(n.stageHealth(testRun)); err != nil {
		t.Error(err)
	}
	n.events = 1
	var e *tool.Error
	if err := conserved(n.stageHealth(testRun)); !errors.As(err, &e) || e.Code != tool.ExitIO {
		t.Errorf("an event vanished: %v", err)
	}
}
