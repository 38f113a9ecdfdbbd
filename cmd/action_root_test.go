//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// step is one step of the GitHub Action.
type step struct {
	ID, If, Shell, Run, Uses string
	Env, With                map[string]string
}

var expression = regexp.MustCompile(`\$\{\{ ([a-z_.]+) \}\}`)

// TestAction runs the steps of the GitHub Action as a job would: each in a shell of its own,
// with the outputs of those before. Only the upload is GitHub's.
func TestAction(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "the steps of the action", "bash")
	for _, c := range []struct {
		name, command, require, codes string
		told                          []string // by the summary
	}{
		{"accepted", "echo hello; touch made", "kernel=complete,drops=0,cgroup=clean", "run=0 verify=0 comment=0", []string{"before\n### runner: verified\n"}},
		{"no record", "true", "no-policy", "run=5", nil},
		{"a line that fails", "false\ntrue", "kernel=complete", "run=1 verify=0 comment=0", nil},
		{"a long report", "true", "long-report", "run=0 verify=0 comment=0", []string{"\n… the rest is in the log of this step"}},
		{"the command fails", "exit 7", "kernel=complete", "run=7 verify=0 comment=0", []string{"runner: verified"}},
		{"not as demanded", "true", "kernel=absent", "run=0 verify=1 comment=0", []string{"not as demanded", "kernel=absent is required"}},
		{"quotes and dollars", `x='$(exit 9)"'; test "$x" = '$(exit 9)"'`, "kernel=complete", "run=0 verify=0 comment=0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy, tools := "", bin
			if c.require == "long-report" { // one that says more than a comment can have
				tools = shortDir(t)
				testkit.Must(t, os.CopyFS(tools, os.DirFS(bin)))
				testkit.Must(t, os.Rename(filepath.Join(tools, "runner-verify"), filepath.Join(tools, "verify")))
				write(t, filepath.Join(tools, "runner-verify"), "#!/bin/sh\n[ \"$1\" != --json ] || exec "+tools+"/verify \"$@\"\nseq 20000\n")
			}
			if c.require == "no-policy" {
				policy = "no-such.yaml"
			}
			codes, dir := runSteps(t, map[string]string{"inputs.run": c.command, "inputs.require": c.require, "inputs.policy": policy,
				"inputs.archive": "run.tar.gz", "inputs.bin": tools, "inputs.comment": "true", "github.token": "none", "github.event.pull_request.number": "12"})
			if codes != c.codes {
				t.Errorf("%s, expected %s", codes, c.codes)
			}
			if policy != "" {
				return
			}
			openArchive(t, filepath.Join(dir, "run.tar.gz"))
			summary := string(testkit.Read(t, filepath.Join(dir, "summary-verify")))
			if len(summary) > 65536 { // characters of a comment
				t.Errorf("the comment has %d bytes", len(summary))
			}
			for _, text := range c.told {
				if !strings.Contains(summary, text) {
					t.Errorf("the summary does not say %q:\n%s", text, summary)
				}
			}
			if said := string(testkit.Read(t, filepath.Join(dir, "gh"))); !strings.Contains(said, "pr comment 12 ") {
				t.Errorf("gh was called so: %s", said)
			}
		})
	}
}

// runSteps runs the steps of the action and returns their exit codes and the job's folder.
func runSteps(t *testing.T, values map[string]string) (codes, dir string) {
	t.Helper()
	const folder = "../scripts/action"
	var action struct{ Runs struct{ Steps []step } }
	testkit.Must(t, yaml.Unmarshal(testkit.Read(t, folder+"/action.yml"), &action))
	path, err := filepath.Abs(folder)
	testkit.Must(t, err)
	dir = shortDir(t)
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "shims"), 0o755))
	write(t, filepath.Join(dir, "shims/sudo"), "#!/bin/sh\n[ \"$1\" = -E ] && shift\nexec \"$@\"\n")
	write(t, filepath.Join(dir, "shims/gh"), "#!/bin/sh\necho \"$@\" >>'"+dir+"/gh'\n")
	for _, s := range action.Runs.Steps {
		if s.Uses != "" && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(s.Uses) {
			t.Errorf("step %s: %s is not pinned by a commit: a tag can be moved", s.ID, s.Uses)
		}
		if !holds(t, s.If, values, codes) || s.Uses != "" {
			continue
		}
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: an expression in a script is code of whoever wrote its value; pass it in env", s.ID)
		}
		output := filepath.Join(dir, "output-"+s.ID)
		testkit.Write(t, output, nil)
		testkit.Write(t, filepath.Join(dir, "summary-"+s.ID), []byte("before\n"))
		testkit.Write(t, filepath.Join(dir, s.ID+".sh"), []byte(s.Run+"\n"))
		c := command(t, "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", filepath.Join(dir, s.ID+".sh"))
		c.Dir = dir
		c.Env = append(c.Env, "PATH="+dir+"/shims:"+os.Getenv("PATH"), "TMPDIR="+dir, "GITHUB_ACTION_PATH="+path,
			"GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+dir+"/summary-"+s.ID,
			"CI=true", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+dir, "RUNNER_TEMP="+dir, "RUNNER_OS=Linux", "RUNNER_NAME=test", "RUNNER_ARCH=X64")
		for name, value := range s.Env {
			c.Env = append(c.Env, name+"="+expression.ReplaceAllStringFunc(value, func(e string) string {
				v, ok := values[expression.FindStringSubmatch(e)[1]]
				if !ok {
					t.Errorf("step %s: nothing gives %s", s.ID, e)
				}
				return v
			}))
		}
		o := call(t, c)
		codes = strings.TrimSpace(codes + " " + s.ID + "=" + string(rune('0'+o.code%10)))
		if o.code > 9 {
			t.Errorf("step %s: %v", s.ID, o)
		}
		for line := range strings.Lines(string(testkit.Read(t, output))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values["steps."+s.ID+".outputs."+name] = value
		}
		if lines := strings.Split(strings.TrimSpace(o.stdout), "\n"); s.ID == "verify" && (len(lines) < 3 || len(lines[0]) != len("::stop-commands::")+32 || lines[len(lines)-1] != "::"+strings.TrimPrefix(lines[0], "::stop-commands::")+"::") {
			t.Errorf("names can be commands of the job's log: %v", o)
		}
		if s.ID == "verify" && len(values["steps.verify.outputs.identity"]) < 64 {
			t.Errorf("no identity: %v", o)
		}
	}
	return codes, dir
}

// holds evaluates the condition of a step, after steps with these exit codes.
func holds(t *testing.T, condition string, values map[string]string, codes string) bool {
	t.Helper()
	failed := strings.Trim(regexp.MustCompile(`[a-z]+=0`).ReplaceAllString(codes, ""), " ") != ""
	if !strings.Contains(condition, "always()") && failed {
		return false
	}
	for part := range strings.SplitSeq(condition, " && ") {
		m := regexp.MustCompile(`^([a-z_.]+) (==|!=) '([a-z]*)'$`).FindStringSubmatch(part)
		switch {
		case part == "" || part == "always()":
		case m == nil:
			t.Errorf("the condition %q is not one that this test knows", condition)
		case (values[m[1]] == m[3]) != (m[2] == "=="):
			return false
		}
	}
	return true
}
