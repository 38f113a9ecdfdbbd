// Package modules says which security modules a kernel has, so that a test of one that is
// there cannot be skipped.
package modules

import (
	"os"
	"slices"
	"strings"
)

// Has reports whether the kernel says that a module is active. Without securityfs it is not
// known.
func Has(name string) bool {
	b, _ := os.ReadFile("/sys/kernel/security/lsm")
	return slices.Contains(strings.Split(strings.TrimSpace(string(b)), ","), name)
}
