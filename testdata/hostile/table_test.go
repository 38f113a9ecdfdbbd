//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The table of README.md is made from the results. No attack led to a record that claims to
// be whole and is not, no ordinary act to a doubtful one, and each attack was tried somewhere,
// with and without --harden.
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
		if tried[a.name] != 3 && !a.rude {
			t.Errorf("%s has no result with and without --harden: scripts/hostile.sh", a.name)
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
