//go:build linux

package cmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestChains: wrappers work in any order, and the program has what each of them gives and loses what each of them takes.
func TestChains(t *testing.T) {
	testkit.Programs(t, "chains of wrappers", "curl")
	for _, c := range callers(t) {
		s := serve(t, c)
		box := []string{tool("runner-box"), "--"}
		network := slices.Concat([]string{tool("runner-net"), "record"}, s.flags, []string{"--"})
		inBase := slices.Clone(network) // the files of the flags are in the workspace
		for i, a := range inBase {
			inBase[i] = strings.TrimPrefix(a, s.dir+"/")
		}
		script := []string{"sh", "-c", "id -u; pwd; grep -h CapBnd /proc/self/status; curl -sS https://secure.test/count https://x.test/; touch made; env | grep RUNNER_; touch /etc/x"}
		for name, chain := range map[string][]string{"network, box": append(slices.Clone(network), box...), "box, network": append([]string{tool("runner-box"), "--base", s.dir, "--fallback", "copy", "--"}, inBase...), "box, box": append(slices.Clone(box), box...)} {
			cmd := c.net(t, "deny")
			args := slices.Concat(chain, script)
			cmd.Path, cmd.Args = args[0], args
			o := call(t, cmd)
			if name == "box, box" {
				if o.code == 0 || !strings.Contains(o.stdout, "/workspace\nCapBnd:\t0000000000000000\n") {
					t.Errorf("%s, %s: %v", c.name, name, o)
				}
				continue
			}
			want := []string{"/workspace", "CapBnd:\t0000000000000000", "call ", "runner-net: no rule allows GET https://x.test/"}
			for _, w := range want {
				if !strings.Contains(o.stdout, w) {
					t.Errorf("%s, %s: no %q: %v", c.name, name, w, o)
				}
			}
			if o.code == 0 || strings.Contains(o.stdout, "RUNNER_WRAPPERS") || !strings.Contains(o.stderr, "ead-only") {
				t.Errorf("%s, %s: %v", c.name, name, o)
			}
		}
	}
}
