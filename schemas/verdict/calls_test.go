package verdict

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// What a call named stands before what was decided and what the kernel saw of it.
func TestCallTargets(t *testing.T) {
	call := Call{ToolCallID: "c1", Policy: &CallPolicy{Tool: "fetch", Decision: schemas.DecisionAllow, RuleID: "r", Outcome: "completed",
		Targets: []string{"/w/a", "/w/never\n", "example.com:443", "nothing.example:1"}},
		Kernel: &CallKernel{Window: schemas.CallWindow("c1"), Scope: schemas.ScopeToolServer, Events: 3,
			Effects: []string{"connect 1.2.3.4:443", "failed-read /etc/x", "read /etc/passwd", "read /w/a"}}}
	r := &Report{Record: &Record{PolicyLayer: schemas.LayerPresent, KernelLayer: schemas.LayerComplete}, Explanation: &Explanation{Calls: []Call{call}}}
	var b strings.Builder
	WriteCalls(&b, r)
	want := `  asked   /w/a
          not touched in this record: /w/never\n
          by name, which the kernel does not see: example.com:443
          by name, which the kernel does not see: nothing.example:1
  policy  allowed it by rule r, outcome completed
  kernel  saw 3 events of the tool server's processes from tool_call_started:c1 to tool_call_finished:c1
            connect 1.2.3.4:443
            failed-read /etc/x
    unasked read /etc/passwd
            read /w/a
`
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s\nexpected at its end\n%s", b.String(), want)
	}
	for i := range 30 {
		call.Policy.Targets = append(call.Policy.Targets, strings.Repeat("x", i+1)+":1")
	}
	r.Explanation.Calls[0].Policy.TargetsCut = true
	b.Reset()
	WriteCalls(&b, r)
	for _, want := range []string{"… and 24 more\n", "… and others, which the record does not name\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "unasked") {
		t.Errorf("what was not named is not known:\n%s", b.String())
	}
}
