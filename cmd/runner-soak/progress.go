package main

import (
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// progress is one line on a terminal that says how far the soak is. Elsewhere it prints nothing.
type progress struct {
	env                 *tool.Env
	shown, on           bool
	all, passed, failed int
	other               int
	begin               time.Time
}

func newProgress(env *tool.Env, all int) *progress {
	p := &progress{env: env, all: all, begin: time.Now(), on: tool.IsTerminal(env.Stderr) && !env.Flag.Bool("q")}
	p.draw()
	return p
}

// count notes a run that ended; the caller has the lock.
func (p *progress) count(status string) {
	switch status {
	case statusPass:
		p.passed++
	case statusFail:
		p.failed++
	default:
		p.other++
	}
	p.draw()
}

// skip notes a run that will not be made.
func (p *progress) skip() { p.all-- }

func (p *progress) draw() {
	if !p.on {
		return
	}
	p.shown = true
	fmt.Fprintf(p.env.Stderr, "\r\x1b[K%s", p.text(time.Since(p.begin)))
}

func (p *progress) text(passed time.Duration) string {
	n := p.passed + p.failed + p.other
	s := fmt.Sprintf("%d of %d runs: %d passed, %d failed", n, p.all, p.passed, p.failed)
	if p.other > 0 {
		s += fmt.Sprintf(", %d not judged", p.other)
	}
	if n > 0 && n < p.all {
		left := passed * time.Duration(p.all-n) / time.Duration(n)
		s += ", about " + left.Round(time.Second).String() + " left"
	}
	return s
}

// end removes the line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.env.Stderr, "\r\x1b[K")
	}
	p.shown = false
}

// say prints a line for people, and the progress after it.
func (p *progress) say(format string, a ...any) {
	was := p.shown
	p.end()
	p.env.Sayf(format, a...)
	if was {
		p.draw()
	}
}
