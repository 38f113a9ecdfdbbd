//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const nobody = 65534

// TestReadmeCommands runs every $ block of the README and of CONTRIBUTING, in order, in a copy
// of the tree, and expects the output in the block.
func TestReadmeCommands(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "the README's commands", "make", "setcap", "setpriv")
	tree, shims := copyOfTree(t), shortDir(t)
	write(t, filepath.Join(tree, "agent.sh"), "#!/bin/sh\ncat README.md >/dev/null\n")
	write(t, filepath.Join(shims, "sudo"), "#!/bin/sh\nexec \"$@\"\n")
	// Like systemd-run, this gives a user a delegated cgroup.
	write(t, filepath.Join(shims, "systemd-run"), `#!/bin/sh
[ "$1 $2 $3 $4" = "--user --scope -p Delegate=yes" ] || exit 9
shift 4
echo $$ >`+delegated(t)+`/cgroup.procs || exit 9
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
`)
	for _, b := range append(blocksOf(t, "../README.md"), blocksOf(t, "../.github/CONTRIBUTING.md")...) {
		t.Run(fmt.Sprintf("%s line %d", filepath.Base(b.file), b.line), func(t *testing.T) {
			script := "set -e\n" + strings.Join(b.commands, "\n") + "\n"
			// This is make test: it must not start again.
			script = strings.ReplaceAll(script, "make test ", "make -n test ")
			if unit := "/sys/fs/cgroup/system.slice/x.service"; strings.Contains(script, unit) {
				cg := newCgroup(t)
				wait := start(t, inCgroup(t, cg, command(t, "sleep", "3")))
				defer wait()
				script = strings.ReplaceAll(script, unit, cg)
			}
			c := command(t, "sh", "-c", script)
			c.Dir = tree
			c.Env = append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "TMPDIR=/tmp")
			o := call(t, c)
			if o.code != 0 {
				t.Fatalf("%s\n%v", script, o)
			}
			rest := o.stdout
			for _, want := range b.output {
				_, after, ok := strings.Cut(rest, want+"\n")
				if !ok {
					t.Errorf("%s shows %q: %v", b.file, want, o)
				}
				rest = after
			}
		})
	}
}

// TestDemoReplay: without privileges make demo says that it replays a recorded run, and
// makes an archive that verifies.
func TestDemoReplay(t *testing.T) {
	tree := shortDir(t)
	for _, dir := range []string{"scripts", "testdata/runs"} {
		if err := os.CopyFS(filepath.Join(tree, dir), os.DirFS("../"+dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bin, filepath.Join(tree, "bin")); err != nil {
		t.Fatal(err)
	}
	c := command(t, "sh", filepath.Join(tree, "scripts/demo.sh"))
	c.Env = append(os.Environ(), "TMPDIR=/tmp")
	if os.Geteuid() == 0 {
		if err := os.Chown(tree, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	o := call(t, c)
	if o.code != 0 {
		t.Error(o)
	}
	for _, want := range []string{"A REPLAY, NOT A REAL RUN", "demo-run.tar.gz: valid", "\nexecuted  /usr/bin/env\n", "demo-run.tar.gz: valid, complete\ncommand    ", "\nexecuted   ", "policy  denied it"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("make demo does not print %q: %v", want, o)
		}
	}
}

// block is one indented block of a document that begins with a command.
type block struct {
	file             string
	line             int
	commands, output []string
}

func blocksOf(t *testing.T, file string) []block {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	inside, fenced := false, false
	for i, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		text, indented := strings.CutPrefix(l, "    ")
		if !indented {
			inside = false
			continue
		}
		if !inside {
			blocks = append(blocks, block{file: file, line: i + 1})
		}
		inside = true
		last := &blocks[len(blocks)-1]
		if command, ok := strings.CutPrefix(text, "$ "); ok {
			last.commands = append(last.commands, command)
		} else {
			last.output = append(last.output, text)
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s shows no command", file)
	}
	return blocks
}

// copyOfTree is a copy of the sources that the user nobody can write to.
func copyOfTree(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); n == ".git" || n == "bin" || strings.HasSuffix(n, ".tar.gz") {
			continue
		}
		if out, err := exec.Command("cp", "-R", filepath.Join("..", e.Name()), dir).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// delegated is a cgroup that belongs to the user nobody.
func delegated(t *testing.T) string {
	t.Helper()
	outer := newCgroup(t)
	inner := filepath.Join(outer, "shell")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{outer, inner} {
		for _, f := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
			if err := os.Chown(filepath.Join(d, f), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	return inner
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestReadmeTools: the table of tools says the same as each tool's help.
func TestReadmeTools(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
	for _, name := range tools {
		_, row, ok := bytes.Cut(readme, []byte("\n| "+name+" "))
		if !ok {
			t.Errorf("the table of tools lacks %s", name)
			continue
		}
		row, _, _ = bytes.Cut(row, []byte("\n"))
		says := words(strings.Trim(string(row), "| "))
		o := call(t, command(t, name, "--help"))
		if o.code != 0 || !strings.Contains(words(o.stdout), says) {
			t.Errorf("%s --help does not say %q: %v", name, says, o)
		}
		if n := strings.Count(strings.TrimSpace(o.stdout), "\n") + 1; n > 30 {
			t.Errorf("%s --help has %d lines, the limit is 30", name, n)
		}
	}
}
