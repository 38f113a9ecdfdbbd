package gatepolicy

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const document = "../../../schemas/GATE.md"

// TestDocument: the policies of GATE.md are policies, and the first one says of its input what the document says. Its table
// of keys is that of the code, and so are the keys of the input.
func TestDocument(t *testing.T) {
	text := string(testkit.Read(t, document))
	blocks := map[string][]string{}
	for _, m := range regexp.MustCompile("(?s)```([a-z ]+)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	for _, b := range blocks["yaml"] {
		parse(t, b)
	}
	if len(blocks["yaml"]) == 0 || len(blocks["json input"]) != 1 || len(blocks["json decision"]) != 1 {
		t.Fatalf("%q", blocks)
	}
	in := new(gate.Input)
	testkit.Must(t, schemas.Unmarshal([]byte(blocks["json input"][0]), in))
	p := parse(t, blocks["yaml"][0])
	d, needs := decide(t, p, in)
	if got, want := marshal(t, d), strings.ReplaceAll(blocks["json decision"][0], "\n", ""); got != want {
		t.Errorf("%s\nthe document has\n%s", got, want)
	}
	if len(needs) != 1 || needs[0].Why != "rule small-orders" || needs[0].Count != 1 || len(needs[0].Keys) != 1 || needs[0].Keys[0] != p.Keys()[0].String() {
		t.Errorf("%+v", needs)
	}
	if b, found := p.Rollback(&in.Intents[0]); !found || marshal(t, b.Plan()) != marshal(t, in.Intents[0].Rollback) {
		t.Errorf("rollback %+v, %v", b, found)
	}
	for _, k := range ruleKeys {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + k.name + "`[^|]*\\|").MatchString(text) {
			t.Errorf("no row for the key %s", k.name)
		}
	}
	for section, keys := range map[string][]string{"files": keysOf[gate.File](), "intents": keysOf[gate.Intent](), "network": keysOf[gate.Exchange](), "calls": keysOf[gate.Call](), "evidence": keysOf[gate.Evidence]()} {
		_, row, _ := strings.Cut(text, "\n| `"+section+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		for _, k := range keys {
			if !strings.Contains(row, "`"+k+"`") {
				t.Errorf("the row of %s has no %s", section, k)
			}
		}
	}
	for _, reason := range []string{reasonRule, reasonDefault, reasonRequired, reasonError, reasonURLPath, reasonUndecided, reasonBundle, reasonPolicy, reasonApproval, reasonApprovalAll, "unknown_intent_type:", "not_readable:"} {
		if !strings.Contains(text, "`"+reason) {
			t.Errorf("the document has no reason %s", reason)
		}
	}
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := schemas.Marshal(v)
	testkit.Must(t, err)
	if !json.Valid(b) {
		t.Errorf("%s", b)
	}
	return string(b)
}
