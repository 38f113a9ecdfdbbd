package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// A report is what one kernel did.
type report struct {
	Kernel  string `json:"kernel"`
	Stands  string `json:"stands_for"`
	Arch    string `json:"arch"`
	Variant string `json:"variant,omitempty"`
	// Package and version of the image that was booted.
	Package string       `json:"package,omitempty"`
	Version string       `json:"version,omitempty"`
	Release string       `json:"release,omitempty"`
	Note    string       `json:"note,omitempty"`
	Checks  []guest.Line `json:"checks"`
}

const resultsSchema = "runner.kernels.v0"

// A document is the file of results.
type document struct {
	Schema  string   `json:"schema"`
	Kernels []report `json:"kernels"`
}

// bootCheck is the check that a kernel boots, and ends without a panic, an oops or a
// warning.
const bootCheck = "boot"

// probeCheck is the check that says whether runner-capture works there.
const probeCheck = "check/probe"

var trouble = regexp.MustCompile(`(?m)^.*(Kernel panic|BUG: |Oops|WARNING: |general protection|soft lockup|rcu: INFO|Call Trace).*$`)

// collect makes a report of what a guest left.
func collect(f *fetched, o outcome) report {
	r := report{Kernel: f.Name, Stands: f.Stands, Arch: f.Arch, Variant: f.Variant,
		Package: f.Image.Package, Version: f.Image.Version, Note: f.note}
	boot := guest.Line{Check: bootCheck, Result: guest.OK}
	fail := func(format string, args ...any) {
		if boot.Result == guest.OK {
			boot = guest.Line{Check: bootCheck, Result: guest.Failed, Detail: fmt.Sprintf(format, args...)}
		}
	}
	if m := trouble.Find(o.console); m != nil {
		fail("the kernel said: %s", strings.ToValidUTF8(strings.TrimSpace(string(m)), "?"))
	}
	lines, end, err := parseResults(o.results)
	if err != nil {
		fail("%v", err)
	}
	if o.err != nil {
		fail("%v: %s", o.err, lastLines(o.console))
	}
	if end == nil {
		fail("the guest did not finish: %s", lastLines(o.console))
	} else {
		r.Release = end.Release
	}
	r.Checks = append([]guest.Line{boot}, lines...)
	return r
}

// parseResults reads what came over the port. The last line must be the end, with the
// count of the others.
func parseResults(b []byte) (lines []guest.Line, end *guest.End, err error) {
	for l := range bytes.Lines(b) {
		if end != nil {
			return lines, nil, fmt.Errorf("a result after the end: %.100q", l)
		}
		line, err := guest.Parse(l)
		if err == nil {
			lines = append(lines, line)
			continue
		}
		var e guest.End
		if json.Unmarshal(l, &e) != nil || !e.End {
			return lines, nil, fmt.Errorf("damaged result: %.100q", l)
		}
		if e.Lines != len(lines) {
			return lines, nil, fmt.Errorf("%d results arrived, the guest sent %d", len(lines), e.Lines)
		}
		end = &e
	}
	return lines, end, nil
}

// absent is the report of a kernel that could not be had.
func absent(k kernel, err error) report {
	return report{Kernel: k.Name, Stands: k.Stands, Arch: k.Arch, Variant: k.Variant,
		Checks: []guest.Line{{Check: bootCheck, Result: guest.Unavailable, Detail: "NOT TESTED: " + err.Error()}}}
}

func readResults() (document, error) {
	b, err := os.ReadFile(resultsFile)
	if err != nil {
		return document{}, err
	}
	return parseDocument(b)
}

func parseDocument(b []byte) (document, error) {
	var d document
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, err
	}
	if d.Schema != resultsSchema {
		return d, fmt.Errorf("schema %q, want %s", d.Schema, resultsSchema)
	}
	return d, nil
}

// encode writes one line for each check, so that a difference is easy to read.
func (d document) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"schema\": %q, \"kernels\": [", d.Schema)
	for i, r := range d.Kernels {
		checks := r.Checks
		r.Checks = []guest.Line{}
		head := strings.TrimSuffix(oneLine(r), "]}")
		fmt.Fprintf(&b, "%s\n%s", strings.Repeat(",", min(i, 1)), head)
		for i, l := range checks {
			fmt.Fprintf(&b, "%s\n  %s", strings.Repeat(",", min(i, 1)), oneLine(l))
		}
		b.WriteString("]}")
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

func oneLine(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// differences compares reports with what is expected. Only the kernels that ran are
// compared. Numbers in details are not. Only a whole run has all
// checks.
func differences(want document, got []report, whole bool) (diffs []string) {
	for _, g := range got {
		i := slices.IndexFunc(want.Kernels, func(r report) bool { return r.Kernel == g.Kernel })
		if i < 0 {
			diffs = append(diffs, g.Kernel+": not in "+resultsFile)
			continue
		}
		diffs = append(diffs, compare(want.Kernels[i], g, whole)...)
	}
	return diffs
}

func compare(want, got report, whole bool) (diffs []string) {
	expected := map[string]guest.Line{}
	for _, l := range want.Checks {
		expected[l.Check] = l
	}
	for _, l := range got.Checks {
		w, ok := expected[l.Check]
		delete(expected, l.Check)
		switch {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("%s: %s is new: %s", got.Kernel, l.Check, show(l)))
		case !same(w, l):
			diffs = append(diffs, fmt.Sprintf("%s: %s: expected %s, got %s", got.Kernel, l.Check, show(w), show(l)))
		}
	}
	for _, l := range want.Checks {
		if _, left := expected[l.Check]; left && whole {
			diffs = append(diffs, fmt.Sprintf("%s: %s did not run: expected %s", got.Kernel, l.Check, show(l)))
		}
	}
	return diffs
}

var numbers = regexp.MustCompile(`[0-9]+`)

// same reports whether a result is as expected. Better than told is as expected: how many
// events a kernel misses is chance. The detail of a refusal is part of what is expected.
func same(want, got guest.Line) bool {
	if want.Result == guest.Told && got.Result == guest.OK {
		return true
	}
	if want.Result != got.Result {
		return false
	}
	plain := func(s string) string { return numbers.ReplaceAllString(s, "N") }
	return want.Result != guest.Unavailable || plain(want.Detail) == plain(got.Detail)
}

func show(l guest.Line) string { return strings.TrimSpace(string(l.Result) + " " + l.Detail) }

// merge replaces the reports of the kernels that ran and sorts by the list. What a run that
// is not whole left out stays.
func merge(old document, got []report, list []kernel, whole bool) document {
	d := document{Schema: resultsSchema, Kernels: []report{}}
	find := func(reports []report, name string) (report, bool) {
		i := slices.IndexFunc(reports, func(r report) bool { return r.Kernel == name })
		if i < 0 {
			return report{}, false
		}
		return reports[i], true
	}
	for _, k := range list {
		was, before := find(old.Kernels, k.Name)
		is, now := find(got, k.Name)
		if now && before && !whole {
			is.Checks = withLeftOut(is.Checks, was.Checks)
		}
		if now {
			d.Kernels = append(d.Kernels, is)
		} else if before {
			d.Kernels = append(d.Kernels, was)
		}
	}
	return d
}

// withLeftOut is the old results with the new ones in their place.
func withLeftOut(is, was []guest.Line) (all []guest.Line) {
	at := func(lines []guest.Line, name string) int {
		return slices.IndexFunc(lines, func(l guest.Line) bool { return l.Check == name })
	}
	for _, l := range was {
		if i := at(is, l.Check); i >= 0 {
			l = is[i]
		}
		all = append(all, l)
	}
	for _, l := range is {
		if at(was, l.Check) < 0 {
			all = append(all, l)
		}
	}
	return all
}

// failures are the checks that failed.
func failures(reports []report) (failed []string) {
	for _, r := range reports {
		for _, l := range r.Checks {
			if l.Result == guest.Failed {
				failed = append(failed, r.Kernel+": "+l.Check+": "+l.Detail)
			}
		}
	}
	return failed
}
