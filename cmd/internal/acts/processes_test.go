package acts

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func state(by, file string, uid uint32, space uint32, argv ...string) schemas.ProcessState {
	s := schemas.ProcessState{By: by, File: file, UID: &uid, GID: &uid, MountNamespace: space}
	if len(argv) > 0 {
		s.Arguments = &schemas.Arguments{Name: argv[0], Count: uint64(len(argv)), Argv: argv}
	}
	return s
}

// said is what the acts say of their processes, and at which place of a view each is.
func said(t *testing.T, notes []string, layer []*schemas.ProcessEvent, lines ...*schemas.KernelEvent) (list []string) {
	t.Helper()
	p := NewProcesses(func(yield func(*schemas.ProcessEvent, error) bool) {
		for _, e := range layer {
			if !yield(e, nil) {
				return
			}
		}
	}, notes)
	defer p.Close()
	r := Reader{Together: true, Processes: p, Take: func(a *Act) error {
		x := &a.Process
		s := fmt.Sprintf("%d #%d", x.PID, x.Number)
		if x.Parent != nil {
			s += fmt.Sprintf(" <%d %s", x.Parent.PID, x.Parent.Executable)
		}
		if x.UID != nil {
			s += fmt.Sprintf(" u%d", *x.UID)
		}
		if x.MountNamespace > 0 {
			s += fmt.Sprintf(" m%d", x.MountNamespace)
		}
		if x.Args != nil {
			s += " " + strings.Join(x.Args.Argv, " ")
		}
		if len(x.Unsure) > 0 {
			s += " ?" + strings.Join(x.Unsure, ",")
		}
		list = append(list, s)
		return nil
	}}
	for i, e := range lines {
		e.Seq = uint64(i)
		testkit.Must(t, r.Line(&archive.Line{RunID: "run_01", Event: e}))
	}
	testkit.Must(t, r.Flush())
	return list
}

// TestProcesses: a line has the process that the layer gives it to, and the values that all states have which can hold there.
func TestProcesses(t *testing.T) {
	open := func(pid uint32) *schemas.KernelEvent { return kernel(0, pid, schemas.EventOpenat, "/x", 0) }
	exec := func(pid uint32, file string) *schemas.KernelEvent {
		return kernel(0, pid, schemas.EventExec, file, 0)
	}
	process := func(number, parent uint32, lines uint64, states ...schemas.ProcessState) *schemas.ProcessEvent {
		return &schemas.ProcessEvent{Process: number, Parent: parent, Lines: lines, States: states}
	}
	sh, start := state("exec", "/sh", 0, 0, "sh", "-c"), state("start", "", 0, 0)
	jail := []schemas.ProcessState{start, state("exec", "/unshare", 0, 0, "unshare"), state("call", "", 0, 1), state("exec", "/cat", 7, 1, "cat")}
	jailLines := []*schemas.KernelEvent{exec(1, "/sh"), open(5), exec(5, "/unshare"), open(5), exec(5, "/cat"), open(5)}
	dropped := []string{schemas.NoteDrop.Format("x", fmt.Sprintf("%x", sha256.Sum256([]byte("x"))), uint64(1))}
	full := process(2, 1, 1, start, sh)
	full.StatesOmitted = 3
	for name, c := range map[string]struct {
		notes []string
		layer []*schemas.ProcessEvent
		lines []*schemas.KernelEvent
		want  []string
	}{
		"a state by exec": {nil, []*schemas.ProcessEvent{process(1, 0, 1, sh), process(2, 1, 5, jail...)}, jailLines,
			[]string{"1 #1 u0 sh -c", "5 #2 <1 /sh u0", "5 #2 <1 /sh u0 unshare ?mount_namespace", "5 #2 <1 /sh u0 unshare ?mount_namespace", "5 #2 <1 /sh u7 m1 cat", "5 #2 <1 /sh u7 m1 cat"}},
		"lines of execs can be missing": {dropped, []*schemas.ProcessEvent{process(1, 0, 1, sh), process(2, 1, 2, jail...)},
			[]*schemas.KernelEvent{exec(1, "/sh"), open(5), exec(5, "/cat")},
			[]string{"1 #1 u0 sh -c", "5 #2 <1 /sh ?uid,gid,mount_namespace,args", "5 #2 <1 /sh u7 m1 cat"}},
		"one process id twice, parents without lines and with two programs": {nil,
			[]*schemas.ProcessEvent{process(1, 0, 0, sh, sh), process(2, 1, 1, start), process(3, 2, 1, start), process(4, 1, 1, start), process(5, 0, 1)},
			[]*schemas.KernelEvent{open(9), open(9), open(9), open(9), open(10)},
			[]string{"9 #2 <0  u0", "9 #3 <9  u0", "9 #4 <0  u0", "9 #5 ?uid,gid,mount_namespace,root", "10 #0"}},
		"no room for states": {nil, []*schemas.ProcessEvent{process(1, 0, 0, sh), full, process(3, 1, 2, start, sh)},
			[]*schemas.KernelEvent{exec(5, "/sh"), exec(6, "/sh"), open(6)},
			[]string{"5 #2 <0 /sh sh -c ?uid,gid,mount_namespace,root", "6 #3 <0 /sh u0 sh -c", "6 #3 <0 /sh u0 sh -c"}},
	} {
		if got := said(t, c.notes, c.layer, c.lines...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, expected\n%q", name, got, c.want)
		}
	}
}

// TestDeepProcesses: what is kept is what is above a process, however many there are.
func TestDeepProcesses(t *testing.T) {
	const deep = 100_000
	at := uint32(0)
	p := NewProcesses(func(yield func(*schemas.ProcessEvent, error) bool) {
		for at < deep {
			at++
			name := "/" + strings.Repeat("x", 4000)
			if !yield(&schemas.ProcessEvent{Process: at, Parent: at - 1, Lines: 1, States: []schemas.ProcessState{state("exec", name, 0, 0)}}, nil) {
				return
			}
		}
	}, nil)
	defer p.Close()
	for seq := range uint64(deep) {
		testkit.Must(t, p.enter(seq))
	}
	if p.kept > maxPathNames || p.Now.Process != deep {
		t.Errorf("%d bytes of names are kept at process %d", p.kept, p.Now.Process)
	}
	testkit.Must(t, p.enter(deep))
	if p.Now != nil {
		t.Error("the layer has no more processes")
	}
}
