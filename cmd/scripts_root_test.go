//go:build linux

package cmd_test

import (
	"os"
	"testing"
)

// TestFixtureScripts: the acceptance scripts accept what the tools make now.
func TestFixtureScripts(t *testing.T) {
	requireBPF(t)
	for _, script := range []string{"kernel-only-acceptance.sh", "kernel-only-three-run-determinism.sh"} {
		t.Run(script, func(t *testing.T) {
			c := command(t, "sh", "../scripts/"+script)
			c.Env = append(os.Environ(), "BIN="+bin)
			if o := call(t, c); o.code != 0 {
				t.Error(o)
			}
		})
	}
}
