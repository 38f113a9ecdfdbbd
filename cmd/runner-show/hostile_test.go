package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// What a screen shows of names is the same printable text in each view, however wide and however
// long: no name acts on the terminal, hides, or looks like more rows than it is.
func TestHostileScreens(t *testing.T) {
	m := newModel(true)
	names := []string{"/\x1b[2Jclear", "/\u202egnp.exe", "/a\nwrote      /b", "/a  /etc/shadow", "/usr/lib/ 212", "/c \u2800", "/d ", "unix:@\x00\x1b]0;t\a", "/\xff\x9b"}
	for i, name := range names {
		for _, a := range []acts.Act{
			{Group: acts.Wrote, Op: schemas.OpOpen, Write: true, Outcome: schemas.ActDone},
			{Group: acts.Read, Op: schemas.OpOpen, Outcome: schemas.ActFailed, Error: "ENOENT"},
			{Group: acts.Other, Op: schemas.OpFileBlocked, Outcome: schemas.ActRefused},
			{Group: acts.Executed, Op: schemas.OpExec, EventType: schemas.EventExec, Outcome: schemas.ActDone},
		} {
			a.Path, a.Process = schemas.Text(name), acts.Process{PID: uint32(i + 1)}
			m.take(&a)
		}
	}
	text := schemas.Text(names[0])
	rep := &verdict.Report{Archive: text, Record: &verdict.Record{Command: []string{text, schemas.Text(names[2])}, KernelLayer: schemas.LayerComplete,
		CgroupCorrelation: schemas.CorrelationClean, Notes: []string{schemas.Text(names[1])}}}
	for _, view := range []string{"", viewTree} {
		for _, o := range []Options{{Top: 100}, {Top: 1, Width: 40}, {Top: 100, Width: 80}, {Top: 100, Width: 2000}} {
			var b bytes.Buffer
			o.View = view
			s := screen{printer: printer{w: &b, width: o.Width}, m: m, opt: o, rep: rep}
			s.print()
			for line := range strings.Lines(b.String()) {
				if at := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) || r == '\u2800' || r == '\u202e' }); at >= 0 {
					t.Errorf("view %q of %d columns: %q", view, o.Width, line)
				}
				for _, item := range strings.Split(strings.TrimSpace(line), "  ") {
					if slices.Contains([]string{"/etc/shadow", "/usr/lib/ 212", "/b"}, strings.TrimSpace(item)) {
						t.Errorf("view %q of %d columns: the line %q has the item %q", view, o.Width, line, item)
					}
				}
			}
		}
	}
}
