//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBoxCalls: the tool calls of an agent in a box read complete and clean, of root and of somebody else, through runner-policy and
// through runner-proc: their server is found by the numbers that the box has. A plan of runner-gate has no doubt to accept.
func TestBoxCalls(t *testing.T) {
	requireBPF(t)
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/mcp-client", "./testdata/workload/mcp-server"))
	for _, c := range callers(t) {
		for name, agent := range map[string]string{
			"policy": `exec "$1/mcp-client" 'tc_1=write_file={"path":"/workspace/out.txt","content":"said"}' 'tc_2=read_file={"path":"/workspace/agent.sh"}' -- ` +
				`"$1/runner-policy" --policy policy.yaml --name files -- "$1/mcp-server"`,
			"process": `exec "$1/runner-proc" run --world run-os <request`,
		} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				base := callsBase(t)
				testkit.Must(t, os.WriteFile(filepath.Join(base, "agent.sh"), []byte(agent), 0o644))
				encode := command(t, "runner-proc", "encode")
				encode.Stdin = strings.NewReader(`{"argv":["/bin/sh","-c","echo said >out.txt"],"cwd":"/workspace","caps":{"max_stdout_bytes":9,"max_stderr_bytes":9,"timeout_ms":9000}}`)
				testkit.Must(t, os.WriteFile(filepath.Join(base, "request"), []byte(call(t, encode).stdout), 0o644))
				file := filepath.Join(shortDir(t), "run.tar.gz")
				args := []string{"--policy", filepath.Join(base, "policy.yaml"), "--archive", file}
				if !c.own {
					args = append(args, "--user", fmt.Sprintf("%d:%d", c.uid, c.uid))
					for _, name := range append(testkit.Names(t, base), ".") {
						testkit.Must(t, os.Chown(filepath.Join(base, name), int(c.uid), int(c.uid)))
					}
					testkit.Must(t, os.Chmod(filepath.Dir(base), 0o755))
				}
				o := call(t, command(t, "runner-exec", slices.Concat(args, callsChain(base))...))
				if o.code != 0 {
					t.Fatal(o)
				}
				if o := call(t, command(t, "runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean,correlation=clean,policy=present", file)); o.code != 0 {
					t.Error(o)
				}
				policy := filepath.Join(base, "allow.yaml")
				testkit.Must(t, os.WriteFile(policy, []byte(gateAllow), 0o644))
				call(t, command(t, "runner-gate", "plan", file, "--policy", policy, "-o", filepath.Join(base, "plan.json"))).expect(t, 0)
				report := reportOf(t, file)
				if b := report.Bindings; len(b) == 0 || b[0].KernelScope != schemas.ScopeToolServer || !slices.Contains(b[0].KernelEffects, "write /workspace/out.txt") {
					t.Errorf("%+v", report)
				}
			})
		}
	}
}

func reportOf(t *testing.T, file string) (r schemas.Report) {
	t.Helper()
	decode(t, openArchive(t, file).members[schemas.MemberReport], &r)
	return r
}

// togetherAgents is how many agents run at the same time: of so many some have equal numbers, each in its own box.
const togetherAgents = 10

// TestBoxCallsTogether: agents in boxes of one run, whose numbers are the same: each call has what its own server did.
func TestBoxCallsTogether(t *testing.T) {
	requireBPF(t)
	c := callers(t)[0]
	if c.uid != 0 {
		testkit.Missing(t, "boxes within a run", "needs root")
	}
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/mcp-client", "./testdata/workload/mcp-server"))
	base := callsBase(t)
	testkit.Must(t, os.WriteFile(filepath.Join(base, "agent.sh"), []byte(`exec "$1/mcp-client" "tc_$2=write_file={\"path\":\"/workspace/out-$2\",\"content\":\"said\"}" -- `+
		`"$1/runner-policy" --policy policy.yaml --name "files-$2" -- "$1/mcp-server"`), 0o644))
	box := strings.Join(callsChain(base)[4:], " ") // without runner-net
	script := fmt.Sprintf("for i in $(seq %d); do %s $i & done; wait", togetherAgents, box)
	for range 5 {
		dir, err := os.MkdirTemp("/var/lib", "runner-test-") // where a box has what is outside
		testkit.Must(t, err)
		defer os.RemoveAll(dir)
		file, kept := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "kept")
		cmd := command(t, "runner-exec", "--policy", filepath.Join(base, "policy.yaml"), "--keep", kept, "--archive", file, "--", "sh", "-c", script)
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		if o := call(t, cmd); o.code != 0 || strings.Count(o.stdout, "completed written") != togetherAgents {
			t.Fatal(o)
		}
		if o := call(t, command(t, "runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean,correlation=clean", file)); o.code != 0 {
			t.Error(o)
		}
		report := reportOf(t, file)
		for _, b := range report.Bindings {
			if want := "write /workspace/out-" + strings.TrimPrefix(b.ToolCallID, "tc_"); b.KernelScope != schemas.ScopeToolServer || !slices.Equal(b.KernelEffects, []string{want}) {
				t.Errorf("%+v, expected %s", b, want)
			}
		}
		if len(report.Bindings) != togetherAgents {
			t.Errorf("%d calls", len(report.Bindings))
		}
		if t.Failed() || equalNumbers(t, filepath.Join(kept, "policy.log.ndjson")) {
			return
		}
	}
	t.Error("the numbers of no two agents were equal")
}

// equalNumbers reports whether two sessions of a log have the same numbers, in two namespaces.
func equalNumbers(t *testing.T, file string) bool {
	t.Helper()
	type numbers struct{ proxy, server uint32 }
	spaces := map[numbers]map[uint32]bool{}
	for line := range bytes.Lines(testkit.Read(t, file)) {
		l, err := schemas.ParseLogLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			continue
		}
		text, err := schemas.Untext(l.Line)
		testkit.Must(t, err)
		d, err := schemas.ParseDecisionLine([]byte(text))
		if err != nil || d.Started == nil {
			continue
		}
		n := numbers{d.Started.ProxyPID, d.Started.ServerPID}
		if spaces[n] == nil {
			spaces[n] = map[uint32]bool{}
		}
		if spaces[n][d.Started.PIDNS] = true; len(spaces[n]) > 1 {
			return true
		}
	}
	return false
}
