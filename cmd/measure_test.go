package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// measured is one run under runner-exec.
type measured struct {
	outcome
	path string // of the archive
	dir  string // the directory of the archive
	tmp  string // TMPDIR of the run
}

// measuring prepares a run: flags go to runner-exec, argv is the command. The archive and
// every temporary file are in one directory, so that a test sees what is left.
func measuring(t *testing.T, flags []string, argv ...string) (*exec.Cmd, *measured) {
	t.Helper()
	dir := shortDir(t)
	m := &measured{dir: dir, path: filepath.Join(dir, "run.tar.gz"), tmp: filepath.Join(dir, "tmp")}
	if err := os.Mkdir(m.tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--archive", m.path}, flags...)
	c := command(t, "runner-exec", append(append(args, "--"), argv...)...)
	c.Env = append(c.Env, "TMPDIR="+m.tmp)
	return c, m
}

func measure(t *testing.T, flags []string, argv ...string) *measured {
	t.Helper()
	c, m := measuring(t, flags, argv...)
	m.outcome = call(t, c)
	return m
}

// record measures a command that must succeed and returns its archive.
func record(t *testing.T, flags []string, argv ...string) (*archive, *measured) {
	t.Helper()
	m := measure(t, flags, argv...)
	if m.code != 0 {
		t.Fatalf("runner-exec -- %s: %v", strings.Join(argv, " "), m.outcome)
	}
	return openArchive(t, m.path), m
}

// workload measures a workload and compares what it printed with what was recorded.
func workload(t *testing.T, flags []string, argv ...string) *archive {
	t.Helper()
	argv[0] = tool(argv[0])
	a, m := record(t, flags, argv...)
	a.complete(t)
	made := madeBy(t, m.stdout)
	made = append(made, expect.Exec(argv[0]))
	compare(t, made, a.lines)
	return a
}
