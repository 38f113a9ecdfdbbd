package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestEngineTold: a command that is a container engine is told of before it starts, whatever
// name leads to it, and only where there is something to lose.
func TestEngineTold(t *testing.T) {
	dir := t.TempDir()
	engine, name := filepath.Join(dir, "crun"), filepath.Join(dir, "runtime")
	testkit.Must(t, os.WriteFile(engine, nil, 0o755))
	testkit.Must(t, os.Symlink(engine, name))
	for _, c := range []struct {
		kernel  bool
		program string
		args    string
		told    bool
	}{
		{true, engine, "run c1", true},
		{true, name, "run c1", true},
		{true, engine, "--cgroup-manager=disabled run c1", false},
		{true, engine, "list", false},
		{true, dir, "run c1", false},
		{false, engine, "run c1", false},
	} {
		var said bytes.Buffer
		o := Options{Kernel: c.kernel, Command: append([]string{"x"}, strings.Fields(c.args)...)}
		o.tellEngine(c.program, &tool.Env{Stderr: &said, Name: "runner-exec"})
		if got := said.String(); strings.Contains(got, "crun --cgroup-manager=disabled run") != c.told || strings.Count(got, "\n") > 1 {
			t.Errorf("%s %s, kernel %v: %q", c.program, c.args, c.kernel, got)
		}
	}
}
