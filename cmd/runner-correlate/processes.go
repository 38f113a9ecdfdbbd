package main

import (
	"github.com/runner-evidence/runner/schemas"
)

// processes is what is known of the layer process, whose lines pass through as they are.
type processes struct {
	written uint64 // lines of the layer
	lines   uint64 // kernel lines that they count
}

// processLine checks a line of the layer process. In the stream it comes after the kernel lines; the
// layers of logs that are before it in the table are written first.
func (j *joiner) processLine(line []byte) error {
	p := &j.processes
	if j.events != 2 || len(j.stages) > 0 {
		return j.refuse("a line of the layer %s is not between the kernel lines and the health records", schemas.LayerProcess)
	}
	e, err := schemas.ParseProcessEvent(line)
	switch {
	case err != nil:
		return j.refuse("%v", err)
	case e.Seq != p.written:
		return j.refuse("process line has seq %d, expected %d", e.Seq, p.written)
	case uint64(e.Process) != e.Seq+1 || e.Parent >= e.Process:
		return j.refuse("process line %d is of process %d with parent %d, expected the number after seq and one below it", e.Seq, e.Process, e.Parent)
	case e.Lines > j.lines-p.lines:
		return j.refuse("process line %d has %d kernel lines, only %d are left", e.Seq, e.Lines, j.lines-p.lines)
	}
	p.written++
	p.lines += e.Lines
	if err := j.writeLayers(schemas.LayerProcess); err != nil {
		return failWrite(err)
	}
	return nil
}

// balanceProcesses compares the layer process with what runner-normalize counted.
func (j *joiner) balanceProcesses() error {
	h, p := j.stages[1], &j.processes
	var noted schemas.NoteValues
	for _, text := range h.Notes {
		if v, err := schemas.NoteProcesses.Parse(text); err == nil {
			noted = v
		}
	}
	n, _ := noted.Count(schemas.KeyProcesses)
	omitted, _ := noted.Count(schemas.KeyOmitted)
	switch {
	case n != p.written:
		return j.refuse("%s wrote %d lines of the layer %s, the stream has %d", h.Stage, n, schemas.LayerProcess, p.written)
	case n > 0 && omitted == 0 && p.lines != j.lines:
		return j.refuse("the processes of the layer %s have %d kernel lines, the stream has %d", schemas.LayerProcess, p.lines, j.lines)
	}
	return nil
}
