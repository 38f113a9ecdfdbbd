//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestLayers: a layer that could not be recorded, and a rule that nothing would enforce,
// are refused before anything runs.
func TestLayers(t *testing.T) {
	tools := script(t, "tools.yaml", "schema: runner.policy.v0\ndefault: deny\n", 0o644)
	network := script(t, "network.yaml", "schema: runner.policy.v0\nnetwork:\n  default: deny\n", 0o644)
	files := script(t, "files.yaml", "schema: runner.policy.v0\nexec: {default: deny}\n", 0o644)
	magic := script(t, "magic.yaml", "schema: runner.policy.v0\nfiles: {rules: [{id: a, deny: /proc/self/root}]}\n", 0o644)
	fifo := filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, syscall.Mkfifo(fifo, 0o600))
	broken := script(t, "broken.yaml", "schema: runner.policy.v0\nrules: 7\n", 0o644)
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--policy", "no/such/file"}, 5, "there is no policy file no/such/file"},
		{[]string{"--policy", ""}, 2, "--policy \"\": expected a name"},
		{[]string{"--policy", broken}, 3, "error: " + broken + ":2:8: "},
		{[]string{"--policy", network}, 4, "network rules, but without a kernel layer nothing enforces them"},
		{[]string{"--policy", files}, 4, "file rules, but without a kernel layer nothing enforces them"},
		{[]string{"--policy", magic}, 4, "cannot enforce here: " + magic + ": rule a: path /proc/self/root: a symlink in it"},
		{[]string{"--sdk-log", "s"}, 2, "--agent-shim openai-agents --sdk-log s"},
		{[]string{"--agent-shim", "none", "--sdk-log", "s"}, 2, "needs --agent-shim"},
		{[]string{"--agent-shim", "openai_agents"}, 2, "expected none or openai-agents"},
		{[]string{"--stream", "raw", "--policy", tools}, 2, "--policy-log FILE"},
		{[]string{"--stream", "raw", "--agent-shim", "openai-agents"}, 2, "--sdk-log FILE"},
		{[]string{"--stream", "raw", "--intents"}, 2, "--intents-log FILE"},
		{[]string{"--policy-log", "f", "--agent-shim", "openai-agents", "--sdk-log", "f"}, 2, "name the same file f"},
		{[]string{"--archive", "f", "--policy-log", "f"}, 2, "name the same file f"},
		{[]string{"--policy-log", "no/such/dir/log"}, 125, "no/such/dir"},
		{[]string{"--policy-log", fifo}, 125, "neither a regular file nor a character device"},
	} {
		r := call(t, append(append([]string{"--no-kernel"}, c.args...), "--", "touch", "ran")...)
		if r.code != c.code || !strings.Contains(r.stderr, c.stderr) || strings.Count(r.stderr, "error:") != 1 || r.stdout != "" {
			t.Errorf("%q: expected %d and %q, got %v", c.args, c.code, c.stderr, r)
		}
		if rest := leftovers(t, r.dir); len(rest) > 0 {
			t.Errorf("%q: not removed: %q", c.args, rest)
		}
	}
	r := call(t, "--no-kernel", "--stream", "raw", "--policy", tools, "--policy-log", "log", "--", "sh", "-c", "echo 1 >>$"+schemas.EnvPolicyLog)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("schema: runner.policy.v0\ndefault: deny\n")))
	if log := readLog(t, filepath.Join(r.dir, "log"), "policy.log"); r.code != 0 || len(log.lines) != 1 || log.health.Facts["policy_digest"] != digest {
		t.Errorf("%v, %v", r, log)
	}
}
