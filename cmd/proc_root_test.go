//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestDenialTouchesNothing: the kernel's record of a request that a policy denies has no operation on what the request
// names, whether it exists or not; that of the same request without a policy has them.
func TestDenialTouchesNothing(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "place"), 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "place", "tool"), []byte("#!/bin/sh\n"), 0o755))
	for _, name := range []string{"tool", "none"} {
		for world, seen := range map[string]bool{"run-os-sandboxed": false, "run-os": true} {
			request := `{"argv":["` + dir + `/place/` + name + `"],"cwd":"` + dir + `/place","caps":{"max_stdout_bytes":9,"max_stderr_bytes":9,"timeout_ms":9000}}`
			encode := command(t, "runner-proc", "encode")
			encode.Stdin = strings.NewReader(request)
			file := filepath.Join(dir, "request")
			testkit.Must(t, os.WriteFile(file, []byte(call(t, encode).stdout), 0o644))
			m := measure(t, nil, "/bin/sh", "-c", tool("runner-proc")+" run --world "+world+" <"+file)
			if denied := m.code == 0 && strings.HasPrefix(m.stdout, "\x00\x01\x00\x00\x00"); denied == seen {
				t.Fatal(world, name, m.outcome)
			}
			o := call(t, command(t, "runner-verify", "--require", "kernel=complete", "--assert", `[.kernel[] | select(.value | contains("`+dir+`/place"))] | length > 0`, m.path))
			if (o.code == 0) != seen {
				t.Errorf("%s, %s: the record has it: %v: %v", world, name, o.code == 0, o)
			}
		}
	}
}
