//go:build !linux

package main

// writable has nothing to ask: nothing is committed here.
func writable(string) error { return nil }
