package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestOutputs: no tool replaces a file that it did not write, unless --force is given; each replaces its own,
// and a device is written as it is. No two flags name one file, none is called "-", and a place that cannot be written is found before anything is done.
func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	archive, mine := packed(t, "kernel-only", filepath.Join(dir, "run.tar.gz")), filepath.Join(dir, "mine")
	for tool, c := range map[string]struct {
		flags, before, after []string
	}{
		"runner-lint": {[]string{"report", "closure", "sarif", "junit"}, nil, []string{archive}},
		"runner-otel": {[]string{"traces", "logs", "mapping-report"}, nil, []string{archive}},
		"runner-soak": {[]string{"report", "surface", "junit"}, []string{"--target", archive}, nil},
		"runner-diff": {[]string{"report"}, nil, []string{archive, archive}},
	} {
		run := func(args ...string) outcome {
			return call(t, command(t, tool, slices.Concat(c.before, args, c.after)...))
		}
		refused := func(why string, args ...string) {
			if o := run(args...); o.code != 2 || o.stdout != "" || !strings.Contains(o.stderr, why) {
				t.Errorf("%s %q, expected %q: %s", tool, args, why, o)
			}
		}
		for i, flag := range c.flags {
			write(t, mine, "what I wrote")
			refused("it is kept", "--"+flag, mine)
			if b, err := os.ReadFile(mine); err != nil || string(b) != "what I wrote" {
				t.Fatalf("%s --%s: %q, %v", tool, flag, b, err)
			}
			if o := run("--force", "--"+flag, mine); o.code > 1 {
				t.Errorf("%s --force --%s: %s", tool, flag, o)
			}
			first, err := os.ReadFile(mine)
			testkit.Must(t, err)
			if o := run("--"+flag, mine); o.code > 1 {
				t.Errorf("%s --%s, its own file: %s", tool, flag, o)
			}
			if again, err := os.ReadFile(mine); err != nil || !bytes.Equal(first, again) {
				t.Errorf("%s --%s: another file of the same archive, %v", tool, flag, err)
			}
			if o := run("--"+flag, os.DevNull); o.code > 1 {
				t.Errorf("%s --%s into a device: %s", tool, flag, o)
			}
			if i > 0 {
				refused("name one file", "--force", "--"+c.flags[0], mine, "--"+flag, dir+"/./mine")
				refused("the name of a file", "--"+flag, "-")
			}
			if o := run("--"+flag, filepath.Join(dir, "missing", "x")); o.code != 5 || o.stdout != "" || !strings.Contains(o.stderr, "cannot write ") {
				t.Errorf("%s --%s in no folder: %s", tool, flag, o)
			}
		}
	}
}

// TestGeneratedAt: all tools that write the time of a report take the same ones.
func TestGeneratedAt(t *testing.T) {
	dir := t.TempDir()
	archive := packed(t, "kernel-only", filepath.Join(dir, "run.tar.gz"))
	for tool, args := range map[string][]string{"runner-lint": {"--json", archive}, "runner-diff": {"--format", "json", archive, archive},
		"runner-soak": {"--json", "--target", archive}, "runner-otel": {"--force", "--logs", filepath.Join(dir, "logs"), archive}} {
		with := func(epoch string, more ...string) (outcome, string) {
			os.Remove(filepath.Join(dir, "logs"))
			c := command(t, tool, append(more, args...)...)
			c.Env = append(c.Environ(), "SOURCE_DATE_EPOCH="+epoch)
			o := call(t, c)
			b, _ := os.ReadFile(filepath.Join(dir, "logs")) // only runner-otel writes it
			return o, o.stdout + string(b)
		}
		for _, bad := range []string{"now", "-1", "253402300800", "99999999999999999999"} {
			if o, _ := with(bad); o.code != 2 || !strings.Contains(o.stderr, "expected seconds since 1970") {
				t.Errorf("%s at %s: %s", tool, bad, o)
			}
		}
		for _, bad := range []string{"now", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00"} {
			if o, _ := with("", "--generated-at", bad); o.code != 2 || !strings.Contains(o.stderr, "a time such as") {
				t.Errorf("%s --generated-at %s: %s", tool, bad, o)
			}
		}
		without, none := with("")
		epoch, one := with("1764000000")
		flag, other := with("1", "--generated-at", "2025-11-24T18:00:00+02:00")
		if without.code > 1 || epoch.code > 1 || flag.code > 1 || one == none || one != other {
			t.Errorf("%s: without a time %s, with one %s, by the flag %s", tool, without, epoch, flag)
		}
	}
}
