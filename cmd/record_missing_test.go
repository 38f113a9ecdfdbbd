package cmd_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordMissing: a directory of --record that is not there is no run without wrappers.
func TestRecordMissing(t *testing.T) {
	dir := t.TempDir()
	stream := filepath.Join(dir, "run.ndjson")
	if o := call(t, command(t, "runner-exec", "--no-kernel", "--stream", stream, "--", "true")); o.code != 0 {
		t.Fatal(o)
	}
	pipe := func(correlate, pack string) outcome {
		script := "set -o pipefail; " + tool("runner-normalize") + " " + stream + " | " + tool("runner-correlate") + " " + correlate + " | " + tool("runner-pack") + " " + pack + " -o " + filepath.Join(dir, "run.tar.gz")
		cmd := command(t, "runner-exec")
		cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", script}
		return call(t, cmd)
	}
	gone := "--record=" + filepath.Join(dir, "gone")
	for _, flags := range [][2]string{{gone, ""}, {"", gone}} {
		if o := pipe(flags[0], flags[1]); o.code == 0 || !strings.Contains(o.stderr, "gone: no such file or directory") {
			t.Errorf("%q: %v", flags, o)
		}
	}
	if o := pipe("", ""); o.code != 0 {
		t.Error(o)
	}
}
