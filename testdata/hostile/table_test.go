//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The table of README.md is made from the results. No attack led to a record that claims to
// be whole and is not, no ordinary act to a doubtful one, and each attack was tried somewhere,
// without options and with --harden.
func TestTable(t *testing.T) {
	r, err := readResults("results")
	testkit.Must(t, err)
	tried := map[string]int{}
	for kernel, lines := range r {
		for _, l := range lines {
			tried[l.Attack] |= map[bool]int{false: 1, true: 2}[l.Harden]
			if l.Result != "ok" || l.Outcome == clean || l.Outcome == doubtful {
				t.Errorf("%s, %s, harden %v: %s, %s", kernel, l.Attack, l.Harden, l.Outcome, l.Detail)
			}
		}
	}
	for _, a := range attacks {
		if tried[a.name] != 3 {
			t.Errorf("%s has no result with and without --harden: scripts/hostile.sh, or a machine of its own", a.name)
		}
	}
	const begin, end = "<!-- table: attacks -->\n", "<!-- end -->"
	text := string(testkit.Read(t, "README.md"))
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("README.md has no place for the table")
	}
	again := before + begin + r.table() + end + after
	if again == text {
		return
	}
	if !testkit.Update() {
		t.Error("the table is not that of the results: go test ./testdata/hostile -update")
		return
	}
	testkit.Write(t, "README.md", []byte(again))
}

// A line that is there replaces an older one of the same attack and mode, wherever the
// console began it.
func TestMerge(t *testing.T) {
	file := t.TempDir() + "/1.2.ndjson"
	one := func(attack, harden, outcome string) string {
		return `{"check":"x","attack":"` + attack + `","harden":` + harden + `,"outcome":"` + outcome + "\"}\n"
	}
	for _, text := range []string{one("leave", "false", "told") + one("clock", "false", "told"), "booted " + one("leave", "false", "prevented") + "a line\n" + one("leave", "true", "told")} {
		testkit.Must(t, merge(file, strings.NewReader(text)))
	}
	want := one("leave", "false", "prevented") + one("clock", "false", "told") + one("leave", "true", "told")
	if got := string(testkit.Read(t, file)); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}
