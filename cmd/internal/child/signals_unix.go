//go:build unix

package child

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signals are those that arrive at the tool while its program runs.
type Signals struct {
	C    <-chan os.Signal
	c    chan os.Signal
	pipe chan os.Signal
	rest sync.WaitGroup // those that are not taken over yet
}

// asking are the signals that ask a tool to end.
var asking = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}

// passedOn are the signals that are passed on to the program, beside those.
var passedOn = []syscall.Signal{
	syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGIO,
}

// WatchAll takes over the signals that are to be passed on to the program: those that ask to end at once, the others while the tool
// goes on. Go's runtime takes some time for each, and the same again to give it back: a tool that ends need not.
func WatchAll() *Signals {
	s := WatchEnding()
	s.rest.Go(func() {
		s.watch(passedOn)
		s.watch(realTime)
	})
	return s
}

// All returns when all are taken over. It is called before the program is started.
func (s *Signals) All() { s.rest.Wait() }

// WatchEnding takes over the signals that ask the tool to end. SIGPIPE is caught and dropped, and not ignored, because the program would
// inherit that. A write to a closed pipe returns EPIPE.
func WatchEnding() *Signals {
	s := &Signals{c: make(chan os.Signal, 64), pipe: make(chan os.Signal, 1)}
	s.C = s.c
	s.watch(asking)
	signal.Notify(s.pipe, syscall.SIGPIPE)
	return s
}

// watch does not take over a signal that was ignored when we started, so that the program
// inherits this.
func (s *Signals) watch(list []syscall.Signal) {
	for _, sig := range list {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
}

// Stop restores the default handling of the signals.
func (s *Signals) Stop() {
	signal.Stop(s.c)
	signal.Stop(s.pipe)
}

// IsHangup reports whether a signal is the one that asks a program without a terminal to
// read its files again.
func IsHangup(sig os.Signal) bool { return sig == syscall.SIGHUP }

// FromTerminal reports whether a signal was most likely sent by the terminal to the
// whole foreground process group. A program in our group has it already then.
func FromTerminal(sig os.Signal) bool {
	return (sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGWINCH) && foreground()
}

// foreground reports whether this process group owns its controlling terminal.
func foreground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// AsksToEnd is the number of a signal that asks a program to end, else 0.
func AsksToEnd(sig os.Signal) int {
	switch n, _ := sig.(syscall.Signal); n {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return int(n)
	}
	return 0
}
