package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// memoryLog keeps the lines of a log, and fails after some.
type memoryLog struct {
	mu    sync.Mutex
	lines []*schemas.DecisionLine
	left  int // lines that can still be written; below 0 any number
	t     testing.TB
}

func (l *memoryLog) WriteLine(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return 0, unix.ENOSPC
	}
	l.left--
	d, err := schemas.ParseDecisionLine(b[:len(b)-1])
	if err != nil {
		l.t.Errorf("%v: %s", err, b)
		return len(b), nil
	}
	l.lines = append(l.lines, d)
	return len(b), nil
}

func (l *memoryLog) Close() error { return nil }

// said are the decisions with their reasons and outcomes, sorted.
func (l *memoryLog) said() (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := map[string]string{}
	for _, d := range l.lines {
		if d.Finished != nil {
			ends[d.Finished.ToolCallID] = d.Finished.Outcome
		}
	}
	for _, d := range l.lines {
		switch {
		case d.Decision != nil:
			x := d.Decision
			list = append(list, strings.Join(strings.Fields(fmt.Sprint(strings.TrimPrefix(x.Tool, "os.process."), " ", x.Decision, " ", x.ReasonCode, " ", x.RuleID, " ", x.Outcome, ends[x.ToolCallID], " ", strings.Join(x.Targets, ","))), " "))
		case d.Refused != nil:
			list = append(list, d.Refused.ReasonCode)
		}
	}
	slices.Sort(list)
	return list
}

func (l *memoryLog) sessions() (started, finished int) {
	for _, d := range l.lines {
		if d.Started != nil {
			started++
		} else if d.Ended != nil {
			finished++
		}
	}
	return started, finished
}

func recording(t testing.TB, p *Policy) (*Pool, *memoryLog) {
	t.Helper()
	l := &memoryLog{left: -1, t: t}
	r := newRunner(t, p)
	testkit.Must(t, r.Record(l))
	t.Cleanup(r.Close)
	return &Pool{Runner: r}, l
}

// TestRecord: what becomes of requests is in the log, whatever it is.
func TestRecord(t *testing.T) {
	p, l := recording(t, nil)
	do := func(q *Request, c Caps) *Outcome { return p.Run(q.Append(nil), c.Append(nil)) }
	if o := do(request("/bin/echo", "a"), enough); string(o.Stdout) != "a\n" || o.ExitCode != 0 {
		t.Errorf("%v %q %d", o.Code, o.Stdout, o.ExitCode)
	}
	if o := do(&Request{Argv: shell("cat; pwd; echo $A; exit 7").Argv, Stdin: []byte("in\n"), Cwd: []byte("/"), Env: []Var{{[]byte("A"), []byte("b\xff")}}}, enough); string(o.Stdout) != "in\n/\nb\xff\n" || o.ExitCode != 7 {
		t.Errorf("%v %q %d", o.Code, o.Stdout, o.ExitCode)
	}
	if o := do(shell("(setsid sleep 300 &) ; kill -TERM $$"), enough); o.ExitCode != 143 {
		t.Errorf("%v %d", o.Code, o.ExitCode)
	}
	if o := do(request("/none"), enough); o.Code != SpawnFailed || !strings.Contains(o.Why, "no such file") {
		t.Errorf("%v %s", o.Code, o.Why)
	}
	if o := do(shell("sleep 300"), Caps{1, 1, 30, 0}); o.Code != Timeout {
		t.Error(o.Code)
	}
	if o := do(request("/bin/echo", "abc"), Caps{2, 1, 0, 0}); o.Code != OutputLimit {
		t.Error(o.Code)
	}
	if o := p.Run([]byte{9}, nil); o.Code != InvalidRequest {
		t.Error(o.Code)
	}
	h := spawned(t, p, "sleep 300", enough, false)
	k := spawned(t, p, "sleep 300", enough, true)
	last := spawned(t, p, "sleep 300", enough, true)
	for _, x := range []Handle{h, k} {
		if ok, err := p.Drop(x); !ok || err != nil {
			t.Error(ok, err)
		}
	}
	_ = last
	p.Close()
	p.Runner.Close()
	want := []string{
		"M_BAD_PROCESS",
		"run_capture allow P_ALLOW_DEFAULT completed", "run_capture allow P_ALLOW_DEFAULT completed", "run_capture allow P_ALLOW_DEFAULT completed",
		"run_capture allow P_ALLOW_DEFAULT error", "run_capture allow P_ALLOW_DEFAULT tool_error", "run_capture allow P_ALLOW_DEFAULT tool_error",
		"spawn_capture allow P_ALLOW_DEFAULT cancelled", "spawn_piped allow P_ALLOW_DEFAULT cancelled", "spawn_piped allow P_ALLOW_DEFAULT client_gone",
	}
	if got := l.said(); !slices.Equal(got, want) {
		t.Errorf("%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if began, ended := l.sessions(); began != 3 || ended != 3 || p.Runner.LogError() != nil {
		t.Errorf("%d sessions, %d ends, %v", began, ended, p.Runner.LogError())
	}
	if left := children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

// TestRecordDenials: what a denied request names, and which rule allowed another.
func TestRecordDenials(t *testing.T) {
	dir := t.TempDir()
	q, err := ParsePolicy("p.json", []byte(runOSFile(`"/bin/true"`, `"/bin/echo"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`)))
	testkit.Must(t, err)
	p, l := recording(t, q)
	few := Caps{10, 10, 900, 0}
	p.Run(request("/bin/echo").Append(nil), few.Append(nil))
	p.Run((&Request{Argv: request("./tool", "--out="+dir+"/x", "y/z").Argv}).Append(nil), few.Append(nil))
	p.Run(request("/bin/echo").Append(nil), (&Caps{10, 10, 1 << 30, 0}).Append(nil))
	p.Runner.Close()
	here, err := os.Getwd()
	testkit.Must(t, err)
	want := []string{"run_capture allow P_ALLOW_RULE allow_execs completed", "run_capture deny P_DENY_DEFAULT denied " + strings.Join(sorted(dir+"/x", here+"/tool", here+"/y/z"), ","), "run_capture deny P_DENY_LIMIT denied /bin/echo"}
	if got := l.said(); !slices.Equal(got, want) {
		t.Errorf("%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func sorted(list ...string) []string {
	slices.Sort(list)
	return list
}

// TestNoRecordNoRun: what cannot be recorded is not run.
func TestNoRecordNoRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	for left := range 4 {
		l := &memoryLog{left: left, t: t}
		r := newRunner(t, nil)
		err := r.Record(l)
		if (err != nil) != (left == 0) {
			t.Fatalf("%d lines: %v", left, err)
		}
		if err != nil {
			continue
		}
		os.Remove(file)
		p := &Pool{Runner: r}
		o := p.Run(request("/usr/bin/touch", file).Append(nil), enough.Append(nil))
		_, made := os.Stat(file)
		if ran := left > 1; (made == nil) != ran || (o.Code == 0) != ran {
			t.Errorf("%d lines: %v %s, made %v", left, o.Code, o.Why, made == nil)
		}
		r.Close()
		if !errors.Is(r.LogError(), unix.ENOSPC) {
			t.Errorf("%d lines: %v", left, r.LogError())
		}
		if o := p.Run(request("/usr/bin/touch", file).Append(nil), enough.Append(nil)); o.Code == 0 {
			t.Errorf("%d lines: it runs after the end", left)
		}
	}
}

// TestHelperKilled: with its helper a program ends, and the record says so. Another helper takes the next one.
func TestHelperKilled(t *testing.T) {
	p, l := recording(t, nil)
	h := spawned(t, p, "sleep 300", enough, false)
	k, err := p.find(h)
	testkit.Must(t, err)
	testkit.Must(t, p.Runner.calls.all[0].p.Kill())
	exit, code, _, err := p.Wait(h, true)
	if exit != 137 || code != 0 || err != nil {
		t.Errorf("%d %v %v", exit, code, err)
	}
	for end := time.Now().Add(10 * time.Second); unix.Kill(k.x.PID, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the program lives")
		}
	}
	if o := p.Run(request("/bin/true").Append(nil), enough.Append(nil)); o.Code != 0 {
		t.Error(o.Code, o.Why)
	}
	p.Close()
	p.Runner.Close()
	if got, want := l.said(), []string{"run_capture allow P_ALLOW_DEFAULT completed", "spawn_capture allow P_ALLOW_DEFAULT server_gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

// TestDescendantsStay: a policy with kill_tree false leaves what a program started, with and without a record.
func TestDescendantsStay(t *testing.T) {
	q, err := ParsePolicy("p.json", []byte(runOSFile(`"/bin/true"`, `"/bin/sh"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`, `"max_arg_bytes": 10`, `"kill_tree": false, "max_arg_bytes": 100`)))
	testkit.Must(t, err)
	if q.KillTree {
		t.Fatal("the policy does not say so")
	}
	for _, recorded := range []bool{false, true} {
		p := &Pool{Runner: newRunner(t, q)}
		if recorded {
			p, _ = recording(t, q)
		}
		o := p.Run(shell("sleep 300 >/dev/null 2>&1 & echo $!").Append(nil), (&Caps{10, 10, 900, 0}).Append(nil))
		pid, err := strconv.Atoi(strings.TrimSpace(string(o.Stdout)))
		if err != nil {
			t.Fatalf("%v %s %q", o.Code, o.Why, o.Stdout)
		}
		p.Close()
		p.Runner.Close()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Errorf("recorded %v: it has ended: %v", recorded, err)
		}
		for unix.Kill(pid, 0) == nil {
			unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// TestHelperStopped: a program that stops its helper is killed when its time is over, and the record says what is not known:
// also if it does so before the helper has told of its start.
func TestHelperStopped(t *testing.T) {
	for _, wait := range []string{"sleep 0.2; ", ""} {
		p, l := recording(t, nil)
		p.Runner.calls.patience = time.Second
		o := p.Run(shell(wait+"kill -STOP $PPID; sleep 300").Append(nil), (&Caps{10, 10, 500, 0}).Append(nil))
		if o.Code != Timeout {
			t.Error(o.Code, o.Why)
		}
		p.Runner.Close()
		if got, want := l.said(), []string{"run_capture allow P_ALLOW_DEFAULT server_gone"}; !slices.Equal(got, want) {
			t.Errorf("%q, expected %q", got, want)
		}
		if left := children(); len(left) > 0 {
			t.Errorf("children are left: %v", left)
		}
	}
}
