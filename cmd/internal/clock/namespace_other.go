//go:build !linux

package clock

// Shifted is false: there are no kernel events on this system.
func Shifted() bool { return false }
