//go:build unix && !linux

package main

func fakeCapture() { die(4, "runner-capture: error: not here") }
