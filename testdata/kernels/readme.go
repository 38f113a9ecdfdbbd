package main

import (
	"fmt"
	"os"
	"regexp"
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
		fmt.Fprintf(&b, "| %s | %s | %s | not booted |\n", u.lines, u.stands, u.known)
	}
	b.WriteString("\n")
	return b.String()
}

// unbooted are the lines of kernels that no archive carries.
var unbooted = []struct{ lines, stands, known string }{
	{"5.15–6.0", "Ubuntu 22.04 and other systems without a package in Debian's archives", "not known"},
	{"6.2–6.11, 6.13–6.15", "Ubuntu 24.04 and other systems without a package in Debian's archives", "not known"},
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
			return "no, exit 4: " + strings.ReplaceAll(l.Detail, "|", "\\|")
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
	s := "Linux with BTF and a cgroup v2 mount (v1 may be mounted as well). It was run on " + join(works)
	if refused != nil {
		s += "; it refuses to start on " + join(refused)
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
