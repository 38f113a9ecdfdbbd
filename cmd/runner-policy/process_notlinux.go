//go:build !linux

package main

// awaitExit returns when the process has ended. Here that reaps it.
func (s *server) awaitExit() { s.state, _ = s.process.Wait() }
