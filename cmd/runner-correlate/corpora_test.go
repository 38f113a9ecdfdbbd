package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// members are the files of an archive.
func members(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	testkit.Must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	testkit.Must(t, err)
	all := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		testkit.Must(t, err)
		b, err := io.ReadAll(r)
		testkit.Must(t, err)
		all[h.Name] = b
	}
}

// fromArchive is a kernel.normalized stream with the kernel layer of an archive.
func fromArchive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	h, err := schemas.ParseHealth(files["observation-health.json"])
	testkit.Must(t, err)
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNormalized, RunID: h.RunID, Tool: "runner-normalize", Version: "test"})
	testkit.Must(t, err)
	n := uint64(0)
	for line := range bytes.Lines(files["events.ndjson"]) {
		testkit.Must(t, w.WriteRaw(bytes.TrimSpace(line)))
	}
	for line := range bytes.Lines(files["layers/kernel.ndjson"]) {
		n++
		testkit.Must(t, w.WriteRaw(bytes.TrimSpace(line)))
	}
	c, nz := healths(n, n)
	c.RunID, nz.RunID = h.RunID, h.RunID
	if !strings.Contains(strings.Join(h.Notes, "\n"), "s2_kernel_capture") {
		absent("not_requested", "linux")(c, nz)
	}
	if h.KernelLayer == schemas.LayerPartial {
		c.Counters["dropped"] = max(h.RingbufDrops, 1)
		c.Counters["seen"] += c.Counters["dropped"]
	}
	testkit.Must(t, w.Write(c))
	testkit.Must(t, w.Write(nz))
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	return b.Bytes()
}

// intended are the codes that the other implementation does not have. All other codes
// must be the same.
var intended = map[string]string{
	schemas.AmbiguityNotInSDK:           "a policy call that the SDK never mentioned is named",
	schemas.AmbiguitySDKRunNotFinished:  "an SDK log that does not say how the run ended is named",
	schemas.AmbiguitySDKNotCompleted:    "started and completed events are paired",
	schemas.AmbiguitySDKNotStarted:      "started and completed events are paired",
	schemas.AmbiguitySDKRepeated:        "started and completed events are paired",
	schemas.AmbiguitySDKCompletedDenied: "what the SDK reports as done is compared with the decision",
	schemas.AmbiguitySDKNameDiffers:     "tool names are compared",
	schemas.AmbiguityCallIDRepeated:     "ids that name two calls are named",
	schemas.AmbiguityKernelLost:         "counts that are lower bounds are named",
}

// withoutOurKeys removes the keys of decisions that this implementation keeps and the
// other one drops.
func withoutOurKeys(e *schemas.PolicyEvent) { e.Outcome, e.ReasonCode, e.RuleID = "", "", "" }

type oracleInput struct {
	PolicyLog *string `json:"policy_log"`
	SDKLog    *string `json:"sdk_log"`
	Cgroup    *uint64 `json:"session_cgroup_id"`
}

// TestOracle runs this implementation on the inputs of another one, and compares.
func TestOracle(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testkit.Corpora(t, "assay"), "_oracle/runner-core/*/archive.tar.gz"))
	testkit.Must(t, err)
	compared := 0
	for _, archive := range dirs {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(archive), "input.json"))
		testkit.Must(t, err)
		var in oracleInput
		testkit.Must(t, json.Unmarshal(b, &in))
		if in.PolicyLog == nil && in.SDKLog == nil {
			continue
		}
		compared++
		t.Run(filepath.Base(filepath.Dir(archive)), func(t *testing.T) {
			files := members(t, archive)
			if in.SDKLog != nil { // their inputs have no shim; here such a run has no SDK layer
				files["events.ndjson"] = bytes.ReplaceAll(files["events.ndjson"], []byte(`"agent_shim":"none"`), []byte(`"agent_shim":"openai-agents"`))
			}
			got := join(t, fromArchive(t, files), logBytes(in.PolicyLog), logBytes(in.SDKLog))
			compareLayer(t, "policy", got.policy, files["layers/policy.ndjson"], withoutOurKeys)
			compareLayer(t, "sdk", got.sdk, files["layers/sdk.ndjson"], nil)
			compareSurface(t, got, files)
			if in.Cgroup == nil {
				// Their capture may not know its cgroup, and then reports nothing about
				// several decisions in it. A capture of this runner always knows it.
				got.report.Ambiguities = slices.DeleteFunc(got.report.Ambiguities, func(c string) bool { return c == schemas.AmbiguityManyDecisions })
				got.report.Status = schemas.WorstOf(got.report.Ambiguities)
			}
			compareReport(t, got, files)
			compareHealth(t, got, files)
		})
	}
	if compared < 20 {
		t.Errorf("only %d inputs with a log", compared)
	}
}

func logBytes(s *string) []byte {
	if s == nil {
		return nil
	}
	return append([]byte{}, *s...)
}

func compareLayer(t *testing.T, name string, got []string, want []byte, without func(*schemas.PolicyEvent)) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(string(want)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	for i, line := range got {
		if without != nil {
			e, err := schemas.ParsePolicyEvent([]byte(line))
			testkit.Must(t, err)
			without(e)
			got[i] = marshalLine(t, e)
		}
	}
	if !slices.Equal(got, lines) {
		t.Errorf("%s layer\n%s\ntheirs\n%s", name, strings.Join(got, "\n"), want)
	}
}

func compareSurface(t *testing.T, got *threeLayers, files map[string][]byte) {
	t.Helper()
	s, err := schemas.ParseSurface(files["capability-surface.json"])
	testkit.Must(t, err)
	var want []schemas.SurfaceEntry
	for i, set := range s.Sets() {
		for _, v := range set {
			want = append(want, schemas.SurfaceEntry{Schema: schemas.SchemaSurfaceEntry, RunID: s.RunID, Set: schemas.SurfaceSets[i], Value: v})
		}
	}
	if !slices.Equal(got.entries, want) {
		t.Errorf("surface %v\ntheirs %v", got.entries, want)
	}
}

func compareReport(t *testing.T, got *threeLayers, files map[string][]byte) {
	t.Helper()
	r, err := schemas.ParseReport(files["correlation-report.json"])
	testkit.Must(t, err)
	for i := range r.Bindings {
		r.Bindings[i].CgroupID = nil // only other implementations write it
	}
	if a, b := marshalLine(t, got.report.Bindings), marshalLine(t, r.Bindings); a != b && len(r.Bindings)+len(got.report.Bindings) > 0 {
		t.Errorf("bindings %s\ntheirs %s", a, b)
	}
	var ours []string
	for _, code := range got.report.Ambiguities {
		a, err := schemas.ParseCode(code)
		testkit.Must(t, err)
		if intended[a.Code] == "" {
			ours = append(ours, code)
		}
	}
	slices.Sort(r.Ambiguities) // theirs are grouped by kind, and sorted only within a kind
	if !slices.Equal(ours, r.Ambiguities) {
		t.Errorf("codes %q, theirs %q", ours, r.Ambiguities)
	}
	want := r.Status
	if len(got.report.Ambiguities) > len(ours) {
		want = schemas.CorrelationPartial
	}
	if got.report.Status != want {
		t.Errorf("status %s, expected %s", got.report.Status, want)
	}
}

func compareHealth(t *testing.T, got *threeLayers, files map[string][]byte) {
	t.Helper()
	h, err := schemas.ParseHealth(files["observation-health.json"])
	testkit.Must(t, err)
	if got.health.PolicyLayer != h.PolicyLayer || got.health.SDKLayer != h.SDKLayer {
		t.Errorf("layers %s %s, theirs %s %s", got.health.PolicyLayer, got.health.SDKLayer, h.PolicyLayer, h.SDKLayer)
	}
	logs := func(notes []string) (out []string) {
		for _, n := range notes {
			if strings.HasPrefix(n, "s4_") || strings.HasPrefix(n, "s5_") {
				out = append(out, n)
			}
		}
		return out
	}
	if a, b := logs(got.health.Notes), logs(h.Notes); !slices.Equal(a, b) {
		t.Errorf("notes %q, theirs %q", a, b)
	}
}

// TestOracleErrors: an input for which the other implementation writes no archive is refused here, too, if its first
// line is none of such a log. Others end the layer, and give a code.
func TestOracleErrors(t *testing.T) {
	const refused = "refused"
	want := map[string]string{
		"70-policy-error-array": refused, "70-policy-error-bad-json": refused,
		"70-policy-error-blank": "policy_log_empty", "70-policy-error-blank-id": "policy_log_invalid:1:bad_field",
		"70-policy-error-empty": "policy_log_empty", "70-policy-error-no-data": "policy_log_invalid:1:bad_field",
		"70-policy-error-no-decision": "policy_log_invalid:1:bad_field", "70-policy-error-no-source": "policy_log_invalid:1:bad_field",
		"70-policy-error-no-tool": "policy_log_invalid:1:bad_field", "70-policy-error-no-type": refused,
		"70-policy-error-numeric-id": "policy_log_invalid:1:bad_field", "70-policy-error-second-line-bad": "policy_log_invalid:2:bad_json",
		"70-policy-error-wrong-type": refused,
		"71-sdk-error-bad-json":      refused, "71-sdk-error-bad-type": "sdk_log_invalid:1:bad_event_type",
		"71-sdk-error-completed-blank-id": "sdk_log_invalid:1:bad_field", "71-sdk-error-empty": "sdk_log_empty",
		"71-sdk-error-no-schema": refused, "71-sdk-error-no-source": "sdk_log_invalid:1:bad_field",
		"71-sdk-error-seq-float": "sdk_log_invalid:1:bad_seq", "71-sdk-error-seq-gap": "sdk_log_invalid:2:bad_seq",
		"71-sdk-error-seq-negative": "sdk_log_invalid:1:bad_seq", "71-sdk-error-seq-start-1": "sdk_log_invalid:1:bad_seq",
		"71-sdk-error-seq-string": "sdk_log_invalid:1:bad_seq", "71-sdk-error-started-no-id": "sdk_log_invalid:1:bad_field",
		"71-sdk-error-started-no-tool": "sdk_log_invalid:1:bad_field", "71-sdk-error-wrong-run": "sdk_log_invalid:1:bad_run_id",
		"71-sdk-error-wrong-schema": refused,
	}
	dirs, err := filepath.Glob(filepath.Join(testkit.Corpora(t, "assay"), "_oracle/runner-core/7[01]-*"))
	testkit.Must(t, err)
	if len(dirs) != len(want) {
		t.Errorf("%d inputs, expected %d", len(dirs), len(want))
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, "input.json"))
			testkit.Must(t, err)
			var in oracleInput
			testkit.Must(t, json.Unmarshal(b, &in))
			// These runs have another id than the tests here.
			kernel := bytes.ReplaceAll([]byte(world{capture: input{change: absent("not_requested", "linux")}}.rows(t)), []byte(testRun), []byte("run_oracle"))
			sealed, policy, sdk := reseal(t, kernel, "run_oracle"), logBytes(in.PolicyLog), logBytes(in.SDKLog)
			if want[filepath.Base(dir)] == refused {
				if code, _, msg := call(sealed, logArgs(t, policy, sdk)...); code != tool.ExitInput || !strings.Contains(msg, ":1: this is no ") {
					t.Errorf("exit %d: %s", code, msg)
				}
				return
			}
			got := join(t, sealed, policy, sdk)
			if code := want[filepath.Base(dir)]; code == "" || !slices.Contains(got.report.Ambiguities, code) {
				t.Errorf("codes %q, expected %q", got.report.Ambiguities, code)
			}
		})
	}
}

// rows are the records of a world's stream.
func (w world) rows(t *testing.T) string {
	all := strings.SplitAfter(string(w.stream(t)), "\n")
	return strings.Join(all[1:len(all)-2], "")
}

// reseal makes a stream of records.
func reseal(t *testing.T, rows []byte, runID string) []byte {
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNormalized, RunID: runID, Tool: "runner-normalize", Version: "test"})
	testkit.Must(t, err)
	for line := range bytes.Lines(rows) {
		testkit.Must(t, w.WriteRaw(bytes.TrimSuffix(line, []byte("\n"))))
	}
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	return b.Bytes()
}

// TestRecordedSDKLogs makes the SDK layers of recorded runs of other machines from
// the logs that are stored with them.
func TestRecordedSDKLogs(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(testkit.Corpora(t, "assay"), "docs/experiments/cross-runtime-drift-2026-05/runs/*/*/sdk-events.ndjson"))
	testkit.Must(t, err)
	if len(logs) < 3 {
		t.Fatalf("%d logs, expected 3 at least", len(logs))
	}
	for _, log := range logs {
		t.Run(filepath.Base(filepath.Dir(log)), func(t *testing.T) {
			files := members(t, filepath.Join(filepath.Dir(log), "archive.tar.gz"))
			raw, err := os.ReadFile(log)
			testkit.Must(t, err)
			got := join(t, fromArchive(t, files), nil, raw)
			if layer := strings.Join(got.sdk, "\n") + "\n"; layer != string(files["layers/sdk.ndjson"]) || len(got.sdk) == 0 {
				t.Errorf("layer\n%s\ntheirs\n%s", layer, files["layers/sdk.ndjson"])
			}
			compareReport(t, got, files)
			compareHealth(t, got, files)
		})
	}
}
