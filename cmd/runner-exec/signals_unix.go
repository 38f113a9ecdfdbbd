//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// signals is what arrives for the command.
type signals struct {
	c    chan os.Signal
	pipe chan os.Signal
}

var passedOn = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGIO,
}

// watchSignals takes over the signals to pass on. One that was ignored when we
// started is left alone, because that is also how the command inherits it.
// SIGPIPE is caught and dropped, not ignored: the command would inherit that.
func watchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 64), pipe: make(chan os.Signal, 1)}
	for _, sig := range append(passedOn, realTime...) {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	signal.Notify(s.pipe, syscall.SIGPIPE)
	return s
}

func (s *signals) stop() {
	signal.Stop(s.c)
	signal.Stop(s.pipe)
}

// fromTerminal reports whether a signal was most likely sent by the terminal to
// the whole foreground process group. Then the command has it already.
func fromTerminal(sig os.Signal) bool {
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

// terminates is the number of a signal that asks a program to end, else 0.
func terminates(sig os.Signal) int {
	switch n, _ := sig.(syscall.Signal); n {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return int(n)
	}
	return 0
}

func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }
