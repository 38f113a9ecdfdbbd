//go:build !linux

package proc

// Runner starts processes, but not on this system.
type Runner struct{ Policy *Policy }

// NewRunner returns a runner that starts nothing.
func NewRunner(p *Policy) *Runner { return &Runner{Policy: p} }

// Stop does nothing.
func (r *Runner) Stop() {}

// Run fails.
func (r *Runner) Run(o *Outcome, _ *Caps) *Outcome {
	return o.fail(SpawnFailed, "processes are started on Linux only")
}
