package main

import (
	"github.com/runner-evidence/runner/schemas"
)

// times says whether a kernel stream has times. runner-normalize --windows adds a time
// to every line and a record for every process; without it there are neither.
type times int

const (
	timesUnknown times = iota // no kernel line was seen yet
	timed
	untimed
)

// sameTimes checks that either all kernel lines have a time or none has.
func (j *joiner) sameTimes(when schemas.KernelTime) error {
	has := when.At > 0
	if j.times == timesUnknown && !has {
		j.times = untimed
	}
	if has != (j.times == timed) {
		return j.refuse("some kernel lines have a ktime_ns and a process record before them, and some do not")
	}
	return nil
}

// process takes in the record of a process. It is not written to the output.
func (j *joiner) process(line []byte) error {
	switch {
	case len(j.stages) > 0 || j.processes.written > 0:
		return j.refuse("a process record follows the health records, or the layer %s", schemas.LayerProcess)
	case j.times == untimed:
		return j.refuse("a process record follows kernel lines without a ktime_ns")
	case j.tree == nil:
		j.tree = newTree(j.in.Header().RunID, nil, nil)
	}
	j.times = timed
	if err := j.tree.enter(line); err != nil {
		return j.refuse("%v", err)
	}
	return nil
}

// attribute assigns a line with a time to the current process, and so to calls.
func (j *joiner) attribute(e *schemas.KernelEvent, ktime uint64) error {
	if p := j.tree.current(); e.PID != p.pid {
		return j.refuse("kernel line of pid %d under the record of process %d", e.PID, p.pid)
	}
	if j.attribution != nil {
		j.attribution.line(e, ktime)
	}
	return nil
}

// balanceTimes checks that no process record was lost. For a stream without lines it
// also finds out whether lines would have had times.
func (j *joiner) balanceTimes(normalize *schemas.StageHealth) error {
	written, windows := normalize.Counters[schemas.CounterProcessRecords]
	switch {
	case windows && j.times == untimed:
		return j.refuse("%s counts process records, but the kernel lines have no ktime_ns", normalize.Stage)
	case windows:
		j.times = timed
	case j.times == timed:
		return j.refuse("%s reports no counter %q of a stream with times", normalize.Stage, schemas.CounterProcessRecords)
	}
	read := uint64(0)
	if j.tree != nil {
		read = j.tree.records
	}
	if read != written {
		return j.refuse("%s wrote %d process records, the stream has %d", normalize.Stage, written, read)
	}
	return nil
}
