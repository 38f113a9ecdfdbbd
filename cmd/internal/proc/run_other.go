//go:build !linux

package proc

import (
	"errors"

	"github.com/runner-evidence/runner/cmd/internal/decisions"
)

// Runner starts processes, but not on this system.
type Runner struct{ Policy *Policy }

// NewRunner returns a runner that starts nothing.
func NewRunner(p *Policy) *Runner { return &Runner{Policy: p} }

// Record fails.
func (r *Runner) Record(decisions.File) error {
	return errors.New("processes are started on Linux only")
}

// LogError is nil.
func (r *Runner) LogError() error { return nil }

// Close does nothing.
func (r *Runner) Close() {}

func (r *Runner) refused(o *Outcome) *Outcome { return o }

// Huge does nothing.
func Huge([]byte) {}

// IsHelper is false.
func IsHelper() bool { return false }

// Help does nothing.
func Help() {}

// Stop does nothing.
func (r *Runner) Stop() {}

// Run fails.
func (r *Runner) Run(o *Outcome, _ *Caps) *Outcome {
	return o.fail(SpawnFailed, "processes are started on Linux only")
}
