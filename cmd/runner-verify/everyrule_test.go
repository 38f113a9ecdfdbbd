package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// refused, if it is set, is told of every archive that a test gave to check, with the ids of
// the rules that it broke.
var refused func(test string, ids []string)

// specified is where the table of rules is.
const specified = "../../schemas/ARCHIVE.md"

// alongside are the rules that are never broken alone, and the one beside which they are: values
// that are not in order are not those of the layers either.
var alongside = map[string]string{archive.RuleSurfaceOrder: ruleSurfaceDerived}

// breaking are the tests whose archives break rules.
func breaking() []testing.InternalTest {
	return []testing.InternalTest{
		{Name: "TestMutations", F: TestMutations}, {Name: "TestManifestMutations", F: TestManifestMutations},
		{Name: "TestHostileContainers", F: TestHostileContainers}, {Name: "TestLossContradictions", F: TestLossContradictions},
		{Name: "TestNoteContradictions", F: TestNoteContradictions}, {Name: "TestOriginContradictions", F: TestOriginContradictions},
		{Name: "TestReportContradictions", F: TestReportContradictions}, {Name: "TestKernelContradictions", F: TestKernelContradictions},
		{Name: "TestForeignMutations", F: TestForeignMutations}, {Name: "TestTimesMutations", F: TestTimesMutations}, {Name: "TestTimesNote", F: TestTimesNote}, {Name: "TestFiltered", F: TestFiltered}, {Name: "TestTargets", F: TestTargets}, {Name: "TestRuleIDs", F: TestRuleIDs}, {Name: "TestProcesses", F: TestProcesses}, {Name: "TestIntents", F: TestIntents}, {Name: "TestWrapped", F: TestWrapped}, {Name: "TestWrappedConnects", F: TestWrappedConnects}, {Name: "TestProcessIDs", F: TestProcessIDs}, {Name: "TestJoins", F: TestJoins},
		{Name: "TestConfinementNote", F: TestConfinementNote}, {Name: "TestCaptureNotes", F: TestCaptureNotes},
		{Name: "TestEveryFalseCode", F: TestEveryFalseCode}, {Name: "TestExecsWithoutCall", F: TestExecsWithoutCall}, {Name: "TestAnyLayer", F: TestAnyLayer}, {Name: "TestTargets", F: TestTargets}, {Name: "TestRuleIDs", F: TestRuleIDs}, {Name: "TestRequireToolPolicy", F: TestRequireToolPolicy}, {Name: "TestOneRule", F: TestOneRule},
	}
}

// TestEveryRule: of every rule there is an archive that it alone refuses, and every check of a
// rule finds what is wrong in some archive. The table in the specification names the first test
// of each rule; -update writes it.
func TestEveryRule(t *testing.T) {
	alone, found := map[string]string{}, map[string]bool{}
	checks := watch(t, found)
	refused = func(test string, ids []string) {
		for _, id := range ids {
			if rest := slices.DeleteFunc(slices.Clone(ids), func(o string) bool { return o == id || o == alongside[id] }); len(rest) == 0 && alone[id] == "" {
				_, alone[id], _ = strings.Cut(test, "/")
			}
		}
	}
	t.Cleanup(func() { refused = nil })
	for _, test := range breaking() {
		t.Run(test.Name, test.F)
	}
	var table strings.Builder
	table.WriteString("| rule | what holds | refused by this rule alone |\n|---|---|---|\n")
	for _, r := range ruleTable {
		if alone[r.id] == "" {
			t.Errorf("no test makes an archive that %s alone refuses", r.id)
		}
		beside := ""
		if other := alongside[r.id]; other != "" {
			beside = ", with `" + other + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | `%s`%s |\n", r.id, r.checks, alone[r.id], beside)
	}
	for _, c := range checks {
		if !found[c] {
			t.Errorf("no test makes an archive in which %s finds something", c)
		}
	}
	inSpecification(t, table.String())
}

// watch puts a watch on every check of every rule. A check's name is its rule, the archives
// that it is for, and its place among them.
func watch(t *testing.T, found map[string]bool) (names []string) {
	old := ruleTable
	t.Cleanup(func() { ruleTable = old })
	ruleTable = slices.Clone(old)
	for i := range ruleTable {
		r := &ruleTable[i]
		for kind, list := range map[string]*[]condition{"every": &r.every, "contract": &r.contract, "profile": &r.profile} {
			*list = slices.Clone(*list)
			for j := range *list {
				name := fmt.Sprintf("%s, %s[%d]", r.id, kind, j)
				c := &(*list)[j]
				if !c.notes {
					names = append(names, name)
				}
				if line := c.line; line != nil {
					c.line = func(v *verifier, l *archive.Line) {
						before := v.total
						line(v, l)
						found[name] = found[name] || v.total > before
					}
				}
				if run := c.run; run != nil {
					c.run = func(v *verifier) {
						before := v.total
						run(v)
						found[name] = found[name] || v.total > before
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// inSpecification compares the specification's table of rules with this one.
func inSpecification(t *testing.T, table string) {
	text := string(testkit.Read(t, specified))
	before, rest, there := strings.Cut(text, "<!-- rules -->\n")
	old, after, closed := strings.Cut(rest, "<!-- end -->")
	switch {
	case !there || !closed:
		t.Errorf("%s has no table of rules", specified)
	case old == table:
	case testkit.Update() && !t.Failed():
		testkit.Must(t, os.WriteFile(specified, []byte(before+"<!-- rules -->\n"+table+"<!-- end -->"+after), 0o644))
	default:
		t.Errorf("%s: the table of rules is not that of the tests: go test ./cmd/runner-verify -run TestEveryRule -update, then read the difference", specified)
	}
}
