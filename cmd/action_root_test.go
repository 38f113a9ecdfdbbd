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
		told                          []string
	}{
		{"accepted", "echo hello; touch made", "kernel=complete,drops=0,cgroup=clean", "run=0 verify=0 comment=0", []string{"runner: verified"}},
		{"the command fails", "exit 7", "kernel=complete", "run=7 verify=0 comment=0", []string{"runner: verified"}},
		{"not as demanded", "true", "kernel=absent", "run=0 verify=1 comment=0", []string{"not as demanded", "kernel=absent is required"}},
		{"quotes and dollars", `x='$(exit 9)"'; test "$x" = '$(exit 9)"'`, "kernel=complete", "run=0 verify=0 comment=0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			codes, dir := runSteps(t, map[string]string{"inputs.run": c.command, "inputs.require": c.require, "inputs.policy": "",
				"inputs.archive": "run.tar.gz", "inputs.bin": bin, "inputs.comment": "true", "github.token": "none", "github.event.pull_request.number": "12"})
			if codes != c.codes {
				t.Errorf("%s, expected %s", codes, c.codes)
			}
			openArchive(t, filepath.Join(dir, "run.tar.gz"))
			summary := string(testkit.Read(t, filepath.Join(dir, "summary")))
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
		if s.Uses != "" || s.ID == "build" && values["inputs.bin"] != "" {
			continue
		}
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: an expression in a script is code of whoever wrote its value; pass it in env", s.ID)
		}
		output := filepath.Join(dir, "output-"+s.ID)
		testkit.Write(t, output, nil)
		c := command(t, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		c.Dir = dir
		c.Env = append(c.Env, "PATH="+dir+"/shims:"+os.Getenv("PATH"), "TMPDIR="+dir, "GITHUB_ACTION_PATH="+path,
			"GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+dir+"/summary")
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
		if s.ID == "verify" && len(values["steps.verify.outputs.identity"]) < 64 {
			t.Errorf("no identity: %v", o)
		}
	}
	return codes, dir
}
