//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var numbers = regexp.MustCompile(`=[0-9]+`)

// results are the lines of every file of results, by kernel: the name of the file.
type results map[string]map[string]line

// differed is the run of random programs of each kernel that had one.
type differed map[string]difference

func readResults(dir string) (results, differed, error) {
	files, err := filepath.Glob(dir + "/*.ndjson")
	all, runs := results{}, differed{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, nil, err
		}
		kernel := strings.TrimSuffix(filepath.Base(f), ".ndjson")
		lines := map[string]line{}
		for text := range strings.Lines(string(b)) {
			var l line
			var d difference
			if err := errors.Join(json.Unmarshal([]byte(text), &l), json.Unmarshal([]byte(text), &d)); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", f, err)
			}
			if d.Check == differCheck {
				runs[kernel] = d
			} else {
				lines[l.Attack] = l
			}
		}
		all[kernel] = lines
	}
	return all, runs, err
}

// merge puts the lines that come on stdin into a file of results, in the order of the table.
// What a console wrote between them is left out, and so are attacks that are no more.
func merge(file string, in io.Reader) error {
	lines := map[string]string{}
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
		at := strings.Index(one, `{"check":"`)
		if at >= 0 && json.Unmarshal([]byte(one[at:]), &l) == nil {
			lines[l.Attack] = strings.TrimSpace(one[at:]) + "\n" // of differ it is ""
		}
	}
	var b strings.Builder
	for _, a := range attacks() {
		b.WriteString(lines[a.name])
	}
	b.WriteString(lines[""])
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// kernels are the kernels with results, the oldest first.
func (r results) kernels() (names []string) {
	for k := range r {
		names = append(names, k)
	}
	version := func(k string) (n int) {
		var major, minor int
		fmt.Sscanf(k, "%d.%d", &major, &minor)
		return major*1000 + minor
	}
	slices.SortFunc(names, func(a, b string) int { return version(a) - version(b) })
	return names
}

// table has one row for each attack.
func (r results) table() string {
	var b strings.Builder
	kernels := r.kernels()
	b.WriteString("| class | attack | what the program does |")
	for _, k := range kernels {
		b.WriteString(" " + k + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(kernels)) + "\n")
	for _, a := range attacks() {
		fmt.Fprintf(&b, "| %s | %s | %s |", a.class, a.name, a.what)
		for _, k := range kernels {
			b.WriteString(" " + cell(r[k], a.name) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(lines map[string]line, name string) string {
	l, tried := lines[name]
	switch {
	case !tried:
		return "not tried"
	case l.Open != "" && l.Result == isLie:
		return isLie + ": " + l.Open
	case l.Detail == "" || l.Result == isExact:
		return l.Result
	}
	return l.Result + " (" + strings.ReplaceAll(l.Detail, "|", "\\|") + ")"
}

// sums counts the results by kernel.
func (r results) sums() string {
	var b strings.Builder
	for _, k := range r.kernels() {
		n := map[string]int{}
		for _, l := range r[k] {
			n[l.Result]++
		}
		fmt.Fprintf(&b, "Linux %s: %d exact, %d declared, %d LIE", k, n[isExact], n[isDeclared], n[isLie])
		if n[isNotHere] > 0 {
			fmt.Fprintf(&b, ", %d not here", n[isNotHere])
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// text says what the random programs showed.
func (all differed) text() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		d := all[k]
		fmt.Fprintf(&b, "Linux %s: %d calls of %d programs, seeds from %d, %d lines; %d differences without a rule.\n\n", k, d.Calls, d.Programs, d.Seed, d.Lines, d.Unexplained)
		b.WriteString("| rule | differences |\n|---|---|\n")
		for _, r := range rules {
			if n := d.Rules[r.name]; n > 0 {
				fmt.Fprintf(&b, "| %s | %d |\n", r.name, n)
			}
		}
	}
	return b.String()
}
