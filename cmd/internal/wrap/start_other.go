//go:build !linux

package wrap

func (s State) close() {}

func onThread(f func() error) error { return f() }
