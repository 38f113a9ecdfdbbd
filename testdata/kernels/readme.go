package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

const (
	readmeFile = "README.md"
	tableBegin = "<!-- made by make test-kernels from testdata/kernels/results.json -->\n"
	tableEnd   = "<!-- end -->\n"
)

// writeReadme puts the generated text into README.md.
func writeReadme(d document) error {
	b, err := os.ReadFile(readmeFile)
	if err != nil {
		return err
	}
	text, err := withGenerated(string(b), generated(d))
	if err != nil {
		return err
	}
	return os.WriteFile(readmeFile, []byte(text), 0o644)
}

// withGenerated replaces the text between the two marks.
func withGenerated(text, made string) (string, error) {
	before, rest, ok := strings.Cut(text, tableBegin)
	_, after, end := strings.Cut(rest, tableEnd)
	if !ok || !end {
		return "", fmt.Errorf("%s has no place for the table of kernels", readmeFile)
	}
	return before + tableBegin + made + tableEnd + after, nil
}

// generated is the part of README.md about kernels: the requirement and the table.
func generated(d document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n| kernel | stands for | observed | checks |\n|---|---|---|---|\n", requirement(d))
	for _, r := range d.Kernels {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", title(r), r.Stands, observed(r), tally(r))
	}
	for _, u := range unbooted {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", u.lines, u.stands, u.known, standIns(d, u.check, u.on))
	}
	b.WriteString("\n")
	return b.String()
}

// unbooted are the lines of kernels that no archive carries. check shows the way in which
// the probes load there, on the kernels named by on, or on all if there are none.
var unbooted = []struct {
	lines, stands, known, check string
	on                          []string
}{
	{"5.15, 5.16", "Ubuntu 22.04", "no bpf_loop, no bpf_rdonly_cast: the programs' second form", "check/as-5.15-and-5.16", nil},
	{"5.17–6.0", "in no archive of Debian", "no bpf_rdonly_cast: the form that 6.1 loads", "check/kinds", []string{"6.1", "6.1-rt"}},
	{"6.2–6.11, 6.13–6.15", "Ubuntu 24.04", "the form that 6.12 and 6.16 load, chosen by the kernel's types", "check/kinds", []string{"6.12", "6.16"}},
}

// standIns says on how many kernels a check gave which result.
func standIns(d document, check string, on []string) string {
	count := map[guest.Result]int{}
	for _, r := range d.Kernels {
		for _, l := range r.Checks {
			if l.Check == check && (on == nil || slices.Contains(on, r.Kernel)) {
				count[l.Result]++
			}
		}
	}
	if count[guest.Failed] > 0 || count[guest.OK] == 0 {
		return "not booted, not shown"
	}
	return fmt.Sprintf("not booted; that form is whole on %d of the kernels above", count[guest.OK])
}

// title names a kernel: its release without what the packager added.
func title(r report) string {
	name := plainRelease(r)
	if r.Arch != "amd64" {
		name += " " + r.Arch
	}
	return name
}

var upstream = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)?`)

// plainRelease is the version of the kernel, from the package's: a release such as
// 6.1.0-56 does not name it.
func plainRelease(r report) string { return upstream.FindString(r.Version) }

// observed says whether runner-capture works there, and what it says if not.
func observed(r report) string {
	for _, l := range r.Checks {
		if l.Check != probeCheck {
			continue
		}
		switch l.Result {
		case guest.OK:
			return "yes"
		case guest.Unavailable:
			why := strings.TrimPrefix(l.Detail, "runner-capture: error: cannot observe here: ")
			why, _, _ = strings.Cut(why, " runner-capture: hint:")
			return "no, exit 4: " + strings.ReplaceAll(why, "|", "\\|")
		}
	}
	return "**failed**"
}

// requirement is the sentence that says what a system must have.
func requirement(d document) string {
	var works, refused []string
	for _, r := range d.Kernels {
		name := upstreamLine.FindString(r.Version)
		switch {
		case r.Variant == guest.Plain && observed(r) == "yes" && r.Arch == "amd64":
			works = append(works, name)
		case r.Variant == guest.Plain && r.Arch == "amd64":
			refused = append(refused, name)
		}
	}
	oldest := ""
	if works != nil {
		oldest = " " + works[0] + " or later"
	}
	if strings.Contains(standIns(d, unbooted[0].check, unbooted[0].on), "whole") {
		oldest = " 5.15 or later"
	}
	s := "Linux" + oldest + " with BTF and a cgroup v2 mount (v1 may be mounted as well)"
	if works != nil {
		s += ". Booted and observed: " + join(works)
	}
	if refused != nil {
		s += ". Refused with exit 4, before the command starts: " + join(refused)
	}
	return s + "."
}

var upstreamLine = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

// join is a list in English.
func join(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
