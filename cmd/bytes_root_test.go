//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// emptied removes what a run made, so that the next one starts in the same state.
func emptied(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameBytes: runs of a deterministic command differ only in process numbers, and with
// --canonical-pids in nothing, in whatever order its children are scheduled.
func TestSameBytes(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	commands := map[string][]string{
		"shell":    {"sh", "-c", "cat /etc/hostname >/dev/null; env >" + dir + "/env; wc -c <" + dir + "/env; exit 0"},
		"pipeline": {"sh", "-c", "env | sort | wc -l >" + dir + "/n & cat /etc/passwd >" + dir + "/p & wait"},
		"parallel": {tool("shapes"), "parallel", dir, "7", "23"},
		"siblings": {tool("shapes"), "siblings", dir},
		"daemon":   {tool("shapes"), "daemon", dir, "100"},
		"tree":     {tool("kinds"), dir, "opens", "failures", "tree", "attrs", "attributes", "others"},
	}
	for name, argv := range commands {
		t.Run(name, func(t *testing.T) {
			var plain, canonical [3]*archive
			for i := range plain {
				emptied(t, dir)
				plain[i], _ = record(t, []string{"--run-id", "same"}, argv...)
				plain[i].complete(t)
				emptied(t, dir)
				canonical[i], _ = record(t, []string{"--run-id", "same", "--canonical-pids"}, argv...)
			}
			for i := 1; i < 3; i++ {
				for member, b := range plain[i].members {
					switch member {
					case "manifest.json", "layers/kernel.ndjson": // these hold process numbers
					default:
						if !bytes.Equal(b, plain[0].members[member]) {
							t.Errorf("%s differs:\n%s\n%s", member, b, plain[0].members[member])
						}
					}
				}
				if canonical[i].tar != canonical[0].tar {
					t.Errorf("with --canonical-pids the tars differ")
					for member, b := range canonical[i].members {
						testkit.FirstDifference(t, member, b, canonical[0].members[member])
					}
				}
			}
		})
	}
}
