package gatepolicy

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/jq"
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
	_, input, _ := strings.Cut(text, "\n### Input\n")
	input, _, _ = strings.Cut(input, "\n## ")
	for section, item := range map[string]*jq.Shape{"files": jq.OfType(reflect.TypeFor[gate.File]()), "intents": jq.OfType(reflect.TypeFor[gate.Intent]()), "network": jq.OfType(reflect.TypeFor[gate.Exchange]()),
		"calls": jq.OfType(reflect.TypeFor[gate.Call]()), "evidence": jq.OfType(reflect.TypeFor[gate.Evidence]())} {
		_, row, _ := strings.Cut(input, "\n| `"+section+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		for k := range item.Keys {
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

// TestStarters: the policies to start with say what their comments say.
func TestStarters(t *testing.T) {
	read := func(name string) *Policy {
		return parse(t, string(testkit.Read(t, "../../../scripts/examples/gate/"+name)))
	}
	in := all()
	in.Intents = nil
	d, needs := decide(t, read("strict.yaml"), in)
	if !d.Bundle.Allowed || d.Bundle.RequiresApproval || len(needs) != 0 {
		t.Errorf("%+v", d)
	}
	setuid := file(0, "add", "a", "file", 1)
	setuid.After.Mode = 0o4755
	for want, f := range map[string]gate.File{
		"hidden": file(0, "add", ".git/hooks/post-commit", "file", 1), "hidden ": file(0, "modify", "a/b/.npmrc", "file", 1), "hidden  ": file(0, "mode", ".", "dir", 0), "special-modes": setuid, "": file(0, "delete", "a", "file", 1),
		" ": file(0, "add", "a", "file", 1<<20+1), "  ": file(0, "add", "a", "symlink", 0),
	} {
		if d, _ := decide(t, read("strict.yaml"), &gate.Input{Evidence: in.Evidence, Files: []gate.File{f}}); d.Bundle.Allowed || d.Files[0].Rule != strings.TrimSpace(want) {
			t.Errorf("%s: %+v", want, d)
		}
	}
	in.Evidence.Complete = false
	if d, _ := decide(t, read("strict.yaml"), in); !slices.Equal(d.Bundle.Reasons, []string{"required:whole-evidence"}) {
		t.Errorf("%+v", d)
	}
	d, needs = decide(t, read("ask.yaml"), all())
	if !d.Bundle.Allowed || !d.Files[0].RequiresApproval || !d.Intents[0].RequiresApproval || !d.Network[0].RequiresApproval || !d.Calls[0].RequiresApproval || len(needs) != 1 || needs[0].Count != 1 {
		t.Errorf("%+v %+v", d, needs)
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
