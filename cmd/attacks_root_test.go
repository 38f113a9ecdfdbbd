//go:build linux

package cmd_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestAttacks: of the attempts to get a false record, all that do not succeed by chance.
// None leads to a record that passes for whole and is wrong, but those that are named as open.
func TestAttacks(t *testing.T) {
	requireBPF(t)
	testkit.Must(t, goBuild(bin, nil, "./testdata/attacks"))
	o := call(t, commandFor(t, 15*time.Minute, "attacks", "check", bin, "--sure")) // half a minute, if no other test wants the machine
	if o.stderr != "" {
		t.Log(strings.TrimSpace(o.stderr))
	}
	if strings.Contains(o.stderr, "is not alone") {
		t.Error("an attack that spoils the record of others must be alone")
	}
	tried := 0
	for line := range strings.Lines(o.stdout) {
		var l struct{ Attack, Result, Detail, Open string }
		testkit.Must(t, json.Unmarshal([]byte(line), &l))
		switch tried++; {
		case l.Result == "not here":
			testkit.Note(t, "attack "+l.Attack, l.Detail)
		case l.Result == "LIE" && l.Open != "":
			t.Logf("open: %s: %s (%s)", l.Attack, l.Open, l.Detail)
		case l.Result != "exact" && l.Result != "declared":
			t.Errorf("%s: %s, %s", l.Attack, l.Result, l.Detail)
		}
	}
	if o.code != 0 || tried < 4 {
		t.Errorf("%d attacks were tried: %v", tried, o)
	}
}

// TestDiffer: what strace saw of random programs is what the record has of them, but for
// differences that a rule explains.
func TestDiffer(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "an independent witness of random programs", "strace")
	testkit.Must(t, goBuild(bin, nil, "./testdata/attacks"))
	if o := call(t, commandFor(t, 15*time.Minute, "attacks", "differ", bin, "30000")); o.code != 0 {
		t.Error(o)
	} else {
		t.Log(strings.TrimSpace(o.stdout))
	}
	for _, bad := range [][]string{{"1e6"}, {"0"}, {"1", "x"}} { // which would compare nothing
		if o := call(t, command(t, "attacks", append([]string{"differ", bin}, bad...)...)); o.code != 2 || o.stdout != "" {
			t.Errorf("%q: %v", bad, o)
		}
	}
}
