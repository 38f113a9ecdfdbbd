//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// ordinary is a run that makes one marked event of every kind and goes to all places, with
// its archive. Several checks look at it: to start a run is dear in an emulated machine.
type ordinary struct {
	record
	archive string
	places  []string
	without string // what this machine does not have
	skips   []expect.Skip
}

func (m *machine) ordinary() (*ordinary, error) {
	m.ordinaryOnce.Do(func() { m.ordinaryRun, m.ordinaryErr = m.makeOrdinary() })
	return m.ordinaryRun, m.ordinaryErr
}

func (m *machine) makeOrdinary() (*ordinary, error) {
	said, err := probe(m)
	if err != nil {
		return nil, needCapture(m)
	}
	r := &ordinary{places: places}
	kinds := append([]string{m.tool("kinds"), m.dir()}, groups...)
	if strings.Contains(said, schemas.FactIOUring+": "+schemas.CaptureAttached) {
		kinds = append(kinds, "ring")
	}
	if err := needFilesystem("overlay"); err != nil {
		r.without = "; " + err.Error()
	} else {
		r.places = append([]string{"overlay"}, places...)
	}
	self, shapes := m.tool("check"), m.tool("shapes")
	argv := slices.Concat([]string{self, eachStage}, kinds, []string{"--", shapes, strings.Join(r.places, ","), m.dir()})
	if err := m.pack(r, []string{"--grace", "5s"}, argv); err != nil {
		return r, err
	}
	made, skips, err := expect.Parse(r.stdout)
	if err != nil {
		return r, err
	}
	r.skips = skips
	if res := expect.Compare(append(made, expect.Exec(self), expect.Exec(kinds[0]), expect.Exec(shapes)), r.lines); !res.Same() {
		return r, errors.New(strings.Join(append(res.Problems(5), fmt.Sprint(r.complete())), "\n"))
	}
	return r, r.complete()
}

// pack makes the archive of a run and keeps the streams that the stages made of it.
func (m *machine) pack(r *ordinary, flags, argv []string) (err error) {
	dir := m.dir()
	r.tree, r.marked = map[string]int{}, map[string]int{}
	archive, kept := dir+"/run.tar.gz", dir+"/kept"
	c := m.command("runner-exec", slices.Concat(flags, []string{"--archive", archive, "--keep", kept, "--"}, argv)...)
	if r.outcome, err = call(c); err != nil {
		return err
	}
	if r.code != 0 {
		return fmt.Errorf("runner-exec -- %s: %v", strings.Join(argv, " "), r.outcome)
	}
	r.archive = archive
	if err := r.readRaw(kept + "/1-raw.ndjson"); err != nil {
		return err
	}
	if r.health == nil {
		return fmt.Errorf("the raw stream has no health of %s", schemas.StageCapture)
	}
	f, err := os.Open(kept + "/2-kernel.ndjson")
	if err != nil {
		return err
	}
	defer f.Close()
	return r.readLines(f)
}

const eachStage = "_each"

func init() { stages[eachStage] = each }

// each executes programs, with "--" between them, one after the other.
func each(args []string) {
	for more := true; more; {
		argv := args
		i := slices.Index(args, "--")
		if more = i >= 0; more {
			argv, args = args[:i], args[i+1:]
		}
		pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
		var status syscall.WaitStatus
		if err == nil {
			_, err = syscall.Wait4(pid, &status, 0, nil)
		}
		if err != nil || status != 0 {
			fmt.Fprintf(os.Stderr, "check: %s: %v, status %#x\n", argv[0], err, status)
			os.Exit(1)
		}
	}
}
