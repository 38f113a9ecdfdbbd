//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestStandardOutputFull: what every tool prints for people, but cannot, is an error that says so.
func TestStandardOutputFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer full.Close()
	var calls [][]string
	for _, tool := range tools {
		calls = append(calls, []string{tool, "--help"}, []string{tool, "-h"}, []string{tool, "--version"})
	}
	const policy = "../testdata/fixtures/policy.yaml"
	log := filepath.Join(t.TempDir(), "log")
	if o := call(t, command(t, "runner-policy", "--policy", policy, "--log", log, "--", "cat")); o.code != 0 {
		t.Fatal(o)
	}
	calls = append(calls, []string{"runner-diff", "--folds"}, []string{"runner-verify", "--rules"}, []string{"runner-policy", "--check", policy},
		[]string{"runner-policy", "--check", policy, "--call", `{"name":"x"}`}, []string{"runner-policy", "--check", policy, "--call", `{"method":"tools/list"}`},
		[]string{"runner-policy", "--suggest", log})
	for _, args := range calls {
		c := command(t, args[0], args[1:]...)
		c.Stdout = full
		want := 5
		if slices.Contains(wrappers, args[0]) {
			want = 125 // all others are the command's
		}
		if o := call(t, c); o.code != want || o.stderr != args[0]+": error: cannot write standard output: no space left on device\n" {
			t.Errorf("%q: %s", args, o)
		}
	}
}
