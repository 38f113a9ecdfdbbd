package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
)

// TestNames: a process has the names of the programs that it executed and, where a filter
// takes no exec, of those that did what is shown.
func TestNames(t *testing.T) {
	exec := func(path string) *acts.Act {
		return &acts.Act{Op: schemas.OpExec, EventType: schemas.EventExec, Group: acts.Executed, Path: path, Outcome: schemas.ActDone, Process: acts.Process{PID: 7, Executable: path}}
	}
	write := func(by string) *acts.Act {
		return &acts.Act{Op: "open", EventType: schemas.EventOpenat, Group: acts.Wrote, Path: "/x", Outcome: schemas.ActDone, Process: acts.Process{PID: 7, Executable: by}}
	}
	for _, c := range []struct {
		acts []*acts.Act
		want string
	}{
		{[]*acts.Act{exec("/bin/env"), exec("/bin/go"), write("/bin/go")}, "/bin/env /bin/go"},
		{[]*acts.Act{write("/bin/env"), write("/bin/go"), write("/bin/go")}, "/bin/env /bin/go"},
		{[]*acts.Act{write(""), write("")}, ""},
		{[]*acts.Act{exec("/a.sh"), write("/bin/dash")}, "/a.sh"},
	} {
		m := newModel(true)
		for _, a := range c.acts {
			m.take(a)
		}
		if got := strings.Join(m.processes[0].programs, " "); got != c.want {
			t.Errorf("%d acts: %q, expected %q", len(c.acts), got, c.want)
		}
	}
}
