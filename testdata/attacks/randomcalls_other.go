//go:build linux && !amd64

package main

// oldCall: this architecture has no such calls.
func (a *actor) oldCall() {}
