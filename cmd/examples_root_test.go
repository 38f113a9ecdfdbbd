//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestExampleCIGate: the command's failure is the gate's, and so is what the record must not have.
func TestExampleCIGate(t *testing.T) {
	requireBPF(t)
	for _, c := range []struct {
		name, command, told string
		code                int
	}{
		{"quiet", "cat input >output", "run.tar.gz: valid", 0},
		{"the command fails", "exit 7", "", 7},
		{"a key", "mkdir .ssh; echo x >.ssh/id", "ci-gate: what it did", 1},
		{"another machine", `"$0" dial 203.0.113.7:9 || true`, "ci-gate: what it did", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newExample(t, "ci-gate")
			write(t, filepath.Join(e.dir, "input"), "")
			e.run(t, c.code, c.told, "sh", "-c", c.command, tool("listener"))
		})
	}
}

// TestExampleAgent: a call that the policy allows is in order; one that it denies, and that the
// agent then does by itself, is not.
func TestExampleAgent(t *testing.T) {
	requireBPF(t)
	testkit.Must(t, goBuild(bin, nil, "./testdata/workload/mcp-client", "./testdata/workload/mcp-server"))
	e := newExample(t, "mcp-agent")
	input, policy := filepath.Join(e.dir, "input"), filepath.Join(e.dir, "policy.yaml")
	write(t, input, "")
	write(t, policy, "schema: runner.policy.v0\ndefault: deny\nrules:\n  - {id: read, allow: [read_*], args: [{at: $.path, under: "+e.dir+"}]}\n")
	agent, err := filepath.Abs("../testdata/fixtures/mcp-policy-agent.sh")
	testkit.Must(t, err)
	e.run(t, 0, "policy  allowed it by rule read", policy, agent, bin, policy, "read_file", `{"path":"`+input+`"}`)
	output := filepath.Join(e.dir, "output")
	e.run(t, 1, "denied_call_with_kernel_effects", policy, "sh", "-c", `"$@"; echo x >"$0"`, output,
		agent, bin, policy, "write_file", `{"path":"`+output+`","content":"x"}`)
}

// TestExampleService: what a cgroup's process does while it is measured is in the record.
func TestExampleService(t *testing.T) {
	requireBPF(t)
	e, cg := newExample(t, "service"), newCgroup(t)
	wait := start(t, inCgroup(t, cg, command(t, "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 1; cat /etc/hostname; done")))
	defer wait()
	e.run(t, 0, "/etc/hostname", cg, "3")
}

// TestExampleNPM: an install script that reads a key is refused, and the refusal is told.
func TestExampleNPM(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "the installation of npm packages", "npm", "node")
	for _, c := range []struct {
		script, told string
		code         int
	}{
		{"echo x >made", "valid, complete", 0},
		{"cat $HOME/.ssh/id || true", "refused ", 1},
	} {
		e := newExample(t, "npm-install")
		hook, app := filepath.Join(e.dir, "hook"), filepath.Join(e.dir, "app")
		for _, dir := range []string{hook, app, filepath.Join(e.dir, ".ssh")} {
			testkit.Must(t, os.Mkdir(dir, 0o755))
		}
		write(t, filepath.Join(e.dir, ".ssh/id"), "key")
		write(t, filepath.Join(hook, "package.json"), `{"name":"hook","version":"1.0.0","scripts":{"postinstall":"`+c.script+`"}}`)
		write(t, filepath.Join(app, "package.json"), `{"name":"app","version":"1.0.0","private":true}`)
		e.run(t, c.code, c.told, app, "--offline", "--no-audit", "--no-fund", "--install-links", hook)
	}
}

// exampleScript is a script of scripts/examples, in a folder of its own that is also the home.
type exampleScript struct{ script, dir string }

func newExample(t *testing.T, name string) exampleScript {
	t.Helper()
	path, err := filepath.Abs("../scripts/examples/" + name + ".sh")
	testkit.Must(t, err)
	return exampleScript{path, shortDir(t)}
}

// run expects an exit code and a text in the output, and that the archive is valid.
func (e exampleScript) run(t *testing.T, code int, told string, args ...string) {
	t.Helper()
	c := command(t, "sh", append([]string{e.script}, args...)...)
	c.Dir = e.dir
	archive := filepath.Join(e.dir, "run.tar.gz")
	c.Env = append(c.Env, "BIN="+bin, "ARCHIVE="+archive, "HOME="+e.dir, "npm_config_update_notifier=false", "npm_config_cache="+filepath.Join(e.dir, "cache"))
	o := call(t, c)
	if o.code != code || !strings.Contains(o.stdout+o.stderr, told) {
		t.Errorf("expected exit %d and %q: %v", code, told, o)
	}
	openArchive(t, archive)
}

// TestExamplesAreRun: every example is run by a test.
func TestExamplesAreRun(t *testing.T) {
	scripts, err := filepath.Glob("../scripts/examples/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no examples: ", err)
	}
	var tests []byte
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		tests = append(tests, testkit.Read(t, file)...)
	}
	for _, path := range scripts {
		if name := strings.TrimSuffix(filepath.Base(path), ".sh"); !strings.Contains(string(tests), `newExample(t, "`+name+`")`) {
			t.Errorf("no test runs scripts/examples/%s.sh", name)
		}
	}
}
