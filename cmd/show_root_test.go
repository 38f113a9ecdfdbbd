//go:build linux

package cmd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestShowProcesses: what runner-show says of the process of an operation, compared with what the programs print of
// themselves and the options of setpriv, unshare and chroot. Arguments that a terminal or browser would act on stay text.
func TestShowProcesses(t *testing.T) {
	requireBPF(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "other users, roots and mount namespaces", "needs root")
	}
	jail := shortDir(t)
	prog, err := os.ReadFile(tool("runner-verify"))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(jail, "prog"), prog, 0o755))
	const hostile = "\x1b[2J\u202e<script>x</script>\n  (mount namespace 7)"
	script := fmt.Sprintf(`cat /etc/hostname '%s' >/dev/null 2>&1
setpriv --reuid 1234 --regid 567 --clear-groups sh -c 'echo $$ $PPID; cat /etc/group >/dev/null; true'
unshare -m sh -c 'echo $$ $PPID; cat /etc/passwd >/dev/null; true'
chroot %s /prog --version >/dev/null`, hostile, jail)
	a, m := record(t, []string{"--argv", "full"}, "sh", "-c", script)
	a.complete(t)
	var user, space, run int
	if _, err := fmt.Sscan(m.stdout, &user, &run, &space, &run); err != nil {
		t.Fatal(m.stdout, err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(call(t, command(t, "runner-show", "--json", m.path)).stdout) {
		var x acts.Act
		testkit.Must(t, json.Unmarshal([]byte(line), &x))
		if p := x.Process; p.Parent != nil && p.UID != nil && p.GID != nil && p.Args != nil && len(p.Unsure) == 0 {
			seen[fmt.Sprintf("%s %s <%d %d:%d %d %s %q", x.Op, x.Path, p.Parent.PID, *p.UID, *p.GID, p.MountNamespace, p.Root, p.Args.Argv)] = true
		}
	}
	for _, want := range []string{
		fmt.Sprintf(`open /etc/group <%d 1234:567 0  ["cat" "/etc/group"]`, user),
		fmt.Sprintf(`open /etc/passwd <%d 0:0 1  ["cat" "/etc/passwd"]`, space),
		fmt.Sprintf(`exec %s/prog <%d 0:0 0 %s ["/prog" "--version"]`, jail, run, jail),
	} {
		if !seen[want] {
			t.Errorf("no operation is %s of %v", want, seen)
		}
	}
	for _, view := range [][]string{nil, {"--tree"}, {"--list"}, {"--html", "-"}} {
		out := call(t, command(t, "runner-show", append(view, m.path)...)).stdout
		if strings.ContainsAny(out, "\x1b\u202e") || len(view) == 2 && strings.Contains(out, "<script>x") {
			t.Errorf("%v has a raw argument", view)
		}
		if !strings.Contains(out, "mount namespace 1") && len(view) != 0 || strings.Contains(out, "Who started whom") {
			t.Errorf("%v lacks the mount namespace or who started whom:\n%s", view, out)
		}
	}
}
