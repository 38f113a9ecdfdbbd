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

// manyFiltered are so many values of one rule.
func manyFiltered(n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("loader.lib /lib/%06d", i)
	}
	return filteredOf(values...)
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
	good := filteredOf("introspect.proc /proc/[pid]/environ", "introspect.proc /proc/[pid]/task/[tid]/comm", "introspect.proc /proc/sys/x", "loader.cache /etc/ld.so.cache",
		"loader.usr_lib /usr/lib/a.so", "loader.usr_lib /usr/lib/node_modules/a.js", "runtime.node /a/node_modules/b.js", "tree.loader /lib/ld.so")
	code, out, errs := call(withFiltered("normalize_noise: table=v0 values=8 omitted=0", good).digest(t).tar(t), "-v")
	if code != 0 || !strings.Contains(out, "plain reads of 8 paths were left out as noise (rules v0): the layer filtered has all of them") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	full := manyFiltered(schemas.MaxFilteredValues)
	code, out, errs = call(withFiltered("normalize_noise: table=v0 values=16384 omitted=4", full).digest(t).tar(t), "-v")
	if code != 0 || !strings.Contains(out, "plain reads of 16388 paths were left out as noise (rules v0): 16384 of them are in the layer filtered") {
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
		{"twice", "table=v0 values=2 omitted=0", filteredOf("loader.lib /lib/a", "loader.lib /lib/a"), ruleFilteredLines},
		{"not sorted", "table=v0 values=2 omitted=0", filteredOf("loader.usr_lib /usr/lib/a", "loader.lib /lib/a"), ruleFilteredLines},
		{"a value of another rule", "table=v0 values=1 omitted=0", filteredOf("loader.cache /etc/shadow"), ruleFilteredLines},
		{"what no rule leaves out", "table=v0 values=1 omitted=0", filteredOf("introspect.dev /dev/shm/x"), ruleFilteredLines},
		{"a number of a process", "table=v0 values=1 omitted=0", filteredOf("introspect.proc /proc/7/maps"), ruleFilteredLines},
		{"a way out of the folder", "table=v0 values=1 omitted=0", filteredOf("loader.lib /lib/../etc/shadow"), ruleFilteredLines},
		{"a component without a name", "table=v0 values=1 omitted=0", filteredOf("loader.lib /lib//x"), ruleFilteredLines},
		{"a loader of its own", "table=v0 values=1 omitted=0", filteredOf("tree.loader /tmp/ld.so"), ruleFilteredLines},
		{"what the table keeps", "table=loader values=1 omitted=0", filteredOf("loader.usr_lib /usr/lib/node_modules/a.js"), ruleFilteredNote},
		{"omitted where there was room", "table=v0 values=1 omitted=9", filteredOf("loader.cache /etc/ld.so.cache"), ruleFilteredNote},
		{"more than there is room for", "table=v0 values=16385 omitted=0", manyFiltered(schemas.MaxFilteredValues + 1), ruleFilteredLines},
		{"no such rule", "table=v0 values=1 omitted=0", filteredOf("reach.memory /dev/mem"), ruleFilteredLines},
		{"no path", "table=v0 values=1 omitted=0", filteredOf("loader.lib lib/a"), ruleFilteredLines},
		{"not text form", "table=v0 values=1 omitted=0", []string{`{"schema":"assay.runner.filtered.v0","run_id":"` + runID + `","seq":0,"rule":"loader.lib","value":"/lib/\\q"}`}, ruleFilteredLines},
		{"other count", "table=v0 values=2 omitted=0", filteredOf("loader.lib /lib/a"), ruleFilteredNote},
		{"no member", "table=v0 values=1 omitted=0", nil, ruleFilteredNote},
		{"other table", "table=all values=1 omitted=0", filteredOf("loader.lib /lib/a"), ruleHealthNote},
		{"omitted alone", "table=v0 values=0 omitted=1", nil, ruleHealthNote},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, r := check(t, withFiltered("normalize_noise: "+c.note, c.lines).digest(t).tar(t))
			if !slices.Contains(rules(r), c.rule) || code != 1 {
				t.Errorf("exit %d, %v", code, r.Findings)
			}
		})
	}
	none := noCapture()
	none[schemas.MemberFiltered] = filteredOf("loader.lib /lib/a")[0] + "\n"
	none[bundle.HealthName] = strings.Replace(none[bundle.HealthName], `"]}`, `","normalize_noise: table=v0 values=1 omitted=0"]}`, 1)
	if code, r := check(t, none.digest(t).tar(t)); code != 1 || r.Findings[0].Rule != ruleFilteredNote {
		t.Errorf("without a capture: exit %d, %v", code, r.Findings)
	}
	a := layered()
	a[schemas.MemberFiltered] = strings.Join(good, "\n") + "\n"
	if code, r := check(t, a.digest(t).tar(t)); code != 1 || r.Findings[0].Rule != ruleFilteredNote {
		t.Errorf("without the note: exit %d, %v", code, r.Findings)
	}
}
