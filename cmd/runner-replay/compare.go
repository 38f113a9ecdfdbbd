package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/schemas"
)

// layers are compared in this order. The first that differs is the most telling. One of which neither run has a record is not equal:
// it is left out.
var layers = []struct {
	name     string
	recorded func(*recorded) bool
	compare  func(then, now *recorded) (Layer, error)
}{
	{"exit", always, compareExit},
	{"stdout", always, sameLines(schemas.MemberStdout, nil)},
	{"stderr", always, sameLines(schemas.MemberStderr, nil)},
	{"files", func(r *recorded) bool { return r.box != nil }, sameLines(schemas.MemberChanges, nil)},
	{"network", func(r *recorded) bool { return r.net != nil }, sameLines(schemas.MemberExchanges, asAsked)},
	{"names", func(r *recorded) bool { return r.net != nil }, sameLines(schemas.MemberNames, nil)},
	{"clock", func(r *recorded) bool { return r.clock != nil }, sameLines(schemas.MemberClock, nil)},
	{"tool calls", func(r *recorded) bool { return r.sizes[schemas.MemberPolicy] > 0 }, sameLines(schemas.MemberPolicy, nil)},
	{"agent", func(r *recorded) bool { return r.sizes[schemas.MemberSDK] > 0 }, sameLines(schemas.MemberSDK, nil)},
	{"intents", func(r *recorded) bool { return r.sizes[schemas.MemberIntents] > 0 }, sameLines(schemas.MemberIntents, nil)},
	{"capabilities", (*recorded).kernel, compareSurface},
}

func always(*recorded) bool { return true }

// compareRuns compares all layers.
func compareRuns(then, now *recorded) (list []Layer, equal bool, err error) {
	equal = true
	for _, l := range layers {
		if !l.recorded(then) && !l.recorded(now) {
			continue
		}
		x, err := l.compare(then, now)
		if err != nil {
			return nil, false, fmt.Errorf("comparing %s: %w", l.name, err)
		}
		x.Name = l.name
		equal = equal && x.Equal
		list = append(list, x)
	}
	return list, equal, nil
}

// compareExit compares how the commands ended.
func compareExit(then, now *recorded) (Layer, error) {
	a, b := ending(then.finished), ending(now.finished)
	if a == b && a != notKnown {
		return Layer{Equal: true}, nil
	}
	return Layer{Then: a, Now: b}, nil
}

// notKnown is an ending that equals none.
const notKnown = "not known"

func ending(f *schemas.RunFinished) string {
	switch {
	case f == nil:
		return notKnown
	case f.Signal != nil:
		return fmt.Sprintf("signal %d", *f.Signal)
	case f.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *f.ExitCode)
	}
	return notKnown
}

// read is a member, empty if it is not there.
func (r *recorded) read(member string) ([]byte, error) {
	if !r.has(member) {
		return nil, nil
	}
	return os.ReadFile(r.path(member))
}

// maxShown bounds what is shown of a line, in bytes.
const maxShown = 400

// sameLines compares a member line by line, each as form gives it.
func sameLines(member string, form func([]byte) ([]byte, error)) func(then, now *recorded) (Layer, error) {
	return func(then, now *recorded) (l Layer, err error) {
		a, err := then.read(member)
		if err != nil {
			return l, err
		}
		b, err := now.read(member)
		if err != nil || bytes.Equal(a, b) {
			return Layer{Equal: true}, err
		}
		x, y := bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
		for i := range max(len(x), len(y)) {
			var p, q []byte
			if i < len(x) {
				p = x[i]
			}
			if i < len(y) {
				q = y[i]
			}
			if form != nil {
				if p, err = formed(p, form); err != nil {
					return l, err
				}
				if q, err = formed(q, form); err != nil {
					return l, err
				}
			}
			if !bytes.Equal(p, q) {
				return Layer{Line: i + 1, Then: shown(p), Now: shown(q)}, nil
			}
		}
		return Layer{Equal: true}, nil
	}
}

func formed(line []byte, form func([]byte) ([]byte, error)) ([]byte, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return line, nil
	}
	return form(line)
}

// shown is a line as the result has it.
func shown(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) > maxShown {
		return schemas.Text(string(line[:maxShown])) + "…"
	}
	return schemas.Text(string(line))
}

// asAsked is an exchange without what is different in a replay: who answered, and by which rule.
func asAsked(line []byte) ([]byte, error) {
	e, err := schemas.ParseNetExchange(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return nil, err
	}
	if e.Decision == schemas.NetMiss {
		return line, nil
	}
	e.Decision, e.Rule = schemas.NetReplay, ""
	return schemas.Marshal(e)
}

// secretName is what makes the name of a collected log one that others cannot guess, if the run had no name of its own.
var secretName = func() *regexp.Regexp {
	var names []string
	for _, l := range schemas.LogLayers() {
		names = append(names, regexp.QuoteMeta(l.Name))
	}
	return regexp.MustCompile(`^(.*/runner-[A-Za-z0-9_-]+/(?:` + strings.Join(names, "|") + `))-[A-Z2-7]{26}(\.ndjson)$`)
}()

// stable is a set without numbers of processes and without secret names of logs, which differ from run to run.
func stable(set []string) []string {
	out := make([]string, len(set))
	for i, value := range set {
		out[i] = secretName.ReplaceAllString(string(noise.Stable([]byte(value))), "$1$2")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compareSurface compares the sets of the capability surface: what was done at all.
func compareSurface(then, now *recorded) (l Layer, err error) {
	if !then.kernel() || !now.kernel() {
		return Layer{Then: "kernel layer " + then.kernelLayer(), Now: "kernel layer " + now.kernelLayer()}, nil
	}
	var sets [2]map[string]json.RawMessage
	for i, r := range []*recorded{then, now} {
		b, err := r.read(schemas.MemberSurface)
		if err != nil {
			return l, err
		}
		if err := json.Unmarshal(b, &sets[i]); err != nil {
			return l, err
		}
	}
	for _, name := range schemas.SurfaceSets {
		var a, b []string
		if json.Unmarshal(sets[0][name], &a) != nil || json.Unmarshal(sets[1][name], &b) != nil {
			return l, fmt.Errorf("the set %s cannot be read", name)
		}
		a, b = stable(a), stable(b)
		for i := range max(len(a), len(b)) {
			switch {
			case i < len(a) && i < len(b) && a[i] == b[i]:
			case i >= len(b) || i < len(a) && a[i] < b[i]:
				return Layer{Line: i + 1, Then: name + " " + shown([]byte(a[i]))}, nil
			default:
				return Layer{Line: i + 1, Now: name + " " + shown([]byte(b[i]))}, nil
			}
		}
	}
	return Layer{Equal: true}, nil
}
