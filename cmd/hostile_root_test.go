//go:build linux

package cmd_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestHostile: of each sort of attack by root inside of the cgroup one. None leads to a record
// that claims to be whole and is not, and an ordinary container makes no record doubtful.
func TestHostile(t *testing.T) {
	requireBPF(t)
	testkit.Must(t, goBuild(bin, nil, "./testdata/hostile"))
	o := call(t, command(t, "hostile", "check", bin, "--gentle", "--short"))
	tried := 0
	for line := range strings.Lines(o.stdout) {
		var l struct{ Attack, Result, Outcome, Detail string }
		testkit.Must(t, json.Unmarshal([]byte(line), &l))
		if tried++; l.Result != "ok" {
			t.Errorf("%s: %s, %s", l.Attack, l.Outcome, l.Detail)
		}
	}
	if o.code != 0 || tried < 8 {
		t.Errorf("%d attacks were tried: %v", tried, o)
	}
}
