//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// results are the lines of every file of results, by kernel: the name of the file.
type results map[string][]line

func readResults(dir string) (results, error) {
	files, err := filepath.Glob(dir + "/*.ndjson")
	if err != nil {
		return nil, err
	}
	all := results{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		kernel := strings.TrimSuffix(filepath.Base(f), ".ndjson")
		for text := range strings.Lines(string(b)) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
			all[kernel] = append(all[kernel], l)
		}
	}
	return all, nil
}

// merge puts the lines that come on stdin into a file of results: in the order of the
// table, first those without options, each attack once in each mode. What a console wrote
// between them is left out.
func merge(file string, in io.Reader) error {
	type key struct {
		attack string
		harden bool
	}
	lines := map[key]string{}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for one := range strings.Lines(string(old) + string(text)) {
		var l line
		at := strings.Index(one, `{"check":`)
		if at >= 0 && json.Unmarshal([]byte(one[at:]), &l) == nil {
			lines[key{l.Attack, l.Harden}] = strings.TrimSpace(one[at:]) + "\n"
		}
	}
	var b strings.Builder
	for _, harden := range []bool{false, true} {
		for i := range attacks {
			b.WriteString(lines[key{attacks[i].name, harden}])
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func (r results) kernels() (names []string) {
	for k := range r {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int { return newer(a) - newer(b) })
	return names
}

func newer(kernel string) int {
	var major, minor int
	fmt.Sscanf(kernel, "%d.%d", &major, &minor)
	return major*1000 + minor
}

// table is one row for each attack, in the order of the program.
func (r results) table() string {
	var b strings.Builder
	b.WriteString("| attack | what it does | kernels | without options | with `--harden` |\n|---|---|---|---|---|\n")
	for i := range attacks {
		a := &attacks[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.name, a.what, strings.Join(r.triedOn(a), ", "), r.cell(a, false), r.cell(a, true))
	}
	return b.String()
}

func (r results) triedOn(a *attack) (kernels []string) {
	for _, k := range r.kernels() {
		if slices.ContainsFunc(r[k], func(l line) bool { return l.Attack == a.name }) {
			kernels = append(kernels, k)
		}
	}
	return kernels
}

// cell says what became of an attack: once if it is the same on all kernels that tried it.
func (r results) cell(a *attack, harden bool) string {
	var texts, kernels []string
	for _, k := range r.kernels() {
		for _, l := range r[k] {
			if l.Attack != a.name || l.Harden != harden {
				continue
			}
			text := l.text()
			if at := slices.Index(texts, text); at >= 0 {
				kernels[at] += ", " + k
			} else {
				texts, kernels = append(texts, text), append(kernels, k)
			}
		}
	}
	switch {
	case len(texts) == 0:
		return "not tried"
	case len(texts) == 1 && kernels[0] == strings.Join(r.triedOn(a), ", "):
		return texts[0]
	}
	for i := range texts {
		texts[i] = kernels[i] + ": " + texts[i]
	}
	return strings.Join(texts, "<br>")
}

var (
	counts  = regexp.MustCompile(`=[0-9]+`)
	errnos  = regexp.MustCompile(`[^:]*$`)
	exits   = regexp.MustCompile(`^exit [0-9]+`)
	anyName = regexp.MustCompile(`(/proc/)[0-9]+|(runner-)?hostile-[0-9]+|/proc/self/fd/[0-9]+`)
)

// text is the outcome with its reason.
func (l *line) text() string {
	why := ""
	switch l.Outcome {
	case prevented:
		switch l.Happened {
		case "done":
			why = "no effect"
		case "it did not come back":
			why = "its own process ended"
		default:
			why = strings.TrimSpace(errnos.FindString(l.Happened))
		}
	case failed:
		if why = exits.FindString(l.Detail); why == "" {
			why = "the run does not end"
		}
		return "no archive (" + why + ")"
	case told:
		_, loss, _ := strings.Cut(l.Detail, "s2_kernel_loss: ")
		loss, _, _ = strings.Cut(loss, ";")
		why = "`" + counts.ReplaceAllString(loss, "") + "`"
	case outsideOf:
		why = "a limit that the record names: `" + strings.TrimPrefix(l.Detail, "the record says so: ") + "`"
	}
	return l.Outcome + " (" + why + ")"
}

// scrub takes out what differs from run to run.
func scrub(text string) string {
	return anyName.ReplaceAllString(strings.ReplaceAll(text, "\n", "; "), "${1}N")
}
