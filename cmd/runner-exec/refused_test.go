package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestNotStarted: who forbade the command by a policy file is told which rule does it.
func TestNotStarted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(dir+"/program", nil, 0o755))
	testkit.Must(t, os.Symlink("program", dir+"/link"))
	rule := func(on string) *schemas.FileRules {
		return &schemas.FileRules{FilesDefault: "allow", ExecDefault: "allow",
			Rules: []schemas.FileRule{{Number: 1, ID: "mine", Action: "deny", Path: schemas.Text(dir + "/program"), On: []string{on}}}}
	}
	for _, c := range []struct {
		rules *schemas.FileRules
		why   error
		hint  string
	}{
		{nil, fs.ErrPermission, ""},
		{rule("exec"), fs.ErrNotExist, ""},
		{rule("exec"), fs.ErrPermission, "rule mine in p.yaml denies to exec " + dir + "/program"},
		{rule("read"), fs.ErrPermission, "rule mine in p.yaml denies to read " + dir + "/program"},
		{rule("write"), fs.ErrPermission, "p.yaml allows to execute " + dir + "/program: if a rule is the reason"},
		{&schemas.FileRules{FilesDefault: "allow", ExecDefault: "deny"}, fs.ErrPermission, "the default of exec in p.yaml denies to exec " + dir + "/program"},
	} {
		o := Options{Policy: "p.yaml", Files: c.rules}
		err := o.notStarted(&child.Failure{Name: "link", Code: tool.ExitCannotRun, Why: c.why}, dir+"/link")
		var coded *tool.Error
		if !errors.As(err, &coded) || coded.Code != tool.ExitCannotRun || !strings.HasPrefix(err.Error(), "link: cannot run: ") {
			t.Errorf("%q: %v", c.hint, err)
			continue
		}
		if all := strings.Join(coded.Hints, "\n"); !strings.HasPrefix(all, c.hint) || (c.hint == "") != (all == "") || c.hint != "" && !strings.HasSuffix(all, "runner-policy --check p.yaml") {
			t.Errorf("expected %q, have %q", c.hint, all)
		}
	}
}
