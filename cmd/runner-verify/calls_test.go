package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// manyCalls is a valid archive with n tool calls in which nothing happened.
func manyCalls(n int) content {
	a := large(1, 1)
	var policy, bindings, codes strings.Builder
	for i := range n {
		id := fmt.Sprintf("call_%09d", i)
		policy.WriteString(decisionLine(i, id, "read_file", "allow", `"outcome":"completed","reason_code":"P_ALLOW_DEFAULT","policy_digest":"`+testDigest+`"`))
		if i > 0 {
			bindings.WriteByte(',')
			codes.WriteByte(',')
		}
		bindings.WriteString(bindingOf(id, "allow", 0, ""))
		codes.WriteString(`"decision_without_kernel_events:` + id + `"`)
	}
	a[bundle.PolicyName] = policy.String()
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"clean","bindings":[` + bindings.String() + `],"ambiguities":[],"notes":[` + codes.String() + `]}`
	a[bundle.SurfaceName] = strings.Replace(a[bundle.SurfaceName], `"mcp_tools":[],"policy_decisions":[]`, `"mcp_tools":["read_file"],"policy_decisions":["allow:read_file"]`, 1)
	a[bundle.HealthName] = strings.NewReplacer(`"policy_layer":"absent"`, `"policy_layer":"present"`, `shared memory"`,
		fmt.Sprintf(`shared memory","s4_policy_capture: decision_events=%d sessions=1 refused=0","s6_windows: call=0 setup=1 idle=0 agent=0"`, n)).Replace(a[bundle.HealthName])
	return a
}

// A report too large to be decoded twice is checked too, in bounded memory.
func TestManyCalls(t *testing.T) {
	const n = 30_000
	a := manyCalls(n)
	if len(a[bundle.ReportName]) < 2*archive.MaxSchemaChecked || len(a[bundle.ReportName]) < assertion.MaxReport {
		t.Fatalf("the report has %d bytes, expected a large one", len(a[bundle.ReportName]))
	}
	code, r := check(t, a.digest(t).tar(t))
	if code != 0 || r.Record.PolicyEvents != n {
		t.Fatalf("exit %d, %+v", code, r.Findings)
	}
	in := a.tar(t)
	v := newVerifier()
	defer v.close()
	collect()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := v.verify(t.Context(), strings.NewReader(string(in))); err != nil || v.total > 0 {
		t.Fatalf("%v, %+v", err, v.list)
	}
	collect()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 12*int64(len(a[bundle.ReportName])) {
		t.Errorf("%d bytes held for a report of %d", held, len(a[bundle.ReportName]))
	}
	code, out, _ := call(in, "--explain")
	if code != 0 || strings.Count(out, "\nTool call ") != n {
		t.Errorf("exit %d, %d calls explained", code, strings.Count(out, "\nTool call "))
	}
	if code, r := check(t, in, "--assert", ".report.status == \"clean\""); code != 1 || r.Findings[0].Rule != ruleAssert {
		t.Errorf("exit %d, %+v", code, r.Findings)
	}
	for _, edit := range [][2]string{{`"kernel_event_count":0`, `"kernel_event_count":1`}, {`call_000012345","policy`, `call_000012346","policy`},
		{`"decision_without_kernel_events:call_000021000",`, ``}} {
		b := manyCalls(n)
		b[bundle.ReportName] = strings.Replace(b[bundle.ReportName], edit[0], edit[1], 1)
		if code, r := check(t, b.digest(t).tar(t)); code != 1 || r.FindingCount == 0 {
			t.Errorf("%s: exit %d", edit[1], code)
		}
	}
}

// collect frees what pools keep too: they hold on to it for one collection more.
func collect() {
	runtime.GC()
	runtime.GC()
}
