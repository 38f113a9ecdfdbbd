//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// callsPolicy decides the calls of callsAgent.
const callsPolicy = `schema: runner.policy.v0
default: deny
rules:
- {id: write, allow: write_file}
`

// callsAgent makes two tool calls, of which one is denied, and reports the first as an SDK would.
const callsAgent = `exec sh sdk.sh tc_1 write_file "$1/mcp-client" 'tc_1=write_file={"path":"/workspace/out.txt","content":"said"}' 'tc_2=read_file={"path":"/workspace/agent.sh"}' -- \
	"$1/runner-policy" --policy policy.yaml --name files -- "$1/mcp-server"
`

// callsBase is a workspace with the agent and its policy file.
func callsBase(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"agent.sh": callsAgent, "policy.yaml": callsPolicy, "sdk.sh": string(testkit.Read(t, "../testdata/fixtures/sdk-event-wrapper.sh"))} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// callsChain are all wrappers before the agent, whose programs are where ours are.
func callsChain(base string) []string {
	return []string{"--", tool("runner-net"), "deny", "--", tool("runner-box"), "--base", base, "--fallback", "copy", "--", tool("runner-clock"), "--", "sh", "agent.sh", filepath.Dir(tool("runner-policy"))}
}

// callsArchive is the archive of a run of the agent.
func callsArchive(t *testing.T, flags ...string) string {
	t.Helper()
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	base, file := callsBase(t), filepath.Join(t.TempDir(), "run.tar.gz")
	o := call(t, command(t, "runner-exec", slices.Concat([]string{"--replayable", "--agent-shim", "openai-agents", "--archive", file}, flags, callsChain(base))...))
	if o.code != 0 || !strings.Contains(o.stdout, "tc_1 completed written") || !strings.Contains(o.stdout, "tc_2 tool_error") {
		t.Fatal(o)
	}
	return file
}

// TestReplayCalls: a run with tool calls is replayed by the policy file of its archive, in all wrappers, observed or not; what was decided,
// and what the agent said about itself, is the same to the byte.
func TestReplayCalls(t *testing.T) {
	for name, flags := range map[string][]string{"observed": nil, "not observed": {"--no-kernel"}} {
		t.Run(name, func(t *testing.T) {
			if flags == nil {
				requireBPF(t)
			}
			base := callsBase(t)
			file := callsArchive(t, append(flags, "--policy", filepath.Join(base, "policy.yaml"))...)
			testkit.Must(t, os.RemoveAll(base)) // nothing of it is needed any more
			if o := call(t, command(t, "runner-verify", "--require", "policy="+schemas.DigestOf([]byte(callsPolicy)), file)); o.code != 0 {
				t.Fatal(o)
			}
			then := openArchive(t, file)
			if string(then.members[schemas.BlobMember(schemas.DigestOf([]byte(callsPolicy)))]) != callsPolicy {
				t.Fatal("the archive does not have the policy file")
			}
			again := filepath.Join(t.TempDir(), "again.tar.gz")
			r, o := replay(t, file, "-o", again)
			if o.code != 0 || r.Verdict != "equal" || r.differs("tool calls") || r.differs("agent") {
				t.Fatal(o)
			}
			now := openArchive(t, again)
			for _, member := range []string{"layers/policy.ndjson", "layers/sdk.ndjson", "layers/filesystem.ndjson"} {
				if len(then.members[member]) == 0 || string(then.members[member]) != string(now.members[member]) {
					t.Errorf("%s: %s\nand %s", member, then.members[member], now.members[member])
				}
			}
			if !strings.Contains(string(then.members["layers/policy.ndjson"]), `"decision":"deny"`) {
				t.Errorf("%s", then.members["layers/policy.ndjson"])
			}
			if changes := string(then.members["layers/filesystem.ndjson"]); strings.Count(changes, "\n") != 1 || !strings.Contains(changes, `"path":"out.txt"`) {
				t.Errorf("the logs are a change of the workspace: %s", changes)
			}
		})
	}
}

// TestReplayCallsDrift: another decision, another call and another report are found, each in its layer; a policy file that is not the one
// that decided is refused.
func TestReplayCallsDrift(t *testing.T) {
	base := callsBase(t)
	file := callsArchive(t, "--no-kernel", "--run-id", archivetest.RunID, "--policy", filepath.Join(base, "policy.yaml"))
	swap := func(pairs ...string) func(archivetest.Content) {
		return func(c archivetest.Content) {
			for i := 0; i < len(pairs); i += 3 {
				if !strings.Contains(c[pairs[i]], pairs[i+1]) {
					t.Fatalf("%s has no %s:\n%s", pairs[i], pairs[i+1], c[pairs[i]])
				}
				c[pairs[i]] = strings.ReplaceAll(c[pairs[i]], pairs[i+1], pairs[i+2])
			}
		}
	}
	for name, x := range map[string]struct {
		layer  string
		change func(archivetest.Content)
	}{
		"decision": {"tool calls", swap("layers/policy.ndjson", `"tool":"read_file","decision":"deny"`, `"tool":"read_file","decision":"allow"`, "layers/policy.ndjson", `"outcome":"denied","reason_code":"P_DENY_DEFAULT"`, `"outcome":"completed","reason_code":"P_ALLOW_RULE","rule_id":"read"`,
			"capability-surface.json", `["allow:write_file","deny:read_file"]`, `["allow:read_file","allow:write_file"]`, "correlation-report.json", `"tool_call_id":"tc_2","policy_decision":"deny"`, `"tool_call_id":"tc_2","policy_decision":"allow"`)},
		"target": {"tool calls", swap("layers/policy.ndjson", `/workspace/out.txt`, `/workspace/two.txt`)},
		"report": {"agent", swap("layers/sdk.ndjson", `"sdk_version":"1"`, `"sdk_version":"2"`)},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := replay(t, changed(t, file, x.change))
			if o.code != 1 || r.Verdict != "drifted" || !r.differs(x.layer) {
				t.Fatal(o)
			}
		})
	}
	was := schemas.DigestOf([]byte(callsPolicy))
	fresh := strings.Replace(callsPolicy, "write_file", "read_file", 1)
	is := schemas.DigestOf([]byte(fresh))
	for name, x := range map[string]struct {
		says   string
		change func(archivetest.Content)
	}{
		"bytes": {"blobs/sha256/" + strings.TrimPrefix(was, "sha256:"), func(c archivetest.Content) { c[schemas.BlobMember(was)] = fresh }},
		"file": {"run/env.json: wrapped.documents: policy is " + is + ", a policy line has " + was, func(c archivetest.Content) {
			c[schemas.BlobMember(is)] = fresh
			swap("run/env.json", was, is)(c)
		}},
		"none":   {"wrapped.blobs", func(c archivetest.Content) { swap("run/env.json", was, is)(c) }},
		"length": {"wrapped.blobs", swap("run/env.json", `"policy":{"bytes":`, `"policy":{"bytes":1`)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, o := replay(t, changed(t, file, x.change)); o.code != 3 || !strings.Contains(o.stderr, x.says) {
				t.Fatal(o)
			}
		})
	}
}

// TestReplayCallsNotClosed: without the policy file nothing is run, and the reason is said. The file can be the run's own or one of the workspace.
func TestReplayCallsNotClosed(t *testing.T) {
	own := callsArchive(t, "--no-kernel", "--policy-log", filepath.Join(t.TempDir(), "log"))
	if r, o := replay(t, own); o.code != 0 || r.Verdict != "equal" || r.differs("tool calls") {
		t.Error("a policy file of the workspace: ", o)
	}
	base, file, log := callsBase(t), filepath.Join(t.TempDir(), "run.tar.gz"), filepath.Join(t.TempDir(), "log")
	chain := callsChain(base)
	chain = slices.Insert(chain, slices.Index(chain, "--fallback"), "--base-by-digest")
	if o := call(t, command(t, "runner-exec", slices.Concat([]string{"--no-kernel", "--replayable", "--agent-shim", "openai-agents", "--policy-log", log, "--archive", file}, chain)...)); o.code != 0 {
		t.Fatal(o)
	}
	r, o := replay(t, file, "--base", base)
	if o.code != 4 || r.Verdict != "not_closed" || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "the policy file "+schemas.DigestOf([]byte(callsPolicy))) {
		t.Error(o)
	}
	if r, o := replay(t, file, "--base", base, "--allow-uncontrolled"); o.code != 0 || r.Verdict != "equal" {
		t.Error(o)
	}
}

// TestReplayRules: the rules that a policy file has for all of a run are enforced in the replay too.
func TestReplayRules(t *testing.T) {
	requireBPF(t)
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	dir := t.TempDir()
	policy, file, again := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "again.tar.gz")
	text := "schema: runner.policy.v0\nnetwork:\n  default: allow\n  rules: [{id: no, deny: 127.0.0.9}]\n"
	testkit.Must(t, os.WriteFile(policy, []byte(text), 0o644))
	script := "(exec 3<>/dev/tcp/127.0.0.9/9) 2>&1 | grep -o 'not permitted'"
	if o := call(t, command(t, "runner-exec", "--replayable", "--policy", policy, "--archive", file, "--", tool("runner-net"), "deny", "--", tool("runner-box"), "--", "bash", "-c", script)); o.code != 0 || !strings.HasPrefix(o.stdout, "not permitted") {
		t.Fatal(o)
	}
	testkit.Must(t, os.Remove(policy))
	if r, o := replay(t, file, "-o", again); o.code != 0 || r.Verdict != "equal" {
		t.Fatal(o)
	}
	if o := call(t, command(t, "runner-verify", "--require", "network_policy="+schemas.DigestOf([]byte(text)), again)); o.code != 0 {
		t.Error(o)
	}
}

// TestReplayRootless: all of it works without root, by who recorded it.
func TestReplayRootless(t *testing.T) {
	for _, c := range callers(t) {
		base, out := callsBase(t), c.dir(t)
		as := func(program string, args ...string) outcome {
			cmd := c.box(t)
			cmd.Path, cmd.Args = tool(program), append([]string{program}, args...)
			return call(t, cmd)
		}
		testkit.Must(t, os.Chmod(base, 0o755))
		testkit.Must(t, os.Chmod(filepath.Dir(base), 0o755))
		o := as("runner-exec", slices.Concat([]string{"--no-kernel", "--replayable", "--agent-shim", "openai-agents", "--policy", filepath.Join(base, "policy.yaml"), "--archive", out + "/run.tar.gz"}, callsChain(base))...)
		if o.code != 0 || !strings.Contains(o.stdout, "tc_1 completed written") {
			t.Fatal(c.name, o)
		}
		if o := as("runner-replay", "--runs", "2", out+"/run.tar.gz"); o.code != 0 || !strings.HasPrefix(o.stdout, "equal: 2 of 2 replays\n") || !strings.Contains(o.stdout, "tool calls\n") || !strings.Contains(o.stdout, "agent\n") {
			t.Errorf("%s: %v", c.name, o)
		}
	}
}
