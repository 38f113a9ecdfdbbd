//go:build linux

package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTimesOnTheKernel: times differ from run to run, and without them every run has
// the identity that the same command has when nobody asked for times.
func TestTimesOnTheKernel(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	without := regexp.MustCompile(`identity_without_times=(sha256:[0-9a-f]{64})`)
	seen := map[string]bool{}
	var identity string
	for i, times := range []bool{false, true, true, true} {
		path := filepath.Join(dir, "run.tar.gz")
		args := []string{"-v", "--run-id", "times", "--canonical-pids", "--archive", path}
		if times {
			args = append(args, "--times")
		}
		work := filepath.Join(dir, "out")
		o := call(t, command(t, "runner-exec", append(args, "--", "sh", "-c", "cat /etc/passwd >"+work+"; ls /etc >/dev/null; rm "+work)...))
		if o.code != 0 {
			t.Fatal(o)
		}
		v := call(t, command(t, "runner-verify", "--json", "--require", "kernel=complete,drops=0", path))
		var r struct {
			Identity string `json:"identity"`
			Without  string `json:"identity_without_times"`
		}
		if err := json.Unmarshal([]byte(v.stdout), &r); err != nil || v.code != 0 {
			t.Fatal(v, err)
		}
		if !times {
			identity = r.Identity
			if r.Without != "" || strings.Contains(o.stderr, "without_times") {
				t.Errorf("without --times: %v, %s", r, o.stderr)
			}
			continue
		}
		m := without.FindStringSubmatch(o.stderr)
		if r.Without != identity || m == nil || m[1] != identity || r.Identity == identity || seen[r.Identity] {
			t.Errorf("run %d: identity %s, without times %s and %q, expected %s", i, r.Identity, r.Without, m, identity)
		}
		seen[r.Identity] = true
	}
}
