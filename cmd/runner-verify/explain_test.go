package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The explanation of a run with all three layers, as people read it.
func TestExplain(t *testing.T) {
	code, out, errs := call(layered().digest(t).tar(t), "--explain")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	golden := filepath.Join("testdata", "explain.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("differs from %s:\n%s", golden, out)
	}
}

func TestExplainJSON(t *testing.T) {
	code, r := check(t, layered().digest(t).tar(t), "--explain")
	x := r.Explanation
	if code != 0 || x == nil || len(x.Calls) != 6 {
		t.Fatalf("exit %d, %+v", code, x)
	}
	denied, alone := x.Calls[1], x.Calls[5]
	if denied.SDK.Started != 1 || denied.Policy.Decision != "deny" || len(denied.Kernel.Effects) != 1 || len(denied.Ambiguities) != 2 {
		t.Errorf("%+v", denied)
	}
	if alone.Policy != nil || alone.Kernel != nil || alone.ToolCallID != "tc_9" || alone.Ambiguities[0] != "sdk_tool_call_without_policy_binding:tc_9" {
		t.Errorf("%+v", alone)
	}
	if len(x.Ambiguities) != 1 || !strings.HasPrefix(x.Ambiguities[0], "exec_without") {
		t.Errorf("%q", x.Ambiguities)
	}
	if _, r := check(t, layered().digest(t).tar(t)); r.Explanation != nil {
		t.Error("an explanation that nobody asked for")
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
	if code != 0 || !strings.Contains(out, "No tool call: neither the policy nor the SDK reports one.\n") || !strings.Contains(out, forbiddenClaim) {
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

// Every ambiguity has its words.
func TestEveryCodeHasWords(t *testing.T) {
	for _, k := range schemas.Ambiguities {
		args := map[schemas.AmbiguityArg]int{schemas.ArgPath: 1, schemas.ArgName: 1, schemas.ArgLine: 1}
		if w := codeWords[k.Code]; w == "" || strings.Count(w, "%s") != args[k.Arg] || strings.Count(w, "%") != args[k.Arg] {
			t.Errorf("%s: %q", k.Code, w)
		}
	}
	if len(codeWords) != len(schemas.Ambiguities) {
		t.Errorf("%d words for %d codes", len(codeWords), len(schemas.Ambiguities))
	}
	for entry, want := range map[string]string{
		"exec_without_tool_call:…":     "something else was executed by a process that is not known to be a tool server's (exec_without_tool_call:…)",
		"sdk_log_invalid:3:bad_seq":    "the SDK log is read up to a bad line (line 3: bad_seq) (sdk_log_invalid:3:bad_seq)",
		"tool_server_unknown:a b":      `the tool server "a b" is not in the process tree where its log says (tool_server_unknown:a b)`,
		"of_another_implementation:17": "of_another_implementation:17",
	} {
		if got := inWords(entry); got != want {
			t.Errorf("%s reads %q, expected %q", entry, got, want)
		}
	}
}
