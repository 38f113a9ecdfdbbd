package cmd_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A flag that a tool does not have is refused with the nearest one that it has: every long flag of every
// tool with a letter too many.
func TestNearestFlags(t *testing.T) {
	for _, tool := range tools {
		for _, flag := range flagsOf(t, tool) {
			if len(flag) < 4 {
				continue // other short names can be as near
			}
			typed := "--" + flag[:2] + flag[1:]
			o := call(t, command(t, tool, typed))
			want := 2
			if slices.Contains(wrappers, tool) {
				want = 125 // all others are the command's
			}
			if o.code != want || o.stdout != "" || !strings.Contains(o.stderr, "there is no flag "+typed+"\n") || !strings.Contains(o.stderr, "did you mean --"+flag+"?") {
				t.Errorf("%s %s: %v", tool, typed, o)
			}
		}
	}
}

// A key that a record does not have is refused with the nearest one that it has, before the archive is read.
func TestNearestKeys(t *testing.T) {
	for typed, meant := range map[string]string{".kernl": ".kernel", ".polcy | length > 0": ".policy", ".surfaces.x": ".surface", "[.healt] | all": ".health"} {
		o := call(t, command(t, "runner-verify", "--assert", typed, filepath.Join(t.TempDir(), "none.tar.gz")))
		if o.code != 2 || !strings.Contains(o.stderr, "did you mean "+meant+"?") {
			t.Errorf("--assert %q: %v", typed, o)
		}
	}
	o := call(t, command(t, "runner-verify", "--require", "network_polcy=none", "none.tar.gz"))
	if o.code != 2 || !strings.Contains(o.stderr, "did you mean network_policy?") {
		t.Error(o)
	}
}
