package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// The explanation of a run with all three layers, as people read it.
func TestExplain(t *testing.T) {
	code, out, errs := call(layered().digest(t).tar(t), "--explain")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	testkit.Golden(t, filepath.Join("testdata", "explain.txt"), []byte(out))
}

func TestExplainJSON(t *testing.T) {
	code, r := check(t, layered().digest(t).tar(t), "--explain")
	x := r.Explanation
	if code != 0 || x == nil || len(x.Calls) != 6 {
		t.Fatalf("exit %d, %+v", code, x)
	}
	denied, onlySDK := x.Calls[1], x.Calls[5]
	if denied.SDK.Started != 1 || denied.Policy.Decision != "deny" || len(denied.Kernel.Effects) != 1 || len(denied.Ambiguities) != 1 || len(denied.Notes) != 1 {
		t.Errorf("%+v", denied)
	}
	if onlySDK.Policy != nil || onlySDK.Kernel != nil || onlySDK.ToolCallID != "tc_9" || onlySDK.Ambiguities[0] != "sdk_tool_call_without_policy_binding:tc_9" {
		t.Errorf("%+v", onlySDK)
	}
	if !slices.Equal(x.Notes, []string{"server_effect_before_calls:exec /usr/bin/files"}) {
		t.Errorf("%q", x.Notes)
	}
	if len(x.Ambiguities) != 1 || !strings.HasPrefix(x.Ambiguities[0], "exec_without") {
		t.Errorf("%q", x.Ambiguities)
	}
	for set, n := range r.Record.Surface {
		if have := uint64(len(x.Surface[set])); have != min(n, verdict.MaxSurfaceValues) {
			t.Errorf("%s: %d values explained of %d", set, have, n)
		}
	}
	if n := len(x.Refusals); n != 2 || x.Refusals[0].Rules != "network rules" || x.Refusals[1].First[0].Value != "/etc/shadow" || *x.Refusals[1].First[0].Rule != 1 {
		t.Errorf("%+v", x.Refusals)
	}
	if _, r := check(t, layered().digest(t).tar(t)); r.Explanation != nil {
		t.Error("an explanation without --explain")
	}
	a := layered()
	a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], "partial", "clean", 1)
	if code, out, _ := call(a.digest(t).tar(t), "--explain"); code != 1 || out != "" {
		t.Errorf("an archive that is not valid is explained: exit %d, %s", code, out)
	}
}

// Archives without layers, and of other implementations, are explained too.
func TestExplainLess(t *testing.T) {
	a := large(2, 1)
	code, out, errs := call(a.digest(t).tar(t), "--explain")
	if code != 0 || !strings.Contains(out, "No tool call: neither the policy nor the SDK reports one.\n") || !strings.Contains(out, verdict.ForbiddenClaim) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs = call(foreign().digest(t).tar(t), "--explain")
	if code != 0 || !strings.Contains(out, "kernel  saw 4 events of all processes in the whole run") || !strings.Contains(out, "policy  did not see it") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// What the measured program chose cannot act on the terminal.
func TestExplainIsTerminalSafe(t *testing.T) {
	const evil = `\u001b]0;x\u0007` + "\u202e\u009b2J"
	a := sample()
	for _, member := range []string{bundle.PolicyName, bundle.SDKName, bundle.ReportName, bundle.SurfaceName} {
		a[member] = strings.NewReplacer("tc_1", "tc_1"+evil, "tc_2", "tc_2"+evil, "read_file", "read"+evil).Replace(a[member])
	}
	code, out, errs := call(a.digest(t).tar(t), "--explain")
	if code != 0 || !strings.Contains(out, `tc_1\x1b`) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for _, r := range out {
		if r < 0x20 && r != '\n' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x202e {
			t.Errorf("%U in %q", r, out)
		}
	}
}

// The JSON document has all that the text of --explain says: another tool can
// print the same.
func TestExplainFromJSON(t *testing.T) {
	for name, a := range map[string]content{"layered": layered(), "foreign": foreign(), "no calls": large(2, 1), "sample": sample(),
		"no kernel": withoutKernel(sample(), wholeRun), "no kernel, windows": withoutKernel(withSession(sample()), ownWindow), "SDK only": withoutPolicy(sample())} {
		in := a.digest(t).tar(t)
		code, want, errs := call(in, "--explain")
		_, document, _ := call(in, "--json", "--explain")
		r, err := verdict.Parse([]byte(strings.TrimSuffix(document, "\n")))
		if code != 0 || err != nil {
			t.Fatalf("%s: exit %d, %v: %s", name, code, err, errs)
		}
		var got strings.Builder
		verdict.WriteRecord(&got, r)
		verdict.WriteExplanation(&got, r)
		if got.String() != want {
			t.Errorf("%s: the document reads\n%s\nexpected\n%s", name, got.String(), want)
		}
	}
}

// What rules refused is named once with its rule, and counted to the end.
func TestExplainRefusals(t *testing.T) {
	a, want := layered(), "Refused by the file rules, 27 times (runner-policy --check prints the rules):\n  /etc/shadow, by rule 1, 3 times\n  /etc/shadow, by default\n"
	add := func(value string, rule int) {
		line := strings.Count(a[bundle.KernelName], "\n")
		a[bundle.KernelName] += kernelLine(line, fmt.Sprintf(`"event_type":10,"kind":"file_blocked","value":%q,"cgroup_id":9,"rule_id":%d`, value, rule))
	}
	add("/etc/shadow", 1)
	add("/etc/shadow", 0)
	add("/etc/shadow", 1)
	var more []string
	for i := range 23 {
		more = append(more, fmt.Sprintf("/x%02d", i))
		if add(more[i], 1); i < 18 {
			want += "  " + more[i] + ", by rule 1\n"
		}
	}
	want += "  … and other things, 5 times\n"
	a[bundle.SurfaceName] = strings.Replace(a[bundle.SurfaceName], `"/work/tmp"]`, `"/work/tmp","`+strings.Join(more, `","`)+`"]`, 1)
	a[bundle.HealthName] = strings.NewReplacer("monitor_events=10", "monitor_events=36", "agent=4", "agent=30", "rules=1 blocked=1", "rules=1 blocked=27").Replace(a[bundle.HealthName])
	code, out, errs := call(a.digest(t).tar(t), "--explain")
	if code != 0 || !strings.Contains(out, want) || strings.Count(out, "Refused by") != 2 {
		t.Errorf("exit %d: %s\n%s\nexpected %s", code, errs, out, want)
	}
}
