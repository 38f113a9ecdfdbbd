//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// processesOf are the lines of the layer process.
func processesOf(t *testing.T, a *archive) (list []*schemas.ProcessEvent) {
	t.Helper()
	for line := range bytes.Lines(a.members[schemas.MemberProcess]) {
		p, err := schemas.ParseProcessEvent(bytes.TrimSpace(line))
		testkit.Must(t, err)
		list = append(list, p)
	}
	return list
}

// TestProcesses: who a process is, where its names lead and what it was started with, compared with what the
// programs themselves say of it: id(1), /proc/PID/cmdline, and the options of setpriv, chroot and unshare.
func TestProcesses(t *testing.T) {
	requireBPF(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "other users, roots and mount namespaces", "needs root")
	}
	jail := shortDir(t)
	prog, err := os.ReadFile(tool("runner-verify"))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(jail, "prog"), prog, 0o755))
	script := fmt.Sprintf(`cat /proc/self/cmdline '%s' 2>/dev/null
echo; setpriv --reuid 1234 --regid 567 --clear-groups sh -c 'id -u; id -g'
chroot %s /prog --version >/dev/null
unshare -m chroot %s /prog --version >/dev/null`, "a\xff\n\\b", jail, jail)
	a, m := record(t, []string{"--argv", "full"}, "sh", "-c", script)
	a.complete(t)
	cmdline, ids, _ := strings.Cut(m.stdout, "\n1234\n")
	if ids != "567\n" {
		t.Fatalf("id says %q", m.stdout)
	}
	var told []string
	for _, arg := range strings.SplitAfter(strings.TrimSuffix(cmdline, "\n"), "\x00") {
		if arg, whole := strings.CutSuffix(arg, "\x00"); whole {
			told = append(told, schemas.Text(arg))
		}
	}
	seen := map[string]schemas.ProcessState{}
	list := processesOf(t, a)
	for _, p := range list {
		for _, s := range p.States {
			if s.By == schemas.StateExec {
				seen[fmt.Sprintf("%s %d:%d %d %s", filepath.Base(s.File), *s.UID, *s.GID, s.MountNamespace, s.Root)] = s
			}
		}
	}
	for _, want := range []string{"cat 0:0 0 ", "setpriv 0:0 0 ", "id 1234:567 0 ", "prog 0:0 0 " + jail, "chroot 0:0 1 ", "prog 0:0 1 " + jail} {
		s, there := seen[want]
		if !there {
			t.Errorf("no state is %q of %v", want, seen)
		}
		if strings.HasPrefix(want, "cat") && strings.Join(s.Arguments.Argv, " ") != strings.Join(told, " ") {
			t.Errorf("arguments %q, /proc/self/cmdline says %q", s.Arguments.Argv, told)
		}
	}
	if list[0].Parent != 0 || list[1].Parent != 1 || len(list[0].States) != 1 {
		t.Errorf("the shell and its first child are %+v and %+v", list[0], list[1])
	}
}

// TestArguments: secrets are neither in the archive nor in a stream; more arguments than are read are counted.
func TestArguments(t *testing.T) {
	requireBPF(t)
	const secret = "Zx81-secret"
	key := filepath.Join(shortDir(t), "key")
	testkit.Must(t, os.WriteFile(key, []byte(strings.Repeat("0b", 32)+"\n"), 0o600))
	for _, flags := range [][]string{nil, {"--argv", "none"}, {"--argv", "full"}, {"--argv-key", key}, {"--argv", "full", "--argv-key", key}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			keep := filepath.Join(shortDir(t), "kept")
			a, _ := record(t, append(flags, "--keep", keep), "env", "DB_PASSWORD="+secret, "true", "--token", secret, "https://me:"+secret+"@h/")
			a.complete(t)
			kept, err := filepath.Glob(keep + "/*")
			if err != nil || len(kept) == 0 {
				t.Fatal(kept, err)
			}
			for _, file := range kept {
				b, err := os.ReadFile(file)
				testkit.Must(t, err)
				a.members[file] = b
			}
			for name, b := range a.members {
				if bytes.Contains(b, []byte(secret)) {
					t.Errorf("%s has the secret", name)
				}
			}
		})
	}
	a, _ := record(t, []string{"--argv", "full"}, "true", strings.Repeat("x", 5000), strings.Repeat("y", 5000))
	last := processesOf(t, a)[0].States[0].Arguments
	if last.Count != 2 || last.Bytes != 5+2*5001 || last.Unread != 5001 {
		t.Errorf("%d arguments, %d bytes, %d not read", last.Count, last.Bytes, last.Unread)
	}
}
