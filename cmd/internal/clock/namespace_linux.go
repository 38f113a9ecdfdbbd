package clock

import (
	"os"
	"strings"
)

// Shifted reports whether CLOCK_MONOTONIC differs from the clock of the kernel events.
// This is so in a time namespace with an offset.
func Shifted() bool {
	b, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return false // a kernel without time namespaces
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[0] == "monotonic" || f[0] == "1") {
			return f[1] != "0" || f[2] != "0"
		}
	}
	return false
}
