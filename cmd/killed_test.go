package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestKilledLeaves: what a tool leaves when SIGKILL ends it in the middle goes with its next start, and what a living one has stays.
func TestKilledLeaves(t *testing.T) {
	for _, x := range []struct {
		tool  string
		args  []string
		place string // where it makes its directory; {d} is an empty one
		name  string
	}{
		{"runner-clock", []string{"--seed", "1", "--start", "2026-01-01T00:00:00Z"}, fmt.Sprintf("/tmp/runner-clock-%d", os.Geteuid()), "run_*.run"},
		{"runner-box", []string{"-o", "{d}/out"}, "{d}", ".runner-record*"},
		{"runner-net", []string{"deny", "-o", "{d}/out"}, "{d}", ".runner-record*"},
	} {
		if o := call(t, command(t, x.tool, "--probe")); o.code != 0 {
			t.Logf("%s does not work here: %s", x.tool, o.stderr)
			continue
		}
		dir := shortDir(t)
		place := strings.ReplaceAll(x.place, "{d}", dir)
		var args []string
		for _, a := range x.args {
			args = append(args, strings.ReplaceAll(a, "{d}", dir))
		}
		have := func() map[string]bool {
			list, err := filepath.Glob(filepath.Join(place, x.name))
			testkit.Must(t, err)
			names := map[string]bool{}
			for _, name := range list {
				names[name] = true
			}
			return names
		}
		began := func(n string) (name string, kill func()) { // a run whose command has begun
			before, mark := have(), filepath.Join(dir, "began"+n)
			for i := range args {
				if args[i] == dir+"/out" {
					args[i] += n
				}
			}
			script := "echo >&2; sleep 60"
			c := command(t, x.tool, append(append([]string{}, args...), "--", "sh", "-c", script)...)
			errw, err := os.Create(mark)
			testkit.Must(t, err)
			c.Stderr = errw
			testkit.Must(t, c.Start())
			errw.Close()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if info, err := os.Stat(mark); err == nil && info.Size() > 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s does not begin", x.tool)
				}
			}
			for at := range have() {
				if !before[at] {
					name = at
				}
			}
			return name, func() { c.Process.Kill(); c.Wait() }
		}
		live, end := began("1")
		dead, kill := began("2")
		kill()
		if live == "" || dead == "" || !testkit.Exists(dead) {
			t.Errorf("%s: it made %q and %q, the second is there: %t", x.tool, live, dead, testkit.Exists(dead))
		}
		next, over := began("3")
		if testkit.Exists(dead) || !testkit.Exists(live) || !testkit.Exists(next) {
			t.Errorf("%s: that of the killed run is there: %t, that of the live one: %t, that of the next one: %t", x.tool, testkit.Exists(dead), testkit.Exists(live), testkit.Exists(next))
		}
		end()
		over()
		if o := call(t, command(t, x.tool, append(append([]string{}, args...), "--", "true")...)); o.code != 0 || testkit.Exists(live) || testkit.Exists(next) {
			t.Errorf("%s: %s", x.tool, o)
		}
	}
}

// TestDeadScratch: each tool that needs scratch files removes those of its dead predecessors.
func TestDeadScratch(t *testing.T) {
	dir := shortDir(t)
	joined, err := filepath.Abs("../testdata/runs/kernel-only/3-joined.ndjson")
	testkit.Must(t, err)
	archive := filepath.Join(dir, "run.tar.gz")
	if o := call(t, command(t, "runner-pack", "-q", "-o", archive, joined)); o.code != 0 {
		t.Fatal(o)
	}
	for name, args := range map[string][]string{
		"runner-gate":      {"runner-gate", "plan", archive, "--policy-exec", "true"},
		"runner-net":       {"runner-net", "replay", archive, "--", "true"},
		"runner-replay":    {"runner-replay", archive},
		"runner-soak-lint": {"runner-soak", "--target", archive},
		"runner-box":       {"runner-box", "--probe"},
	} {
		temp := filepath.Join(dir, name)
		dead := filepath.Join(temp, name+".tmp.17")
		testkit.Must(t, os.MkdirAll(filepath.Join(dead, "deep"), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(dead, "deep", "file"), nil, 0o600))
		c := command(t, args[0], args[1:]...)
		c.Env = append(c.Env, "TMPDIR="+temp)
		if o := call(t, c); testkit.Exists(dead) || len(testkit.Names(t, temp)) > 0 {
			t.Errorf("%q leaves %q: %s", args, testkit.Names(t, temp), o)
		}
	}
}
