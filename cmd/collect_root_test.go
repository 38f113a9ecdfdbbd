//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// collecting are the flags of a run with both logs.
func collecting(dir string) []string {
	return []string{"--agent-shim", "openai-agents", "--policy-log", filepath.Join(dir, "policy.log"), "--sdk-log", filepath.Join(dir, "sdk.log")}
}

// reports is a shell command that writes an SDK log with one tool call.
const reports = `n=0; event() { printf '{"schema":"%s","run_id":"%s","seq":%d,"event_type":"%s","source":"shell"%s}\n' \
	"$ASSAY_RUNNER_SDK_EVENT_SCHEMA" "$ASSAY_RUNNER_RUN_ID" $n "$1" "$2" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"; n=$((n + 1)); }
call=',"tool_call_id":"tc_1","tool":"read_file"'; event tool_call_started "$call"; event tool_call_completed "$call"; event run_finished; `

// TestCollectedKillMatrix kills every stage of a run that collects logs. Nothing may be
// left, in particular no FIFO that a program would block on.
func TestCollectedKillMatrix(t *testing.T) {
	requireBPF(t)
	moments := []struct {
		name string
		run  string
		when func(dir string, pids map[string]int) bool
	}{
		{"while it works", "exec %s opens %s 3000000", func(d string, _ map[string]int) bool { return testkit.Exists(d + "/M-opens") }},
		{"after it worked", "exec %s opens %s 300000", func(d string, pids map[string]int) bool { return testkit.Exists(d+"/M-opens") && pids["shapes"] == 0 }},
		{"while a writer is left", "exec 3>>$ASSAY_RUNNER_POLICY_DECISION_LOG; %s opens %s 3000000 & echo 1 >&3; exit 0",
			func(d string, pids map[string]int) bool { return testkit.Exists(d+"/M-opens") && pids["sh"] == 0 }},
	}
	for _, stage := range tools[:5] {
		for _, moment := range moments {
			t.Run(stage+" "+moment.name, func(t *testing.T) {
				for range 10 { // a run may end before the kill
					dir := shortDir(t)
					argv := []string{"sh", "-c", reports + fmt.Sprintf(moment.run, tool("shapes"), dir)}
					if killed(t, stage, dir, collecting(dir), argv, moment.when) {
						for _, log := range []string{"policy.log", "sdk.log"} {
							if testkit.Exists(filepath.Join(dir, log)) {
								t.Errorf("%s of a failed run is left", log)
							}
						}
						return
					}
				}
				t.Errorf("ten kills came too late: this test tests nothing")
			})
		}
	}
}

// TestCollectedLarge: runner-correlate reads both logs to their trailer before the first
// kernel line. Three streams, each larger than every pipe buffer, do not deadlock.
func TestCollectedLarge(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	script := reports + fmt.Sprintf(`
		yes '{"not":"a decision"}' | head -c 40000000 >"$ASSAY_RUNNER_POLICY_DECISION_LOG" &
		yes '{"not":"an event"}' | head -c 40000000 >"$ASSAY_RUNNER_SDK_EVENT_LOG" & %s opens %s 100000; wait`, tool("shapes"), dir)
	a, _ := record(t, collecting(dir), "sh", "-c", script)
	if a.health.KernelLayer != "complete" || a.health.SDKLayer != "self_reported" || len(a.lines) < 100_000 {
		t.Errorf("%d kernel lines, %+v", len(a.lines), a.health)
	}
	var report schemas.Report
	decode(t, a.members["correlation-report.json"], &report)
	if codes := strings.Join(report.Ambiguities, " "); report.Status != "failed" || !strings.Contains(codes, "policy_log_flooded") || !strings.Contains(codes, "sdk_log_flooded") {
		t.Errorf("%s: %s", report.Status, codes)
	}
	for log, name := range map[string]string{"policy.log": schemas.StreamPolicyLog, "sdk.log": schemas.StreamSDKLog} {
		f, err := os.Open(filepath.Join(dir, log))
		if err != nil {
			t.Fatal(err)
		}
		r, err := stream.NewReader(f, log, name)
		for err == nil {
			_, err = r.Next()
		}
		if r == nil || r.Trailer() == nil || r.Trailer().Status != schemas.StatusPartial {
			t.Errorf("%s: %v", log, err)
		}
		f.Close()
	}
}

// TestCollectedSurvivor: what a process writes after the command's end is in the record,
// and the report says so.
func TestCollectedSurvivor(t *testing.T) {
	requireBPF(t)
	a, _ := record(t, []string{"--agent-shim", "openai-agents"}, "sh", "-c",
		reports+`exec 3>>"$ASSAY_RUNNER_SDK_EVENT_LOG"; { sleep 0.3; event run_failed; } >/dev/null 2>&1 &`)
	var report schemas.Report
	decode(t, a.members["correlation-report.json"], &report)
	if codes := strings.Join(report.Ambiguities, " "); codes != "sdk_log_writer_open_at_end sdk_log_written_after_end" {
		t.Errorf("%s: %s", report.Status, codes)
	}
	if n := strings.Count(string(a.members["layers/sdk.ndjson"]), "\n"); n != 4 {
		t.Errorf("%d SDK events, want 4", n)
	}
}
