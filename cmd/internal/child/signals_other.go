//go:build !unix

package child

import (
	"os"
	"os/signal"
)

// Signals are those that arrive at the tool while its program runs.
type Signals struct {
	C <-chan os.Signal
	c chan os.Signal
}

// WatchAll keeps an interrupt from ending us before our work is done; the console sends
// it to the program as well.
func WatchAll() *Signals { return WatchEnding() }

// All returns when all are taken over.
func (s *Signals) All() {}

// WatchEnding takes over the interrupt.
func WatchEnding() *Signals {
	s := &Signals{c: make(chan os.Signal, 8)}
	s.C = s.c
	signal.Notify(s.c, os.Interrupt)
	return s
}

// Stop restores the default handling of the signals.
func (s *Signals) Stop() { signal.Stop(s.c) }

// IsHangup reports false: there is no such signal.
func IsHangup(os.Signal) bool { return false }

// FromTerminal reports whether the console sent the signal to the program as well.
func FromTerminal(sig os.Signal) bool { return sig == os.Interrupt }

// AsksToEnd is the number of a signal that asks a program to end, else 0.
func AsksToEnd(sig os.Signal) int {
	if sig == os.Interrupt {
		return 2
	}
	return 0
}
