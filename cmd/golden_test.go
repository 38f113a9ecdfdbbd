package cmd_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestGoldenRuns: every stage makes the recorded output of its recorded input. Only the
// header's version and the digest over it are not compared.
func TestGoldenRuns(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/runs/*")
	if len(dirs) == 0 {
		t.Fatal("no recorded runs")
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			windows, logs := logFlags(dir)
			for _, s := range []struct {
				tool, in, out string
				flags         []string
			}{
				{"runner-normalize", "1-raw.ndjson", "2-kernel.ndjson", windows},
				{"runner-correlate", "2-kernel.ndjson", "3-joined.ndjson", logs},
			} {
				o := call(t, command(t, s.tool, append(s.flags, filepath.Join(dir, s.in))...))
				if o.code != 0 {
					t.Fatalf("%s: %v", s.tool, o)
				}
				golden(t, filepath.Join(dir, s.out), []byte(o.stdout))
			}
			path := filepath.Join(t.TempDir(), "run.tar.gz")
			if o := call(t, command(t, "runner-pack", "-o", path, filepath.Join(dir, "3-joined.ndjson"))); o.code != 0 {
				t.Fatal(o)
			}
			sum, err := eachMember(path, drain)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(dir, "4-identity"), []byte(hex.EncodeToString(sum[:])+"\n"))
		})
	}
}

// TestGoldenShow: what runner-show prints of a recorded run with the layer process, in every view.
func TestGoldenShow(t *testing.T) {
	const run = "processes"
	path := filepath.Join(t.TempDir(), run+".tar.gz")
	if o := call(t, command(t, "runner-pack", "-o", path, filepath.Join("../testdata/runs", run, "3-joined.ndjson"))); o.code != 0 {
		t.Fatal(o)
	}
	for _, view := range []string{"screen", "tree", "list", "json", "filtered"} {
		c := command(t, "runner-show", "--"+view, filepath.Base(path))
		if view == "screen" {
			c = command(t, "runner-show", filepath.Base(path))
		}
		c.Dir = filepath.Dir(path)
		o := call(t, c)
		if o.code != 0 || o.stderr != "" {
			t.Fatal(o)
		}
		golden(t, filepath.Join("../testdata/show", run+"."+view), []byte(o.stdout))
	}
}

// logFlags are the flags of the stages, by what was collected and recorded of a run.
func logFlags(dir string) (normalize, correlate []string) {
	if file := filepath.Join(dir, "policy.log.ndjson"); testkit.Exists(file) {
		normalize, correlate = []string{"--windows"}, []string{"--policy", file}
	}
	if file := filepath.Join(dir, "sdk.log.ndjson"); testkit.Exists(file) {
		correlate = append(correlate, "--sdk", file)
	}
	if file := filepath.Join(dir, "intents.log.ndjson"); testkit.Exists(file) {
		correlate = append(correlate, "--intents", file)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "1-raw.ndjson"))
	if err == nil && bytes.Contains(raw, []byte(`"`+schemas.FactRunClock+`":`)) {
		normalize, correlate = []string{"--windows"}, append(correlate, "--times")
	}
	if err == nil && bytes.Contains(raw, []byte(`"`+schemas.FactArguments+`":`)) { // of a capture that reads what processes are
		normalize = append(normalize, "--processes", "--filtered")
	}
	return normalize, correlate
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	testkit.GoldenBut(t, path, got, body)
}

// body leaves out what depends on the version: the header line and the digest over it.
func body(b []byte) []byte {
	if !bytes.HasPrefix(b, []byte(`{"schema":"runner.stream_header`)) {
		return b
	}
	lines := strings.SplitAfter(string(b), "\n")
	last := lines[len(lines)-2]
	if i := strings.Index(last, `"sha256":"`); i > 0 {
		last = last[:i] + last[i+len(`"sha256":"`)+64:]
	}
	return []byte(strings.Join(lines[1:len(lines)-2], "") + last)
}
