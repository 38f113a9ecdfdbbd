package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

func filteredOf(values ...string) (lines []string) {
	for i, v := range values {
		rule, value, _ := strings.Cut(v, " ")
		lines = append(lines, fmt.Sprintf(`{"schema":"assay.runner.filtered.v0","run_id":%q,"seq":%d,"rule":%q,"value":%q}`, runID, i, rule, value))
	}
	return lines
}

// withFiltered is layered with the layer filtered and its note.
func withFiltered(note string, lines []string) content {
	a := layered()
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `agent=4"]`, `agent=4","`+note+`"]`, 1)
	if len(lines) > 0 {
		a[schemas.MemberFiltered] = strings.Join(lines, "\n") + "\n"
	}
	return a
}

// TestFiltered: a set of paths by known rules is valid, and the summary counts it; what is
// wrong with it has its rule.
func TestFiltered(t *testing.T) {
	good := filteredOf("loader.cache /etc/ld.so.cache", "loader.usr_lib /usr/lib/a.so", "tree.loader /lib/ld.so")
	code, out, errs := call(withFiltered("normalize_noise: table=v0 values=3 omitted=4", good).digest(t).tar(t), "-v")
	if code != 0 || !strings.Contains(out, "plain reads of 7 paths were left out as noise (rules v0): 3 of them are in the layer filtered") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := call(withFiltered("normalize_noise: table=none values=0 omitted=0", nil).digest(t).tar(t)); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, c := range []struct {
		name  string
		note  string
		lines []string
		rule  string
	}{
		{"twice", "table=v0 values=2 omitted=0", filteredOf("loader.cache /a", "loader.cache /a"), ruleFilteredLines},
		{"not sorted", "table=v0 values=2 omitted=0", filteredOf("loader.usr_lib /a", "loader.cache /a"), ruleFilteredLines},
		{"no such rule", "table=v0 values=1 omitted=0", filteredOf("reach.memory /dev/mem"), ruleFilteredLines},
		{"no path", "table=v0 values=1 omitted=0", filteredOf("loader.cache a"), ruleFilteredLines},
		{"not text form", "table=v0 values=1 omitted=0", []string{`{"schema":"assay.runner.filtered.v0","run_id":"` + runID + `","seq":0,"rule":"loader.cache","value":"/\\q"}`}, ruleFilteredLines},
		{"other count", "table=v0 values=2 omitted=0", filteredOf("loader.cache /a"), ruleFilteredNote},
		{"no member", "table=v0 values=1 omitted=0", nil, ruleFilteredNote},
		{"other table", "table=all values=1 omitted=0", filteredOf("loader.cache /a"), ruleHealthNote},
		{"omitted alone", "table=v0 values=0 omitted=1", nil, ruleHealthNote},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, r := check(t, withFiltered("normalize_noise: "+c.note, c.lines).digest(t).tar(t))
			if !slices.Contains(rules(r), c.rule) || code != 1 {
				t.Errorf("exit %d, %v", code, r.Findings)
			}
		})
	}
	a := layered()
	a[schemas.MemberFiltered] = strings.Join(good, "\n") + "\n"
	if code, r := check(t, a.digest(t).tar(t)); code != 1 || r.Findings[0].Rule != ruleFilteredNote {
		t.Errorf("without the note: exit %d, %v", code, r.Findings)
	}
}
