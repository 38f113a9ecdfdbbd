//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// olderChecks load the probes as kernels do that no archive carries.
var olderChecks = []check{
	{"as-5.17-to-6.1", false, func(m *machine) (string, error) { return loadedWithout(m, schemas.LoadCast) }},
	{"as-5.15-and-5.16", true, func(m *machine) (string, error) { return loadedWithout(m, schemas.LoadCast, schemas.LoadLoop) }},
}

// loadedWithout makes one marked event of each kind while the probes do without parts of
// the kernel. The record must be as exact as with them.
func loadedWithout(m *machine, parts ...string) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	r, skips, err := m.workload([]string{"--without", strings.Join(parts, ",")}, append([]string{"kinds", m.dir()}, groups...)...)
	if r != nil && r.code == 4 {
		return "", fmt.Errorf("refused: %s", r.stderr)
	}
	if err != nil {
		return "", err
	}
	loaded := r.health.Facts[schemas.FactLoaded]
	for _, p := range parts {
		if !strings.Contains(loaded, "without "+p) {
			return "", fmt.Errorf("%s is used: %s", p, loaded)
		}
	}
	return kindsDetail(r) + skipped(skips), nil
}
