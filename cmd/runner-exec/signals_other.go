//go:build !unix

package main

import (
	"os"
	"os/signal"
)

// signals is what arrives for the command.
type signals struct{ c chan os.Signal }

// watchSignals keeps an interrupt from ending us before the record is sealed;
// the console sends it to the command as well.
func watchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 8)}
	signal.Notify(s.c, os.Interrupt)
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }

func fromTerminal(sig os.Signal) bool { return sig == os.Interrupt }

func terminates(sig os.Signal) int {
	if sig == os.Interrupt {
		return 2
	}
	return 0
}

func terminate(p *os.Process) { p.Kill() }
