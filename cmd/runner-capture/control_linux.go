package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// errSupervisorLost says that runner-exec went away before the command ended.
var errSupervisorLost = errors.New("runner-exec went away before it said how the command ended")

// readControl hands every control line to line. It returns when the other side is
// gone: runner-exec keeps its end open until the run is over, so an end of input
// is never taken for the end of the run.
func readControl(r io.Reader, line func(schemas.Control)) error {
	br := bufio.NewReaderSize(r, 4<<20)
	finished := false
	for n := 1; ; n++ {
		b, err := br.ReadSlice('\n')
		if err == io.EOF && finished {
			return errors.New("runner-exec went away before the record was sealed")
		}
		if err == io.EOF {
			return errSupervisorLost
		}
		if err != nil {
			return fmt.Errorf("reading control line %d: %w", n, err)
		}
		var c schemas.Control
		if err := schemas.Unmarshal(bytes.TrimSuffix(b, []byte("\n")), &c); err != nil || c.Schema != schemas.SchemaControl {
			return fmt.Errorf("control line %d is not a %s object: %.80q", n, schemas.SchemaControl, b)
		}
		if finished {
			return fmt.Errorf("control line %d follows the last one", n)
		}
		finished = c.Op == schemas.ControlFinished
		line(c)
	}
}

// runSpan is when the run started and when its command ended, as control lines say. It
// refuses times that cannot be true: runner-correlate would, after the run.
func runSpan(started schemas.RunClock, finishedNS uint64) (schemas.RunSpan, error) {
	if finishedNS < started.MonotonicNS {
		return schemas.RunSpan{}, fmt.Errorf("control line finished has monotonic_ns %d, expected %d or later: the command started then", finishedNS, started.MonotonicNS)
	}
	span, err := schemas.ParseRunSpan(schemas.RunSpan{RunClock: started, FinishedNS: finishedNS - started.MonotonicNS}.String())
	if err != nil {
		return span, fmt.Errorf("control line: %w", err)
	}
	return span, nil
}
