package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

func TestSummary(t *testing.T) {
	code, out, errs := call(sample().digest(t).tar(t))
	if code != 0 || errs != "" || strings.Contains(out, "claim") != strings.Contains(out, "What it claims, what it never claims") || strings.Contains(out, "s2_blind_spots") {
		t.Fatalf("exit %d, stderr %s\n%s", code, errs, out)
	}
	testkit.Golden(t, filepath.Join("testdata", "summary.txt"), []byte(out))
	code, out, errs = call(sample().digest(t).tar(t), "-v")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, stderr %s", code, errs)
	}
	for _, want := range []string{"stdin: valid\n", "identity  sha256:", "./agent.sh a b, exit code 0",
		"kernel=complete drops=0 cgroup=clean policy=present sdk=self_reported correlation=partial",
		"It never claims:\n  that a tool call caused", "  of each tool call that the policy decided: " + verdict.FullClaim + "\n", "Never: " + verdict.ForbiddenClaim + "\n",
		`tool call "tc_1" occurred in the window run_started to run_finished (the whole run), policy saw it (allow), and 4 kernel events of all processes were observed inside the measured cgroup during it; which of them are the call's is not known` + "\n",
		"s2_blind_spots: inherited descriptors (0); shared memory", "sdk_tool_call_without_policy_binding:tc_2"} {
		if !strings.Contains(out, want) {
			t.Errorf("summary lacks %q:\n%s", want, out)
		}
	}
}

func TestFindingLines(t *testing.T) {
	a := sample()
	a[bundle.KernelName] = strings.Replace(a[bundle.KernelName], `"seq":2`, `"seq":7`, 1)
	path := filepath.Join(t.TempDir(), "run.tar")
	if err := os.WriteFile(path, a.digest(t).tar(t), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(nil, path)
	want := "runner-verify: " + path + ": layers/kernel.ndjson:3: seq: seq is 7, expected 2\n"
	if code != 1 || out != "" || !strings.HasPrefix(errs, want) {
		t.Errorf("exit %d\nstdout %q\nstderr %q\nexpected %q", code, out, errs, want)
	}
}

// What a terminal would act on never reaches it.
func TestTerminalSafe(t *testing.T) {
	a := sample()
	a[bundle.EventsName] = strings.Replace(a[bundle.EventsName], "./agent.sh", `\u001b]0;x\u0007\u009b2J\u202e`, 1)
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "shared memory", `\u001b[31m\u2028`, 1)
	a[bundle.SurfaceName] = strings.Replace(a[bundle.SurfaceName], "/tmp/out", `/tmp/\u001b[2J`, 1)
	code, out, errs := call(a.digest(t).tar(t))
	b := sample()
	b[bundle.EventsName] = strings.Replace(b[bundle.EventsName], "./agent.sh", `\u001b]0;x\u0007`+"\u202e\u009b\u2028", 1)
	code2, out2, errs2 := call(b.digest(t).tar(t))
	if code != 1 || code2 != 0 {
		t.Errorf("exit %d and %d", code, code2)
	}
	for _, s := range []string{out, errs, out2, errs2} {
		for _, r := range s {
			if r < 0x20 && r != '\n' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x202e || r == 0x2028 {
				t.Errorf("%U in the output %q", r, s)
			}
		}
	}
}

func TestRequire(t *testing.T) {
	b := sample().digest(t).tar(t)
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"--require", "kernel=complete,drops=0,cgroup=clean,policy=present,sdk=self_reported,network=connect_only,success=true,run_id=run_test"}, 0},
		{[]string{"--require", "kernel=complete", "--require", "drops=5"}, 0},
		{[]string{"--require", "correlation=partial"}, 0},
		{[]string{"--require", "correlation=clean"}, 1},
		{[]string{"--require", "kernel=absent"}, 1},
		{[]string{"--require", "policy=absent"}, 1},
		{[]string{"--require", "run_id=run_other"}, 1},
		{[]string{"--require", "identity=sha256:" + strings.Repeat("0", 64)}, 1},
		{[]string{"--require", "kernel"}, 2},
		{[]string{"--require", "kernel=partial"}, 2},
		{[]string{"--require", "kernal=complete"}, 2},
		{[]string{"--require", ""}, 2},
		{[]string{"--require", "drops=-1"}, 2},
		{[]string{"--require", "events>0,kernel=complete"}, 0},
		{[]string{"--require", "events>4000"}, 1},
		{[]string{"--require", "events=4"}, 2},
		{[]string{"--require", "events"}, 2},
		{[]string{"--require", "events>x"}, 2},
		{[]string{"--require", "kernel>complete"}, 2},
		{[]string{"--require", "drops=99999999999999999999"}, 2},
		{[]string{"--require", "kernel=complete,kernel=absent"}, 2},
		{[]string{"--require", "kernel=complete,kernel=complete"}, 0},
		{[]string{"--assert", ".health.kernel_layer == \"complete\""}, 0},
		{[]string{"--assert", ".surface.network_endpoints | length == 1", "--assert", ".run.exit_code == 0"}, 0},
		{[]string{"--assert", ".report.bindings[0].kernel_event_count == 4 and (.manifest.files | length) == 7"}, 0},
		{[]string{"--assert", ".health.ringbuf_drops > 0"}, 1},
		{[]string{"--assert", ".nothing"}, 2},
		{[]string{"--assert", ".events == []"}, 2},
		{[]string{"--assert", ".surface.network_endpoints | length"}, 1},
		{[]string{"--assert", ".run.command"}, 1},
		{[]string{"--assert", "[.kernel[] | select(.kind == 1)] == [] or (.processes | length > 0)"}, 0},
		{[]string{"--assert", "empty"}, 1},
		{[]string{"--assert", "error(\"x\")"}, 1},
		{[]string{"--assert", "true, false"}, 1},
		{[]string{"--assert", "1 +"}, 2},
		{[]string{"--assert", "nosuch"}, 2},
		{[]string{"--assert", "env | length == 0"}, 2},
		{[]string{"--assert", "$ENV"}, 2},
		{[]string{"--assert", "input"}, 2},
		{[]string{"--assert", "[.[] | debug]"}, 2},
		{[]string{"--assert", "def f: now; f"}, 2},
		{[]string{"--assert", `import "x" as x; true`}, 2},
		{[]string{"--nosuch"}, 2},
		{[]string{"a", "b"}, 2},
		{[]string{filepath.Join(t.TempDir(), "missing")}, 5},
		{[]string{t.TempDir()}, 3},
	} {
		if code, out, errs := call(b, tc.args...); code != tc.code || code == 2 && !strings.Contains(errs, "hint:") {
			t.Errorf("%q: exit %d, expected %d\n%s%s", tc.args, code, tc.code, out, errs)
		}
	}
	_, _, errs := call(b, "--require", "kernal=complete")
	for _, d := range demands {
		if !strings.Contains(errs, d.allowed()) {
			t.Errorf("%q does not name %s", errs, d.allowed())
		}
	}
}

// A demand on an archive that is not valid is not met, whatever the record says.
func TestDemandsNeedValidity(t *testing.T) {
	a := sample()
	a[bundle.KernelName] = strings.Replace(a[bundle.KernelName], "/tmp/out", "/tmp/oxt", 1)
	code, r := check(t, a.digest(t).tar(t), "--require", "kernel=complete", "--assert", "true")
	if code != 1 || r.Met || len(r.Demands) != 2 || r.Demands[0].Met || r.Demands[1].Met {
		t.Errorf("exit %d, %+v", code, r)
	}
}

// An assertion that never ends is stopped, and one that was ended does not hold.
func TestAssertTime(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "the time limit of --assert", "it takes as long as it is; run without -short")
	}
	code, _, errs := call(sample().digest(t).tar(t), "--assert", "[range(infinite)] | length > 0 | not, (def f: f; f)")
	if code != 1 {
		t.Errorf("exit %d %s", code, errs)
	}
}

func TestResultSchema(t *testing.T) {
	b, err := os.ReadFile("../../schemas/verify-report-v0.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("r.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("r.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.(map[string]any)["examples"].([]any) {
		if err := s.Validate(e); err != nil {
			t.Error(err)
		}
	}
	bad := sample()
	bad[bundle.KernelName] += "x\n"
	bad["f"] = "x"
	valid := sample().digest(t).tar(t)
	for name, in := range map[string][]byte{"valid": valid, "bad": bad.digest(t).tar(t), "empty": nil, "layered": layered().digest(t).tar(t), "no calls": large(1, 1).digest(t).tar(t),
		"no kernel": withoutKernel(sample(), wholeRun).digest(t).tar(t), "cut": valid[:9000],
		"text": []byte("text"), "only a manifest": content{}.digest(t).tar(t)} {
		code, out, errs := call(in, "--json", "--explain", "--require", "kernel=absent", "--assert", "true")
		if strings.Count(out, "\n") != 1 || errs != "" {
			t.Errorf("%s: %q %q", name, out, errs)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("%s (exit %d): %v\n%s", name, code, err, out)
		}
	}
}

// The findings that tests provoke are all in the table, each id once.
func TestRuleTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range ruleTable {
		if seen[r.id] || r.checks == "" {
			t.Errorf("rule %q occurs twice or has no text", r.id)
		}
		seen[r.id] = true
		own := slices.ContainsFunc(archive.Rules[:], func(a archive.Rule) bool { return a.ID == r.id }) || r.id == ruleRequire || r.id == ruleAssert || r.id == ruleAttestation
		if n := len(r.every) + len(r.contract) + len(r.profile); n == 0 && !own {
			t.Errorf("rule %s has no check", r.id)
		}
		for _, c := range slices.Concat(r.every, r.contract, r.profile) {
			if (c.line == nil) == (c.run == nil) || c.line != nil && c.needs != needsNothing || c.run != nil && (c.member == "") == (c.needs == needsNothing) {
				t.Errorf("rule %s: a check has no moment, or two", r.id)
			}
		}
	}
	for _, r := range archive.Rules {
		if !seen[r.ID] {
			t.Errorf("rule %s of package archive is not in the table", r.ID)
		}
	}
	code, out, _ := call(nil, "--rules")
	if code != 0 || strings.Count(out, "\n") != len(ruleTable) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestUsage(t *testing.T) {
	code, out, errs := call(nil, "--help")
	if code != 0 || errs != "" || out != strings.TrimLeft(usage, "\n") {
		t.Errorf("exit %d, %q, %s", code, errs, out)
	}
	lines := strings.Split(strings.TrimSpace(usage), "\n")
	if len(lines) > 30 || !strings.Contains(usage, "Exit codes:") || !strings.HasPrefix(lines[len(lines)-1], "  runner-verify") {
		t.Errorf("usage has %d lines, or no exit codes, or no examples at its end", len(lines))
	}
}

// A surface that does not fit in memory is compared too.
func TestLargeSurface(t *testing.T) {
	a := large(60_000, 60_000)
	code, r := check(t, a.digest(t).tar(t))
	if code != 0 || r.Record.Surface["filesystem_paths"] != 60_000 {
		t.Fatalf("exit %d, %+v", code, r.Findings)
	}
	a[bundle.SurfaceName] = strings.Replace(a[bundle.SurfaceName], "/file0031000-", "/file0031000x", 1)
	code, r = check(t, a.digest(t).tar(t))
	if code != 1 || r.FindingCount != 2 || !slices.Equal(rules(r), []string{ruleSurfaceDerived}) {
		t.Fatalf("exit %d, %+v", code, r.Findings)
	}
	a[bundle.SurfaceName] += "\n"
	if _, r = check(t, a.digest(t).tar(t)); !slices.Contains(rules(r), archive.RuleDocumentForm) {
		t.Fatalf("%+v", r.Findings)
	}
	code, r = check(t, large(60_000, 60_000).digest(t).tar(t), "--assert", ".surface.filesystem_paths | length == 60000")
	if code != 1 || !slices.Equal(rules(r), []string{ruleAssert}) {
		t.Fatalf("exit %d, %+v", code, r.Findings)
	}
}

// large is a valid archive of n kernel lines over the given number of paths, of a cgroup that was
// there already: nothing in it was executed.
func large(n, paths int) content {
	a := sample()
	a[bundle.PolicyName], a[bundle.SDKName] = "", ""
	a[bundle.EventsName] = strings.NewReplacer(`"command":["./agent.sh","a b"]`, `"command":[]`, `"exit_code":0,"signal":null,"success":true`, `"exit_code":null,"signal":null,"success":false`, "openai-agents", "none", `"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"`, "").Replace(a[bundle.EventsName])
	var k, s strings.Builder
	for i := range n {
		k.WriteString(openLine(i, path(i%paths)))
	}
	s.WriteString(`{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":[`)
	for i := range paths {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "%q", path(i))
	}
	s.WriteString(`],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`)
	a[bundle.KernelName], a[bundle.SurfaceName] = k.String(), s.String()
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"clean","bindings":[],"ambiguities":[]}`
	a[bundle.HealthName] = fmt.Sprintf(`{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"absent","sdk_layer":"absent","cgroup_correlation":"clean","network_protocol_coverage":"absent","network_endpoint_claim_scope":"not_applicable","notes":["s2_kernel_capture: monitor_events=%d ringbuf_drops=0 network_protocol_coverage=absent network_endpoint_claim_scope=not_applicable","s2_blind_spots: inherited descriptors (0); shared memory"]}`, n)
	return a
}

func path(i int) string {
	return fmt.Sprintf("/home/build/work/some/longer/directory/of/a/project/file%07d-%s", i, strings.Repeat("ab", 16))
}
