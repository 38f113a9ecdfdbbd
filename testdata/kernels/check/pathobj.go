//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

var objectChecks = []check{
	{"path-objects", true, pathObjects},
	{"path-objects-race", true, racedObjects},
	{"path-objects-without", false, withoutObjects},
}

// needObjects is an absent error where the kernel does not show what it looks up.
func needObjects(m *machine) (functions string, err error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	said, _ := probe(m)
	_, said, _ = strings.Cut(said, schemas.FactPathObjects+": ")
	said, _, _ = strings.Cut(said, " "+schemas.FactRedundant+": ")
	if strings.HasPrefix(said, schemas.UnavailableBecause) {
		return "", absent(said)
	}
	return said, nil
}

// objectTries: the kernel skips a program while a task of the same CPU is preempted in it. Then
// the record has a path as text, or is not complete, and says so.
const objectTries = 3

// pathObjects makes operations whose text says something else than what they are done to. Each
// line must name the object.
func pathObjects(m *machine) (string, error) {
	functions, err := needObjects(m)
	for try := 1; err == nil; try++ {
		var r *record
		var skips []expect.Skip
		r, skips, err = m.workload(nil, "shapes", "objects", m.dir())
		if err == nil {
			return fmt.Sprintf("%d lines, each with the object that it is about, by %s%s", len(r.lines), functions, skipped(skips)), nil
		}
		if r == nil || r.health == nil || r.complete() == nil && r.health.Counters[schemas.CounterLexical] <= usualLexical || try == objectTries {
			return "", err
		}
		err = nil
	}
	return "", err
}

// usualLexical are the paths of the workload that no kernel shows: the targets of its two mounts.
const usualLexical = 2

// racedObjects makes directories below a symlink that two threads swap. No line may name
// a directory that was not made. One that is known as text only is counted.
func racedObjects(m *machine) (string, error) {
	if _, err := needObjects(m); err != nil {
		return "", err
	}
	r, err := m.measure(nil, m.tool("shapes"), "swapped", m.dir(), fmt.Sprint(m.pick(500, 2000)))
	if err != nil {
		return "", err
	}
	exact, lexical, n, err := compareRace(r)
	if err != nil {
		return "", err
	}
	if counted := r.health.Counters[schemas.CounterLexical]; counted < uint64(lexical) {
		return "", fmt.Errorf("%d directories are known as text, counted are %d events", lexical, counted)
	}
	if exact == 0 {
		return "", errors.New("no directory has its object")
	}
	detail, err := r.judge(balance{"mkdir", n, exact + lexical, r.droppedOf(schemas.OpMkdir)})
	places := fmt.Sprintf("%d directories have their true place, %d are known as text, which is counted, none has another; ", exact, lexical)
	if t := told(""); errors.As(err, &t) {
		return "", told(places) + t
	}
	return places + detail, err
}

// compareRace looks for each directory that was made below S/1 or S/2, by way of S/l.
func compareRace(r *record) (exact, lexical, all int, err error) {
	made, _, err := expect.Parse(r.stdout)
	if err != nil {
		return 0, 0, 0, err
	}
	lines := map[string]int{}
	for _, l := range r.lines {
		if l.Type == schemas.EventMkdir && l.Value != nil {
			lines[*l.Value]++
		}
	}
	for _, e := range made {
		if e.Op != "object" {
			continue
		}
		all++
		text := filepath.Join(filepath.Dir(filepath.Dir(*e.Value)), "l", filepath.Base(*e.Value))
		switch {
		case lines[*e.Value] == 1 && lines[text] == 0:
			exact++
		case lines[text] == 1 && lines[*e.Value] == 0:
			lexical++
		case lines[text] == 0 && lines[*e.Value] == 0: // judge says whether that is told
		default:
			return 0, 0, 0, fmt.Errorf("%s has %d lines, and %d by its text", *e.Value, lines[*e.Value], lines[text])
		}
		delete(lines, *e.Value)
		delete(lines, text)
	}
	for value := range lines {
		if strings.Contains(value, "/S/1/") || strings.Contains(value, "/S/2/") {
			return 0, 0, 0, fmt.Errorf("%s has a line, and was not made", value)
		}
	}
	return exact, lexical, all, nil
}

// withoutObjects is what a kernel gives that does not show its lookups: the same operations as
// text, each counted.
func withoutObjects(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	r, err := m.measure([]string{"--without", schemas.LoadObjects}, m.tool("shapes"), "swapped", m.dir(), "100")
	if err != nil {
		return "", err
	}
	if said := r.health.Facts[schemas.FactPathObjects]; !strings.HasPrefix(said, schemas.UnavailableBecause) {
		return "", fmt.Errorf("the objects come from %s", said)
	}
	exact, lexical, n, err := compareRace(r)
	if counted := r.health.Counters[schemas.CounterLexical]; err == nil && (exact != 0 || counted < uint64(lexical)) {
		err = fmt.Errorf("%d of %d directories are known as text, %d events are counted", lexical, n, counted)
	}
	if err != nil {
		return "", err
	}
	return r.judge(balance{"mkdir known as text", n, lexical, r.droppedOf(schemas.OpMkdir)})
}
