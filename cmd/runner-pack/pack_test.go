package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/health"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const testRun = "run_01"

// joined is a run.joined stream to be made, line by line.
type joined struct {
	events, kernel, policy, sdk, entries, bindings, codes, report, health, stages []string
}

func entry(set, value string) string {
	return fmt.Sprintf(`{"schema":"runner.surface_entry.v0","run_id":"run_01","set":"%s","value":%s}`, set, schemas.AppendQuote(nil, []byte(value)))
}

// stage is the health of a stage that read and wrote so many lines. The capture dropped three
// records.
func stage(name string, out, entries int) string {
	return string(marshal(stageHealth(name, out, entries)))
}

func stageHealth(name string, out, entries int) *schemas.StageHealth {
	n := uint64(out)
	h := &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: name, In: n, Out: n,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{}, Notes: []string{}}
	switch name {
	case schemas.StageCorrelate:
		h.Counters[schemas.CounterSurfaceEntries] = uint64(entries)
	case schemas.StageCapture:
		for _, c := range schemas.CountersOf(name, "") {
			h.Counters[c] = 0
		}
		h.Counters["dropped"], h.Counters["seen"], h.Counters["emitted"], h.Counters["read"] = 3, n+3, n, n
		for _, f := range schemas.FactsOf(name, "") {
			h.Facts[f.Name] = "attached"
			if len(f.Values) > 0 {
				h.Facts[f.Name] = f.Values[0]
			}
		}
		h.Facts["hooks_missing"], h.Facts["redundant"], h.Facts["platform"] = "", "off", "linux"
	}
	return h
}

func marshal(v any) []byte {
	b, err := schemas.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// healthOf is the observation health of a run with so many kernel lines, with the blind spots
// of today: testdata/archive holds their texts, too.
func healthOf(lines int) string {
	unknown := func(string) (string, string) { return schemas.CoverageUnknown, schemas.ScopeUnknown }
	return string(marshal(health.Derive(testRun, &health.Capture{Health: stageHealth(schemas.StageCapture, lines, 0)},
		stageHealth(schemas.StageNormalize, lines, 0), uint64(lines), unknown)))
}

func whole() joined {
	return joined{
		events: []string{`{"schema":"assay.runner.event.v0","run_id":"run_01","seq":0,"type":"run_started","agent_shim":"none","command":["./agent.sh","a\"b"],"env_keys":[]}`,
			`{"schema":"assay.runner.event.v0","run_id":"run_01","seq":1,"type":"run_finished","exit_code":null,"signal":9,"success":false}`},
		kernel: []string{`{"schema":"assay.runner.kernel_event.v0","run_id":"run_01","seq":0,"pid":7,"event_type":4,"kind":"exec","value":"/usr/bin/cat"}`,
			`{"schema":"assay.runner.kernel_event.v0","run_id":"run_01","seq":1,"pid":7,"event_type":211,"kind":"event_211","value":"/tmp/x\ny"}`},
		entries: []string{entry("filesystem_paths", "/tmp/x\ny"), entry("filesystem_paths", `/tmp/x"`), entry("filesystem_paths", "/tmp/ÿ"), entry("process_execs", "/usr/bin/cat")},
		report:  []string{`{"schema":"assay.runner.correlation_report.v0","run_id":"run_01","status":"clean","bindings":[],"ambiguities":[]}`},
		health:  []string{healthOf(2)},
		stages:  []string{stage("runner-capture", 2, 0), stage("runner-normalize", 2, 0), stage("runner-correlate", 2, 4)},
	}
}

// capture changes the health of the first stage.
func (j *joined) capture(f func(h *schemas.StageHealth)) {
	h := stageHealth(schemas.StageCapture, len(j.kernel), 0)
	f(h)
	j.stages[0] = string(marshal(h))
}

func (j joined) build(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamJoined, RunID: testRun, Tool: "runner-correlate", Version: "test"})
	testkit.Must(t, err)
	for _, part := range [][]string{j.events, j.kernel, j.policy, j.sdk, j.entries, j.bindings, j.codes, j.report, j.health, j.stages} {
		for _, line := range part {
			testkit.Must(t, w.WriteRaw([]byte(line)))
		}
	}
	testkit.Must(t, w.Seal(schemas.StatusPartial))
	return b.Bytes()
}

func call(in []byte, args ...string) (code int, stdout, stderr string) {
	return testkit.Call(app(), in, args...)
}

// scratch makes the directories in which a run could leave files.
func scratch(t *testing.T) (target, tmp string) {
	target, tmp = t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	return filepath.Join(target, "run.tar.gz"), tmp
}

func unpack(t testing.TB, archive []byte) (names []string, content map[string][]byte, identity string) {
	t.Helper()
	a, err := bundle.Open(bytes.NewReader(archive), bundle.DefaultLimits)
	testkit.Must(t, err)
	defer a.Close()
	content = map[string][]byte{}
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return names, content, a.Identity()
		}
		testkit.Must(t, err)
		names = append(names, m.Name)
		content[m.Name], err = io.ReadAll(r)
		testkit.Must(t, err)
	}
}

func TestArchive(t *testing.T) {
	path, tmp := scratch(t)
	code, out, stderr := call(whole().build(t), "-v", "-o", path)
	if code != 0 || len(out) > 0 {
		t.Fatalf("exit %d, stdout %q, stderr %s", code, out, stderr)
	}
	archive, err := os.ReadFile(path)
	testkit.Must(t, err)
	names, content, identity := unpack(t, archive)
	want := "runner-pack: run_01: kernel=partial_ringbuf_drops drops=3 policy=absent sdk=absent cgroup=clean correlation=clean events=2 identity=sha256:" + identity + " " + path + "\nrunner-pack: warning: " + path + ": 2 events, 1 process, 0 endpoints, not complete: 3 lost\n"
	if stderr != want {
		t.Errorf("summary %q, expected %q", stderr, want)
	}
	for i, m := range slices.DeleteFunc(schemas.Members(), func(f schemas.Form) bool { return f.Optional }) {
		if i >= len(names) || names[i] != m.Member {
			t.Fatalf("members %v", names)
		}
		testkit.Golden(t, filepath.Join("testdata", "archive", m.Member), content[m.Member])
	}
	man, err := schemas.ParseManifest(content[bundle.ManifestName])
	testkit.Must(t, err)
	if len(man.Files) != len(names)-1 {
		t.Errorf("the manifest lists %d files", len(man.Files))
	}
	for name, f := range man.Files {
		sum := sha256.Sum256(content[name])
		if f.Path != name || f.Bytes != int64(len(content[name])) || f.SHA256 != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("manifest entry %s: %+v", name, f)
		}
	}
	if left := testkit.Names(t, tmp); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestSameBytes(t *testing.T) {
	in := whole().build(t)
	var first []byte
	for range 3 {
		path, _ := scratch(t)
		if code, _, stderr := call(in, "-o", path); code != 0 {
			t.Fatal(stderr)
		}
		got, err := os.ReadFile(path)
		testkit.Must(t, err)
		if first == nil {
			first = got
		}
		if !bytes.Equal(first, got) {
			t.Fatal("the same input gives other bytes")
		}
	}
	code, out, _ := call(in, "-o", "-")
	if code != 0 || !bytes.Equal([]byte(out), first) {
		t.Error("standard output gets other bytes than a file")
	}
	if !bytes.Equal(first[:10], []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}) {
		t.Errorf("gzip header % x", first[:10])
	}
}

func TestDefaultName(t *testing.T) {
	path, _ := scratch(t)
	t.Chdir(filepath.Dir(path))
	if code, _, stderr := call(whole().build(t)); code != 0 {
		t.Fatal(stderr)
	}
	if got := fmt.Sprint(testkit.Names(t, ".")); got != "[assay-runner-spike-run_01.tar.gz]" {
		t.Errorf("files %s", got)
	}
}

func TestRefusals(t *testing.T) {
	swap := func(s []string, i, j int) { s[i], s[j] = s[j], s[i] }
	for _, c := range []struct {
		name string
		edit func(j *joined)
		want string
	}{
		{"surface out of order", func(j *joined) { swap(j.entries, 0, 1) }, "byte order"},
		{"surface entry twice", func(j *joined) { j.entries[1] = j.entries[0] }, "byte order"},
		{"surface set after a later one", func(j *joined) { swap(j.entries, 2, 3) }, "finished before"},
		{"unknown set", func(j *joined) { j.entries[3] = entry("secrets", "x") }, "unknown set"},
		{"empty value", func(j *joined) { j.entries[0] = entry("filesystem_paths", "") }, "non-empty"},
		{"value not canonical", func(j *joined) {
			j.entries[0] = `{"schema":"runner.surface_entry.v0","run_id":"run_01","set":"filesystem_paths","value":"\u002fx"}`
		}, "canonical"},
		{"value with a second key", func(j *joined) {
			j.entries[0] = `{"schema":"runner.surface_entry.v0","run_id":"run_01","set":"filesystem_paths","value":"a","b":"c"}`
		}, "canonical"},
		{"value not a string", func(j *joined) {
			j.entries[0] = `{"schema":"runner.surface_entry.v0","run_id":"run_01","set":"filesystem_paths","value":123}`
		}, "canonical"},
		{"no report", func(j *joined) { j.report = nil }, "no correlation report"},
		{"two reports", func(j *joined) { j.report = append(j.report, j.report[0]) }, "a second correlation report"},
		{"no health", func(j *joined) { j.health = nil }, "no observation health"},
		{"two healths", func(j *joined) { j.health = append(j.health, j.health[0]) }, "a second observation health"},
		{"health with another key", func(j *joined) { j.health[0] = strings.Replace(j.health[0], `"notes"`, `"Notes"`, 1) }, "Notes"},
		{"report not canonical", func(j *joined) { j.report[0] = strings.Replace(j.report[0], `[],`, `[ ],`, 1) }, "canonical"},
		{"one event", func(j *joined) { j.events = j.events[:1] }, "1 run events"},
		{"three events", func(j *joined) { j.events = append(j.events, j.events[1]) }, "third"},
		{"events swapped", func(j *joined) { swap(j.events, 0, 1) }, "malformed line"},
		{"two stages", func(j *joined) { j.stages = j.stages[1:] }, "2 stage healths"},
		{"correlate not last", func(j *joined) { swap(j.stages, 1, 2) }, "expected runner-normalize"},
		{"escapes beside a clean health", func(j *joined) { j.capture(func(h *schemas.StageHealth) { h.Counters["escapes"] = 99 }) }, "kernel_layer=partial_ringbuf_drops, the healths of the stages absent"},
		{"more drops", func(j *joined) {
			j.capture(func(h *schemas.StageHealth) { h.Counters["dropped"], h.Counters["seen"] = 4, 6 })
		}, "ringbuf_drops=3, the healths of the stages 4"},
		{"a loss that the health lacks", func(j *joined) { j.capture(func(h *schemas.StageHealth) { h.Facts["canary_after"] = "missed" }) }, "does not follow from the healths of the stages"},
		{"an end that the health lacks", func(j *joined) { j.capture(func(h *schemas.StageHealth) { h.Facts["end"] = "signal" }) }, "does not follow"},
		{"another platform", func(j *joined) { j.capture(func(h *schemas.StageHealth) { h.Facts["platform"] = "macos" }) }, "claims a kernel capture"},
		{"a note removed", func(j *joined) { j.health[0] = strings.Replace(j.health[0], `"s2_kernel_loss: dropped=3",`, "", 1) }, "does not follow"},
		{"a note added", func(j *joined) { j.health[0] = strings.Replace(j.health[0], `"]}`, `","s2_survivors_killed: 1"]}`, 1) }, "does not follow"},
		{"a note lost at the end", func(j *joined) { j.health[0] = j.health[0][:strings.Index(j.health[0], `,"s2_blind`)] + "]}" }, "lacks the note"},
		{"an unknown filter", func(j *joined) {
			j.stages[1] = strings.Replace(j.stages[1], `"filtered":{}`, `"filtered":{"user.wish":1}`, 1)
		}, "no rule"},
		{"lines that nobody counted", func(j *joined) { j.stages[2] = stage("runner-correlate", 3, 4) }, "the stream has 2"},
		{"kernel line lost", func(j *joined) { j.kernel = j.kernel[1:] }, "the stream has 1"},
		{"surface entry lost", func(j *joined) { j.entries = j.entries[1:] }, "the stream has 3"},
		{"kernel line after the surface", func(j *joined) { j.report = append(j.kernel[:1], j.report...) }, " record after "},
		{"unknown schema", func(j *joined) { j.sdk = []string{`{"schema":"other","run_id":"run_01"}`} }, "unknown schema"},
		{"record of another run", func(j *joined) { j.kernel[1] = strings.Replace(j.kernel[1], "run_01", "run_02", 1) }, "another run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := whole()
			c.edit(&j)
			refused(t, j, c.want)
		})
	}
}

// refused checks that a stream gives an error and no file.
func refused(t *testing.T, j joined, want string) {
	t.Helper()
	path, tmp := scratch(t)
	code, _, stderr := call(j.build(t), "-o", path)
	if code != 3 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "stdin:") {
		t.Errorf("exit %d, stderr %q, expected 3 and %q", code, stderr, want)
	}
	if left := append(testkit.Names(t, filepath.Dir(path)), testkit.Names(t, tmp)...); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestEveryPrefixRefused(t *testing.T) {
	path, tmp := scratch(t)
	in := whole().build(t)
	for n := range in {
		if code, _, stderr := call(in[:n], "-o", path); code != 3 {
			t.Fatalf("prefix of %d bytes: exit %d: %s", n, code, stderr)
		}
		if left := append(testkit.Names(t, filepath.Dir(path)), testkit.Names(t, tmp)...); len(left) > 0 {
			t.Fatalf("prefix of %d bytes: files are left: %v", n, left)
		}
	}
}

func TestExistingFile(t *testing.T) {
	path, _ := scratch(t)
	testkit.Must(t, os.WriteFile(path, []byte("older"), 0o600))
	in := whole().build(t)
	if code, _, stderr := call(in, "-o", path); code != 2 || !strings.Contains(stderr, "is not the archive of a run: it is kept") || !strings.Contains(stderr, "--force") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, _ := call(in[:len(in)-1], "--force", "-o", path); code != 3 {
		t.Fatalf("exit %d", code)
	}
	if b, _ := os.ReadFile(path); string(b) != "older" {
		t.Errorf("a failed run changed the file to %q", b)
	}
	if code, _, stderr := call(in, "--force", "-o", path); code != 0 {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(path)
	testkit.Must(t, err)
	unpack(t, b)
	if got := testkit.Names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("files %v", got)
	}
}

func TestRunID(t *testing.T) {
	path, _ := scratch(t)
	in := whole().build(t)
	if code, _, stderr := call(in, "--run-id", "run_02", "-o", path); code != 3 || !strings.Contains(stderr, `this is run "run_01", expected "run_02"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := call(in, "--run-id", testRun, "-o", path); code != 0 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"--nonsense"}, {"a", "b"}, {"--run-id", "a/b"}, {"-o", "x", "--output", "y"}} {
		if code, out, stderr := call(nil, args...); code != 2 || len(out) > 0 || stderr == "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out, stderr)
		}
	}
	if code, out, _ := call(nil, "--help"); code != 0 || strings.TrimSpace(out) != strings.TrimSpace(usage) {
		t.Errorf("--help: exit %d, %q", code, out)
	}
}

func TestOutputErrors(t *testing.T) {
	in := whole().build(t)
	path, _ := scratch(t)
	for _, out := range []string{filepath.Dir(path), filepath.Join(path, "x"), fullDevice(t)} {
		if code, _, stderr := call(in, "-o", out); code != 5 || stderr == "" {
			t.Errorf("-o %s: exit %d: %s", out, code, stderr)
		}
	}
	var stderr bytes.Buffer
	if code := app().Call(context.Background(), bytes.NewReader(in), fullDisk{}, &stderr, []string{"-o", "-"}); code != 5 || strings.Contains(stderr.String(), "identity") {
		t.Errorf("full standard output: exit %d: %s", code, stderr.String())
	}
}

// fullDevice is a device on which there is no room, or where there is none, a name in no directory.
func fullDevice(t *testing.T) string {
	if _, err := os.Stat("/dev/full"); err != nil {
		return filepath.Join(t.TempDir(), "gone", "x")
	}
	return "/dev/full"
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
