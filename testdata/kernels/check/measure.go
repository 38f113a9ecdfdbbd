//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// outcome is how a program ended and what it printed.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d: %s", o.code, strings.TrimSpace(o.stderr))
}

// command is a tool that is killed when the time of the check is over.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(m.ctx, m.tool(name), args...)
	c.Env = append(os.Environ(), "PATH="+m.bin+":"+os.Getenv("PATH"))
	c.WaitDelay = time.Second
	return c
}

func call(c *exec.Cmd) (outcome, error) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{}, fmt.Errorf("%s: %w", filepath.Base(c.Path), err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}, nil
}

// asNobody drops all rights of a command.
func asNobody(c *exec.Cmd) *exec.Cmd {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return c
}

// record is one measured run.
type record struct {
	outcome
	lines   []expect.Line
	status  schemas.Status       // of the raw stream
	health  *schemas.StageHealth // of runner-capture
	blocked []blocked            // what file rules refused
	mark    []byte
	marked  map[string]int // raw events with the mark, by operation
	tree    map[string]int // processes that were made, ended and moved, by operation
}

// measure runs a command under runner-exec. The record is its raw stream, and the lines
// that runner-normalize makes of it: the stages after that do not depend on the kernel.
// Flags go to runner-exec.
func (m *machine) measure(flags []string, argv ...string) (*record, error) {
	return m.normalized(m.capture("", flags, argv))
}

// normalized reads the lines that runner-normalize makes of a raw stream, and removes that.
func (m *machine) normalized(r *record, raw string, err error) (*record, error) {
	if raw != "" {
		defer os.RemoveAll(filepath.Dir(raw))
	}
	if err != nil {
		return r, err
	}
	o, err := call(m.command("runner-normalize", raw))
	if err != nil || o.code != 0 {
		return r, fmt.Errorf("runner-normalize: %v %v", o, err)
	}
	return r, r.readLines(strings.NewReader(o.stdout))
}

// archive makes the archive of a raw stream.
func (m *machine) archive(raw string) (path string, err error) {
	path = m.dir() + "/run.tar.gz"
	lines := ""
	for _, argv := range [][]string{{"runner-normalize", raw}, {"runner-correlate"}, {"runner-pack", "-o", path}} {
		c := m.command(argv[0], argv[1:]...)
		c.Stdin = strings.NewReader(lines)
		o, err := call(c)
		if err != nil || o.code != 0 {
			return "", fmt.Errorf("%s: %v %v", argv[0], o, err)
		}
		lines = o.stdout
	}
	return path, nil
}

// outline runs a command and counts the raw events that have a mark in them.
func (m *machine) outline(mark string, flags []string, argv ...string) (*record, error) {
	r, raw, err := m.capture(mark, flags, argv)
	if raw != "" {
		os.RemoveAll(filepath.Dir(raw))
	}
	return r, err
}

// capture runs a command and reads its raw stream, which is a file of its own folder.
func (m *machine) capture(mark string, flags, argv []string) (r *record, raw string, err error) {
	dir := m.dir()
	return m.captureIn(dir, dir+"/raw", mark, flags, argv)
}

// captureIn is capture with a folder for temporary files, in which are the logs of the run.
func (m *machine) captureIn(temp, file, mark string, flags, argv []string) (r *record, raw string, err error) {
	raw = file
	r = &record{tree: map[string]int{}, mark: []byte(mark), marked: map[string]int{}}
	c := m.command("runner-exec", append(append(slices.Clone(flags), "--stream", raw, "--"), argv...)...)
	c.Env = append(c.Env, "TMPDIR="+temp)
	if r.outcome, err = call(c); err != nil {
		return nil, raw, err
	}
	if r.code != 0 {
		return r, raw, fmt.Errorf("runner-exec -- %s: %v", strings.Join(argv, " "), r.outcome)
	}
	if err := r.readRaw(raw); err != nil {
		return r, raw, err
	}
	if r.health == nil {
		return r, raw, fmt.Errorf("the raw stream has no health of %s", schemas.StageCapture)
	}
	return r, raw, nil
}

// readLines reads the kernel lines of a normalized stream.
func (r *record) readLines(text io.Reader) error {
	in, err := stream.NewReader(text, "runner-normalize", schemas.StreamNormalized)
	if err != nil {
		return err
	}
	parser := schemas.NewKernelParser(in.Header().RunID)
	for {
		rec, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Schema != schemas.SchemaKernelEvent {
			continue
		}
		var e schemas.KernelEvent
		if err := parser.Parse(rec.Bytes, &e); err != nil {
			return err
		}
		r.lines = append(r.lines, lineOf(&e))
	}
}

// archived is what the archive of a run says: the health and how many kernel lines it has.
func (m *machine) archived(path string) (health schemas.Health, lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return health, 0, err
	}
	defer f.Close()
	sum, err := archive.Read(m.ctx, f, archive.Visitor{
		Document: func(d archive.Document) error {
			if h, ok := d.Value.(*schemas.Health); ok {
				health = *h
			}
			return nil
		},
		Line: func(l *archive.Line) error {
			if _, ok := l.Event.(*schemas.KernelEvent); ok {
				lines++
			}
			return nil
		},
	})
	if err != nil {
		return health, 0, err
	}
	return health, lines, sum.Err()
}

func lineOf(e *schemas.KernelEvent) expect.Line {
	l := expect.Line{Seq: e.Seq, Pid: int(e.PID), Type: int(e.EventType), Kind: e.Kind, Status: e.Status}
	if e.Value != nil {
		v := string(e.Value)
		l.Value = &v
	}
	number := func(has schemas.KernelHas, v uint64) *uint64 {
		if e.Has&has == 0 {
			return nil
		}
		return &v
	}
	l.Flags = number(schemas.KernelHasFlags, e.Flags)
	l.Mode = number(schemas.KernelHasMode, e.Mode)
	if v := number(schemas.KernelHasResolve, e.Resolve); v != nil {
		l.Resolve = *v
	}
	if e.Has&schemas.KernelHasReturn != 0 {
		ret := e.ReturnValue
		l.Ret = &ret
	}
	if e.Has&schemas.KernelHasRuleID != 0 {
		rule := e.RuleID
		l.Rule = &rule
	}
	return l
}

// readRaw takes from the raw stream what the archive does not have: the health of
// runner-capture, and how many tasks were made, ended and moved.
func (r *record) readRaw(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := stream.NewReader(f, path, schemas.StreamRaw)
	if err != nil {
		return err
	}
	parser := schemas.NewRawParser(in.Header().RunID)
	for {
		rec, err := in.Next()
		if err == io.EOF {
			r.status = in.Trailer().Status
			return nil
		}
		if err != nil {
			return err
		}
		switch rec.Schema {
		case schemas.SchemaRawEvent:
			if len(r.mark) > 0 && bytes.Contains(rec.Bytes, r.mark) {
				r.marked[opOf(rec.Bytes)]++
			}
			if err := r.count(parser, rec.Bytes); err != nil {
				return err
			}
		case schemas.SchemaStageHealth:
			h, err := schemas.ParseStageHealth(rec.Bytes)
			if err != nil {
				return err
			}
			if h.Stage == schemas.StageCapture {
				r.health = h
			}
		}
	}
}

// opOf is the operation of a raw event.
func opOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"op":"`))
	op, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(op)
}

// blocked is one refusal of file rules.
type blocked struct {
	path, hook, source string
	rule               uint32
}

// aside are the operations of raw events that the checks look at, next to the lines.
var aside = [][]byte{[]byte(`"op":"fork",`), []byte(`"op":"exit",`), []byte(`"op":"move",`), []byte(`"op":"file_blocked",`)}

// count counts a raw event that is about a process, not about one of its threads, and
// keeps what file rules refused.
func (r *record) count(p *schemas.RawParser, line []byte) error {
	if !slices.ContainsFunc(aside, func(op []byte) bool { return bytes.Contains(line, op) }) {
		return nil
	}
	var e schemas.RawEvent
	if err := p.Parse(line, &e); err != nil {
		return err
	}
	switch {
	case e.Op == schemas.OpFork && e.ChildPID != e.PID, e.Op == schemas.OpExit && e.TID == e.PID, e.Op == schemas.OpMove:
		r.tree[e.Op]++
	case e.Op == schemas.OpFileBlocked:
		path := string(e.Path)
		if e.Path == nil { // known as text only
			path = string(e.Base) + "/" + string(e.UserPath)
		}
		r.blocked = append(r.blocked, blocked{path, e.Hook, e.Source, e.Rule})
	}
	return nil
}

// complete says why the record does not claim to be complete.
func (r *record) complete() error {
	if r.status == schemas.StatusComplete {
		return nil
	}
	return fmt.Errorf("the record is not complete: %v %v", r.health.Counters, r.health.Facts)
}

// workload measures a workload. Its record must hold exactly what it printed, and must
// claim to be complete.
func (m *machine) workload(flags []string, argv ...string) (*record, []expect.Skip, error) {
	argv[0] = m.tool(argv[0])
	r, err := m.measure(flags, argv...)
	if err != nil {
		return r, nil, err
	}
	made, skips, err := expect.Parse(r.stdout)
	if err != nil {
		return r, nil, err
	}
	res := expect.Compare(append(made, expect.Exec(argv[0])), r.lines)
	if !res.Same() {
		return r, skips, errors.New(strings.Join(append(res.Problems(5), fmt.Sprint(r.complete())), "\n"))
	}
	return r, skips, r.complete()
}

func skipped(skips []expect.Skip) string {
	var all []string
	for _, s := range skips {
		all = append(all, s.What+" ("+s.Why+")")
	}
	if len(all) == 0 {
		return ""
	}
	return "; not possible here: " + strings.Join(all, ", ")
}
