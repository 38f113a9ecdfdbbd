package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func executed(pid uint32, name string) *schemas.KernelEvent {
	return &schemas.KernelEvent{EventType: schemas.EventExec, PID: pid, Has: schemas.KernelHasReturn, Value: []byte(name)}
}

// TestUncontrolled: who can have read random numbers of the kernel is named, whoever it was.
func TestUncontrolled(t *testing.T) {
	random := func(pid uint32) *schemas.KernelEvent {
		return &schemas.KernelEvent{EventType: schemas.EventOpenat, PID: pid, Has: schemas.KernelHasReturn, ReturnValue: 3, Value: []byte("/dev/urandom")}
	}
	own, reads, or := "its clock and random numbers are its own", "it reads /dev/urandom", "it, or another program of the run, read /dev/urandom"
	for name, c := range map[string]struct {
		lines []*schemas.KernelEvent
		noise string
		want  string
	}{
		"nothing":                      {want: "[]"},
		"a shim":                       {lines: []*schemas.KernelEvent{executed(1, "/usr/bin/node")}, want: "[]"},
		"none":                         {lines: []*schemas.KernelEvent{executed(1, "/bin/sh")}, want: "[{/bin/sh [" + own + "]}]"},
		"a shim that reads":            {lines: []*schemas.KernelEvent{executed(1, "/usr/bin/node"), random(1)}, want: "[{/usr/bin/node [" + reads + "]}]"},
		"a child without a program":    {lines: []*schemas.KernelEvent{executed(1, "/usr/bin/python3"), random(2)}, want: "[{/usr/bin/python3 [" + or + "]}]"},
		"noise, and only a shim":       {lines: []*schemas.KernelEvent{executed(1, "/usr/bin/node")}, noise: "/dev/urandom", want: "[{/usr/bin/node [" + or + "]}]"},
		"noise, and another program":   {lines: []*schemas.KernelEvent{executed(1, "/usr/bin/node"), executed(1, "/bin/sh")}, noise: "/dev/urandom", want: "[{/bin/sh [" + or + " " + own + "]}]"},
		"a program that did not start": {lines: []*schemas.KernelEvent{{EventType: schemas.EventExec, PID: 1, Has: schemas.KernelHasReturn, ReturnValue: -2, Value: []byte("/bin/sh")}}, want: "[]"},
	} {
		r := new(recorded)
		for _, e := range c.lines {
			r.line(e)
		}
		if c.noise != "" {
			r.line(&schemas.FilteredEvent{Value: c.noise})
		}
		if got := fmt.Sprint(r.programs.uncontrolled()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestNotCompared: what no run has a record of is not equal, and an ending that is not known equals none.
func TestNotCompared(t *testing.T) {
	list, equal, err := compareRuns(&recorded{}, &recorded{})
	if err != nil || equal || len(list) != 3 || list[0].Equal || list[0].Then != notKnown {
		t.Error(list, equal, err)
	}
	observed := &recorded{health: &schemas.Health{KernelLayer: schemas.LayerComplete}}
	list, _, err = compareRuns(observed, &recorded{})
	if err != nil || len(list) != 4 || list[3].Equal || list[3].Name != "capabilities" {
		t.Error(list, err)
	}
}

// TestIntentsCompared: what a command wants is compared byte for byte, and a run without intents is not equal to one
// that has some.
func TestIntentsCompared(t *testing.T) {
	run := func(intents string) *recorded {
		r := &recorded{dir: t.TempDir(), sizes: map[string]int64{}}
		if intents != "" {
			r.sizes[schemas.MemberIntents] = int64(len(intents))
			testkit.Must(t, os.MkdirAll(filepath.Dir(r.path(schemas.MemberIntents)), 0o700))
			testkit.Must(t, os.WriteFile(r.path(schemas.MemberIntents), []byte(intents), 0o600))
		}
		return r
	}
	for _, c := range []struct {
		then, now   string
		there, same bool
	}{{"", "", false, false}, {"a\nb\n", "a\nb\n", true, true}, {"a\nb\n", "a\nc\n", true, false}, {"a\n", "", true, false}, {"", "a\n", true, false}} {
		list, _, err := compareRuns(run(c.then), run(c.now))
		testkit.Must(t, err)
		at := slices.IndexFunc(list, func(l Layer) bool { return l.Name == schemas.LayerIntents })
		if (at >= 0) != c.there || c.there && list[at].Equal != c.same {
			t.Errorf("%q and %q: %+v", c.then, c.now, list)
		}
	}
}

// TestBoundariesNotWhole: a record that lacks a secret, or the bytes of a connection, is not whole.
func TestBoundariesNotWhole(t *testing.T) {
	r := &recorded{env: &schemas.RunEnv{Env: []schemas.EnvVar{{Name: "TOKEN", Value: schemas.RedactionMark}}}, net: &schemas.Net{},
		exchanges: []*schemas.NetExchange{{Scheme: schemas.NetTCP, Decision: schemas.NetAllow}}}
	for _, b := range boundaries(r) {
		if b.Covered {
			t.Errorf("%s is covered", b.Name)
		}
	}
	r.env.Env, r.exchanges = nil, nil
	if b := boundaries(r); !b[0].Covered || !b[2].Covered {
		t.Error(b)
	}
}
