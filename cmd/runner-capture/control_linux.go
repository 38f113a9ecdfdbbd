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

// maxControl is the most bytes of a control line. Nearly all are short: the memory for them grows with the longest.
const maxControl = 4 << 20

// readControl hands every control line to line. It returns when the other side is
// gone: runner-exec keeps its end open until the run is over, so an end of input
// is never taken for the end of the run.
func readControl(r io.Reader, line func(schemas.Control)) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 4<<10), maxControl)
	in.Split(wholeLine)
	finished := false
	for n := 1; ; n++ {
		if !in.Scan() {
			switch err := in.Err(); {
			case err != nil:
				return fmt.Errorf("reading control line %d: %w", n, err)
			case finished:
				return errors.New("runner-exec went away before the record was sealed")
			}
			return errSupervisorLost
		}
		b := in.Bytes()
		var c schemas.Control
		if err := schemas.Unmarshal(b, &c); err != nil || c.Schema != schemas.SchemaControl {
			return fmt.Errorf("control line %d is not a %s object: %.80q", n, schemas.SchemaControl, b)
		}
		if finished {
			return fmt.Errorf("control line %d follows the last one", n)
		}
		finished = c.Op == schemas.ControlFinished
		line(c)
	}
}

// wholeLine splits at line ends. What is not ended by one is no line: its writer went away in the middle of it.
func wholeLine(b []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1, b[:i], nil
	}
	if atEOF {
		return len(b), nil, nil
	}
	return 0, nil, nil
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
