package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// Counts have the right singular or plural, also if events were lost.
func TestClaimNumbers(t *testing.T) {
	binding := func(n uint64, w schemas.Window) string {
		decision := "allow"
		return bindingClaim(schemas.LayerPartial, &schemas.Binding{ToolCallID: "a", PolicyDecision: &decision, KernelEventCount: n, Window: w, KernelScope: schemas.ScopeRun})
	}
	for n, want := range map[uint64]string{0: "0 kernel events", 1: "1 kernel event", 2: "2 kernel events"} {
		words := fmt.Sprintf("and %s of all processes except known tool servers%s observed inside the measured cgroup during it", want, was(n))
		if got := binding(n, schemas.CallWindow("a")); !strings.HasSuffix(got, words) {
			t.Errorf("%q, expected %q", got, words)
		}
		// Without events there is nothing that could be the call's or not.
		if got := binding(n, schemas.RunWindow); strings.HasSuffix(got, "is not known") != (n > 0) {
			t.Errorf("%q", got)
		}
	}
	for claim, of := range map[string]string{FullClaim: AllowedClaim(schemas.LayerPartial, 1), "": AllowedClaim(schemas.LayerPartial, 0)} {
		if of != claim {
			t.Errorf("%q of a partial kernel layer, expected %q", of, claim)
		}
	}
}

// A cgroup has no exit code: how its capture ended follows from the notes, if they are of this runner.
func TestEnding(t *testing.T) {
	kernel, end := schemas.NoteKernel.Code+": monitor_events=3", schemas.NoteEnd.Code+": "+schemas.NoteEnd.Tail
	code, signal := 7, 9
	for _, x := range []struct {
		rec  Record
		want string
	}{
		{Record{Command: []string{"a", "b"}, ExitCode: &code}, "a b, exit code 7"}, {Record{Command: []string{"a"}, Signal: &signal}, "a, killed by signal 9"},
		{Record{Command: []string{"a"}, Origin: schemas.OriginRunner, Notes: []string{kernel}}, "a, end not seen"},
		{Record{Origin: schemas.OriginRunner, Notes: []string{kernel}}, "an existing cgroup, seen until it was empty"},
		{Record{Origin: schemas.OriginRunner, Notes: []string{kernel, end}}, "an existing cgroup, seen until a signal ended the capture"},
		{Record{Origin: schemas.OriginRunner, Notes: []string{kernel, schemas.NoteEnd.Code + ": " + schemas.NoteEnd.Former[0]}}, "an existing cgroup, seen until a signal ended the capture"},
		{Record{Origin: schemas.OriginContract, Notes: []string{kernel}}, "an existing cgroup, end not seen"},
		{Record{Origin: schemas.OriginRunner, Notes: []string{schemas.NoteContractOnly.Code + ": " + schemas.ContractOnlyNotRequested}}, "an existing cgroup, end not seen"},
	} {
		if got := Ending(&x.rec); got != x.want {
			t.Errorf("%+v: %q, expected %q", x.rec, got, x.want)
		}
	}
}

// Every ambiguity has a text.
func TestEveryCodeHasWords(t *testing.T) {
	said := 0
	for _, k := range schemas.Ambiguities() {
		w, args := codeWords[k.Code], map[schemas.AmbiguityArg]int{schemas.ArgPath: 1, schemas.ArgName: 1, schemas.ArgEffect: 1}[k.Arg]
		if k.Layer != nil {
			w, args = faultWords[k.Fault], 1
		} else {
			said++
		}
		if w == "" || strings.Count(w, "%s") != args || strings.Count(w, "%") != args {
			t.Errorf("%s: %q", k.Code, w)
		}
	}
	if len(codeWords) != said {
		t.Errorf("%d words for %d codes", len(codeWords), said)
	}
	for entry, want := range map[string]string{
		"exec_without_tool_call:…":     "something else was executed by a process that is not known to be a tool server's (exec_without_tool_call:…)",
		"sdk_log_invalid:3:bad_seq":    "the SDK log was read up to a bad line (line 3: bad_seq) (sdk_log_invalid:3:bad_seq)",
		"sdk_log_flooded":              "the SDK log exceeded its limits (sdk_log_flooded)",
		"policy_log_invalid:2:bad_seq": "the decision log was read up to a bad line: decisions may be missing (line 2: bad_seq) (policy_log_invalid:2:bad_seq)",
		"policy_log_truncated":         "the decision log's last line was not written to its end (policy_log_truncated)",
		"policy_log_empty":             "the decision log was requested, but it is empty (policy_log_empty)",
		"tool_server_unknown:a b":      `the tool server "a b" is not at its logged place in the process tree (tool_server_unknown:a b)`,
		"of_another_implementation:17": "of_another_implementation:17",
	} {
		if got := InWords(entry); got != want {
			t.Errorf("%s reads %q, expected %q", entry, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, tc := range [][2]string{{"a b", "a b"}, {"\x1b[2J", `\x1b[2J`}, {"\u202e", `\u202e`}, {"\xff", `\xff`}, {"äöü", "äöü"}, {"0123456789", "01234567…"}} {
		if got := Printable(tc[0], 8); got != tc[1] {
			t.Errorf("%q reads %q, expected %q", tc[0], got, tc[1])
		}
	}
}

// A report that is incomplete or not from runner-verify is refused.
func TestParse(t *testing.T) {
	for in, ok := range map[string]bool{
		`{"schema":"runner.verify_report.v0","valid":false,"record":null}`: true,
		`{"schema":"runner.verify_report.v0","valid":true,"record":null}`:  false,
		`{"schema":"runner.verify_report.v1","valid":false}`:               false,
		`{"schema":"runner.verify_report.v0","valid":fal`:                  false,
	} {
		if r, err := Parse([]byte(in)); (err == nil) != ok || (r != nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestAuditedCall: a call that was only audited is not shown as one that the policy wants.
func TestAuditedCall(t *testing.T) {
	got := policyWords(&CallPolicy{Decision: schemas.DecisionAllow, ReasonCode: schemas.ReasonAllowAudit, WouldDeny: schemas.ReasonDenyRule, Outcome: "completed"}, &Record{})
	if got != "allowed it (P_ALLOW_AUDIT), though it would deny it: P_DENY_RULE, outcome completed" {
		t.Error(got)
	}
}
