package pack

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBuiltin: every pack of the program is valid, is named like its file, and has programs that need no
// whole record: a large archive can be judged, too.
func TestBuiltin(t *testing.T) {
	for _, name := range Names() {
		p, err := Open(name)
		testkit.Must(t, err)
		if p.Name != name || p.Source != schemas.PackBuiltin || p.PackRef.Check() != nil || p.Description == "" || len(p.Rules) == 0 {
			t.Errorf("%s: %+v", name, p.PackRef)
		}
		for _, m := range p.Mappings() {
			testkit.Must(t, m.Check())
		}
		for _, x := range p.Rules {
			if x.Assert.Reads("kernel") || x.Assert.Reads("surface") {
				t.Errorf("%s: it reads all lines, or the whole surface", p.FullID(x.ID))
			}
			if len(x.Needs) == 0 {
				t.Errorf("%s needs nothing", p.FullID(x.ID))
			}
		}
	}
}

const good = `schema: runner.pack.v0
name: mine
version: 1.0.0
kind: quality
frameworks:
  - {id: OWASP-ASI, title: Agents}
x-assay:
  requires_signals: [run_command]
rules:
  - id: one
    severity: error
    needs: [exit_status]
    assert: .run.success
    message: It failed.
    fix: Do it again.
    mappings: [{framework: OWASP-ASI, ref: ASI01}]
`

// TestProblems: what is wrong with a pack is said with its place, and with what to type.
func TestProblems(t *testing.T) {
	p, err := Parse("mine.yaml", []byte(good))
	testkit.Must(t, err)
	if p.FullID(p.Rules[0].ID) != "mine@1.0.0:one" || len(p.Mappings()) != 1 || p.Mappings()[0].Ref != "ASI01" {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ old, new, want string }{
		{"kind: quality", "kind: qualty", `mine.yaml:4:7: kind is "qualty"; expected one of quality, security, compliance, replay; type quality`},
		{"severity: error", "severty: error", `mine.yaml:11:5: unknown key "severty" in a rule; expected one of id, severity, needs, assert, none, message, fix, mappings; type severity:`},
		{"[run_command]", "[run_comand]", `unknown signal "run_comand"; expected a signal of the registry: runner-lint --signals lists them; type run_command`},
		{"[exit_status]", "[exit_status, exit_status]", "the signal exit_status is here twice"},
		{".run.success", ".rum.success", "assert: there is no .rum, did you mean .run?"},
		{".run.success", ".run.success and", "13:13: assert: "},
		{".run.success", "env.HOME == 1", "env is not available"},
		{"    assert: .run.success\n", "", "a rule has one program"},
		{"    assert: .run.success\n", "    assert: .run.success\n    none: .run\n", "a rule has one program"},
		{"framework: OWASP-ASI, ref", "framework: OWASP-AS, ref", "is not one of the pack"},
		{"version: 1.0.0", "version: 1.0", "version is the number"},
		{"version: 1.0.0", "version: v1", "MAJOR.MINOR.PATCH"},
		{"id: one", "id: requires-signals", "the rule that every pack has"},
		{"id: one", "id: One", "1 to 64 of a-z 0-9 -"},
		{"message: It failed.", `message: "a\u001b[31mb"`, "not one line"},
		{"name: mine\n", "", "the key name is missing; type name: my-pack"},
		{"runner.pack.v0", "runner.pack.v1", "schema is"},
		{"rules:", "rules: []\nrulez:", "0 entries"},
	} {
		_, err := Parse("mine.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		}
	}
	for _, c := range []struct{ name, want string }{{"cicd-startr", "there is no pack"}, {"./nowhere.yaml", "there is no pack file"}} {
		if _, err := Open(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	list, err := OpenAll([]string{Default, Default})
	testkit.Must(t, err)
	if len(list) != 1 || list[0].Name != Default {
		t.Errorf("%+v", list)
	}
}
