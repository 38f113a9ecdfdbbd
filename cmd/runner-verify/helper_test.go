package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// archive is the content of an archive under construction.
type content map[string]string

const (
	runID    = "run_test"
	elsewise = "run_other"
)

// kernelLine writes one line of the kernel layer.
func kernelLine(seq int, rest string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.kernel_event.v0","run_id":%q,"seq":%d,"pid":100,%s}`+"\n", runID, seq, rest)
}

func openLine(seq int, path string) string {
	return kernelLine(seq, `"event_type":1,"kind":"openat","value":"`+path+`","flags":577,"mode":420,"return_value":3,"access_mode":"write","operation_flags":["create","truncate"],"status":"success"`)
}

// sdkLines writes the SDK layer: each is an event type, then an id and a tool.
func sdkLines(events ...string) string {
	var b strings.Builder
	for i, e := range events {
		f := append(strings.Fields(e), "", "")
		id, tool := "null", "null"
		if f[1] != "" {
			id, tool = fmt.Sprintf("%q", f[1]), fmt.Sprintf("%q", f[2])
		}
		fmt.Fprintf(&b, `{"schema":"assay.runner.sdk_event.v0","run_id":%q,"seq":%d,"event_type":%q,"source":"x","sdk_name":null,"sdk_version":null,"tool_call_id":%s,"tool":%s}`+"\n", runID, i, f[0], id, tool)
	}
	return b.String()
}

// sample is a valid archive with all three layers: four kernel lines, one
// decision, one SDK call that the policy knows and one that it does not.
func sample() content {
	a := content{}
	a[bundle.EventsName] = `{"schema":"assay.runner.event.v0","run_id":"run_test","seq":0,"type":"run_started","agent_shim":"openai-agents","command":["./agent.sh","a b"],"env_keys":["ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"]}
{"schema":"assay.runner.event.v0","run_id":"run_test","seq":1,"type":"run_finished","exit_code":0,"signal":null,"success":true}
`
	a[bundle.KernelName] = openLine(0, "/tmp/out") +
		kernelLine(1, `"event_type":4,"kind":"exec","value":"/usr/bin/env","return_value":0,"status":"success"`) +
		kernelLine(2, `"event_type":2,"kind":"connect","value":"127.0.0.1:80","return_value":-115`) +
		kernelLine(3, `"event_type":211,"kind":"event_211","value":"/tmp/old","return_value":-2,"status":"error"`)
	a[bundle.PolicyName] = `{"schema":"assay.runner.policy_event.v0","run_id":"run_test","seq":0,"source_event_type":"assay.tool.decision","source":"proxy","tool_call_id":"tc_1","tool":"read_file","decision":"allow"}
`
	a[bundle.SDKName] = sdkLines("tool_call_started tc_1 read_file", "tool_call_completed tc_1 read_file",
		"tool_call_started tc_2 read_file", "tool_call_completed tc_2 read_file", "run_finished")
	a[bundle.SurfaceName] = `{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":["/tmp/old","/tmp/out"],"network_endpoints":["127.0.0.1:80"],"process_execs":["/usr/bin/env"],"mcp_tools":["read_file"],"policy_decisions":["allow:read_file"]}`
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"partial","bindings":[{"tool_call_id":"tc_1","policy_decision":"allow","kernel_event_count":4,"window":{"start":"run_started","end":"run_finished"}}],"ambiguities":["sdk_tool_call_without_policy_binding:tc_2"]}`
	a[bundle.HealthName] = `{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"present","sdk_layer":"self_reported","cgroup_correlation":"clean","network_protocol_coverage":"connect_only","network_endpoint_claim_scope":"diagnostic_only","notes":["s2_kernel_capture: monitor_events=4 ringbuf_drops=0 network_protocol_coverage=connect_only network_endpoint_claim_scope=diagnostic_only","s2_blind_spots: shared memory","s4_policy_capture: decision_events=1","s5_sdk_capture: sdk_events=5 sdk_tool_calls=2"]}`
	return a
}

// digest writes the manifest that fits the content, as a forger would.
func (a content) digest(t testing.TB) content {
	m := schemas.Manifest{Schema: schemas.SchemaManifest, RunID: runID, Files: map[string]schemas.ManifestFile{}}
	for name, content := range a {
		if name == bundle.ManifestName {
			continue
		}
		sum := sha256.Sum256([]byte(content))
		m.Files[name] = schemas.ManifestFile{Path: name, SHA256: "sha256:" + hex.EncodeToString(sum[:]), Bytes: int64(len(content))}
	}
	b, err := schemas.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	a[bundle.ManifestName] = string(b)
	return a
}

// names are the members in archive order.
func (a content) names() []string {
	list := slices.Sorted(maps.Keys(a))
	slices.SortStableFunc(list, func(x, y string) int {
		return btoi(y == bundle.ManifestName) - btoi(x == bundle.ManifestName)
	})
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tar packs the members without any check.
func (a content) tar(t testing.TB) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range a.names() {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(a[name])), Mode: 0o644, Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(a[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, b []byte, level int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// call runs the tool on standard input.
func call(in []byte, args ...string) (code int, stdout, stderr string) {
	var out, errw bytes.Buffer
	code = app().Call(context.Background(), bytes.NewReader(in), &out, &errw, args)
	return code, out.String(), errw.String()
}

// check returns the exit code and the result of an archive.
func check(t testing.TB, in []byte, args ...string) (int, verdict.Report) {
	t.Helper()
	code, out, errs := call(in, append([]string{"--json"}, args...)...)
	var r verdict.Report
	if err := schemas.Unmarshal([]byte(strings.TrimSuffix(out, "\n")), &r); err != nil {
		t.Fatalf("exit %d, output is not a result: %v\n%s%s", code, err, out, errs)
	}
	return code, r
}

// rules are the distinct rule ids of the findings, sorted.
func rules(r verdict.Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, f.Rule)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
