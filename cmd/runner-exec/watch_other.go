//go:build unix && !linux

package main

// watch sees nothing here: what is noticed is a name that leads elsewhere at the end.
type watch struct{}

func newWatch(string) (*watch, error) { return &watch{}, nil }

func (w *watch) touched(string) bool { return false }
func (w *watch) close()              {}
