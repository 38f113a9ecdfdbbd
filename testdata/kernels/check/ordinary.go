//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// ordinary is a run that makes one marked event of every kind and goes to all places.
// Several checks look at it: to start a run is dear in an emulated machine.
type ordinary struct {
	*record
	places  []string
	without string // what this machine does not have
	skips   []expect.Skip

	archive  string
	unpacked error // why there is none
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
	if withRing(said) {
		kinds = append(kinds, "ring", "ring-other")
	}
	if err := needFilesystem("overlay"); err != nil {
		r.without = "; " + err.Error()
	} else {
		r.places = append([]string{"overlay"}, places...)
	}
	self, shapes := m.tool("check"), m.tool("shapes")
	argv := slices.Concat([]string{self, eachStage}, kinds, []string{"--", shapes, strings.Join(r.places, ","), m.dir()})
	captured, raw, err := m.capture("", []string{"--grace", "5s"}, argv)
	if err == nil {
		r.archive, r.unpacked = m.archive(raw)
	}
	if r.record, err = m.normalized(captured, raw, err); err != nil {
		r.unpacked = err
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
