//go:build !unix

package testkit

// Heed does nothing: there are no signals to heed.
func Heed() {}
