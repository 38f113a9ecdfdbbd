package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// costJob measures what measuring costs on a kernel. Its results are numbers: they are printed, compared with nothing, and recorded for
// the table of make bench.
const costJob = "cost"

// cost is all that a guest does then. Two emulated cores share one real one: a kernel counts the time of both as a program's, and one core
// waits long for the answer of the other. So most is measured on one core, and on two what processes and the runner do at once, by the clock.
func cost() []guest.Job {
	job := func(name string, cores int, pairs, sections string) guest.Job {
		return guest.Job{Name: name, Args: []string{"bench", "-tools", guest.Bin, "-lines", "-pairs", pairs, "-only", sections}, Capture: true, Shell: true, Cores: cores, Seconds: 2400}
	}
	return []guest.Job{
		job(costJob, 1, "3", "start,open,outside,scale,spawn,grep"),
		job(costJob+"-2-cores", 2, "2", "many,after"),
	}
}

// countedClock makes the clock of a guest count instructions: one takes a nanosecond, and while all wait the clock jumps. So neither what else the
// host does nor how dear an instruction is to emulate is in a ratio.
var countedClock = []string{"-icount", "shift=0,sleep=off"}

// toolsCheck is the line in which bench says what it measures.
const toolsCheck = costJob + "/tools"

// recordCosts writes what each kernel measured.
func recordCosts(reports []report) (err error) {
	for _, r := range reports {
		machine, e := machineOf(r.Arch)
		if e == nil {
			var c emulated.Result
			if c, e = costsOf(r); e == nil {
				c.Machine, c.Date = machine, time.Now().UTC().Format(time.DateOnly)
				e = os.WriteFile(filepath.Join(emulated.Folder, emulated.FileName(r.Kernel)), c.Encode(), 0o644)
			}
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: the costs are not recorded: %w", r.Kernel, e))
		}
	}
	return err
}

// costsOf is the record of one kernel. Some rows of two runs are no record.
func costsOf(r report) (emulated.Result, error) {
	c := emulated.Result{Kernel: r.Kernel, Release: r.Release, Arch: r.Arch}
	for _, l := range r.Checks {
		switch {
		case l.Result != guest.OK:
			return c, fmt.Errorf("%s: %s", l.Check, show(l))
		case l.Check == toolsCheck:
			c.Version = l.Detail
		case l.Cost != nil:
			c.Rows = append(c.Rows, *l.Cost)
		}
	}
	if c.Version == "" || c.Rows == nil {
		return c, errors.New("nothing was measured")
	}
	return c, nil
}

// machineOf names what emulates an architecture.
func machineOf(arch string) (string, error) {
	out, err := exec.Command(machines[arch].program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", machines[arch].program, err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.Join(append([]string{strings.TrimSpace(first)}, countedClock...), " "), nil
}
