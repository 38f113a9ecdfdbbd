package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// timesOf are the lines of the layer times of layered: its anchor, then 10 kernel
// lines, 5 decisions and 6 SDK lines.
func timesOf() (lines []string) {
	add := func(rest string) {
		lines = append(lines, fmt.Sprintf(`{"schema":"assay.runner.time.v0","run_id":%q,"seq":%d,`, runID, len(lines))+rest)
	}
	add(`"type":"anchor","clock":"CLOCK_MONOTONIC","wall_clock":"CLOCK_REALTIME","wall_ns":1700000000000000000,"finished_ns":900}`)
	for i, ns := range []int{500, 499, 20, 30, 496, 99, 494, 493, 492, 491} { // two lines in the window of tc_1, one at the end of tc_4
		add(fmt.Sprintf(`"type":"line","layer":"kernel","line":%d,"source":"kernel","ns":%d}`, i, ns))
	}
	for i, at := range []string{`20,"end_ns":30`, `31,"end_ns":31`, "100", `40,"end_ns":45`, `50,"end_ns":99`} {
		add(fmt.Sprintf(`"type":"line","layer":"policy","line":%d,"source":"proxy","ns":%s}`, i, at))
	}
	for i := range 6 {
		add(fmt.Sprintf(`"type":"line","layer":"sdk","line":%d,"source":"received","ns":%d}`, i, 10*i))
	}
	return lines
}

// timed is layered with times.
func timed(lines []string) content {
	a := layered()
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `agent=4"]`, `agent=4","s7_times: lines=21"]`, 1)
	a[schemas.MemberTimes] = strings.Join(lines, "\n") + "\n"
	return a
}

// TestTimes: times are valid, and without them the archive has the identity of the
// same run without times.
func TestTimes(t *testing.T) {
	plain := layered().digest(t).tar(t)
	_, want := check(t, plain)
	code, r := check(t, timed(timesOf()).digest(t).tar(t))
	if code != 0 || !r.Valid || r.Identity == want.Identity || r.IdentityWithoutTimes != want.Identity || want.IdentityWithoutTimes != "" {
		t.Errorf("exit %d, %v, identity %s, without times %s, expected %s", code, r.Findings, r.Identity, r.IdentityWithoutTimes, want.Identity)
	}
	for _, in := range [][]byte{plain, timed(timesOf()).digest(t).tar(t)} {
		if code, out, errs := call(in, "--require", "identity_without_times="+want.Identity); code != 0 {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
	}
	if _, out, _ := call(timed(timesOf()).digest(t).tar(t)); !strings.Contains(out, "          "+want.Identity+" without times\n") {
		t.Error(out)
	}
}

// TestTimesMutations: what is wrong with the layer times has its rule.
func TestTimesMutations(t *testing.T) {
	// edit replaces text in one line and numbers the lines anew.
	edit := func(i int, old, fresh string) func([]string) []string {
		return func(lines []string) []string {
			if !strings.Contains(lines[i], old) {
				t.Fatalf("line %d has no %s: %s", i, old, lines[i])
			}
			lines[i] = strings.Replace(lines[i], old, fresh, 1)
			return lines
		}
	}
	twice := func(f, g func([]string) []string) func([]string) []string {
		return func(lines []string) []string { return g(f(lines)) }
	}
	for _, c := range []struct {
		name string
		edit func([]string) []string
		want string
	}{
		{"a time missing", func(l []string) []string { return slices.Delete(l, 5, 6) }, ruleTimesLines},
		{"the last time missing", func(l []string) []string { return l[:len(l)-1] }, ruleTimesLines + " " + ruleTimesNote},
		{"a time doubled", func(l []string) []string { return slices.Insert(l, 5, l[5]) }, ruleTimesLines},
		{"two times exchanged", func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, ruleTimesLines},
		{"no anchor", func(l []string) []string { return l[1:] }, ruleTimesLines},
		{"two anchors", func(l []string) []string { return slices.Insert(l, 1, l[0]) }, ruleTimesLines},
		{"nothing at all", func([]string) []string { return nil }, "lines.form"},
		{"a negative time", edit(3, `"ns":`, `"ns":-`), "line.schema"},
		{"a line that is not there", edit(21, `"line":5`, `"line":6`), ruleTimesLines},
		{"a layer that is not there", edit(21, `"layer":"sdk"`, `"layer":"network"`), ruleTimesLines},
		{"a time of a time", edit(21, `"layer":"sdk"`, `"layer":"times"`), ruleTimesLines},
		{"a kernel time by the proxy", edit(1, `"source":"kernel"`, `"source":"proxy"`), ruleTimesLines},
		{"a kernel line that was received", edit(1, `"source":"kernel"`, `"source":"received"`), ruleTimesLines},
		{"an SDK time by the proxy", edit(17, `"source":"received"`, `"source":"proxy"`), ruleTimesLines},
		{"SDK lines that go back", edit(17, `"ns":10`, `"ns":99`), ruleTimesLines},
		{"an end before its start", edit(11, `"end_ns":30`, `"end_ns":3`), ruleTimesLines},
		{"an end of a call without end", edit(13, `"ns":100`, `"ns":100,"end_ns":121`), ruleTimesLines},
		{"no end of a call with end", edit(11, `,"end_ns":30`, ``), ruleTimesLines},
		{"a line of a call before its start", edit(3, `"ns":20`, `"ns":19`), ruleTimesWindows},
		{"a line of a call after its end", edit(4, `"ns":30`, `"ns":31`), ruleTimesWindows},
		{"calls at the same time with more lines than both", twice(edit(14, `"ns":40,"end_ns":45`, `"ns":21,"end_ns":22`), edit(15, `"ns":50,"end_ns":99`, `"ns":30,"end_ns":30`)), ruleTimesWindows},
		{"attempts in another order", twice(edit(14, `"ns":40,"end_ns":45`, `"ns":110,"end_ns":111`), edit(13, `"ns":100`, `"ns":120`)), ruleTimesCalls},
		{"a time that no sum can hold", edit(4, `"ns":30`, `"ns":4611686018427387904`), "line.schema"},
		{"a wall clock that no sum can hold", edit(0, `"wall_ns":1700000000000000000`, `"wall_ns":18446744073709551615`), "line.schema"},
		{"another clock", edit(0, "CLOCK_MONOTONIC", "CLOCK_BOOTTIME"), "line.schema"},
		{"another order of keys", edit(1, `"layer":"kernel","line":0`, `"line":0,"layer":"kernel"`), "line.form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := c.edit(timesOf())
			for i, l := range lines {
				head, rest, _ := strings.Cut(l, `"seq":`)
				_, rest, _ = strings.Cut(rest, ",")
				lines[i] = head + `"seq":` + strconv.Itoa(i) + "," + rest
			}
			a := timed(lines)
			if len(lines) != 22 && c.want == ruleTimesLines {
				a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "lines=21", fmt.Sprintf("lines=%d", len(lines)-1), 1)
			}
			_, r := check(t, a.digest(t).tar(t))
			if got := strings.Join(rules(r), " "); !strings.Contains(" "+got+" ", " "+strings.Fields(c.want)[0]+" ") || len(strings.Fields(c.want)) > 1 && got != c.want {
				t.Errorf("rules %q, expected %q: %v", got, c.want, r.Findings)
			}
			if r.IdentityWithoutTimes != "" {
				t.Error("an archive that is not valid has an identity without times")
			}
		})
	}
}

// TestTimesNote: the layer and its note go together.
func TestTimesNote(t *testing.T) {
	without, layer := timed(timesOf()), timed(timesOf())
	delete(without, schemas.MemberTimes)
	layer[bundle.HealthName] = layered()[bundle.HealthName]
	count := timed(timesOf())
	count[bundle.HealthName] = strings.Replace(count[bundle.HealthName], "lines=21", "lines=22", 1)
	for name, a := range map[string]content{"note without layer": without, "layer without note": layer, "another count": count} {
		if _, r := check(t, a.digest(t).tar(t)); strings.Join(rules(r), " ") != ruleTimesNote {
			t.Errorf("%s: %v", name, r.Findings)
		}
	}
	empty := timed(nil)
	empty[schemas.MemberTimes] = ""
	if _, r := check(t, empty.digest(t).tar(t)); strings.Join(rules(r), " ") != ruleTimesLines+" "+ruleTimesNote {
		t.Errorf("an empty layer: %v", r.Findings)
	}
}
