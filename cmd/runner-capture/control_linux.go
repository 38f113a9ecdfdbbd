package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"runner/schemas"
)

// errSupervisorLost says that runner-exec went away before the command ended.
var errSupervisorLost = errors.New("runner-exec went away before it said how the command ended")

// readControl hands every control line to line, until it has handed over
// "finished". End of input before that is never taken for an end of the run.
func readControl(r io.Reader, line func(schemas.Control)) error {
	br := bufio.NewReaderSize(r, 4<<20)
	for n := 1; ; n++ {
		b, err := br.ReadSlice('\n')
		if err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				return errSupervisorLost
			}
			return fmt.Errorf("reading control line %d: %w", n, err)
		}
		var c schemas.Control
		if err := schemas.Unmarshal(bytes.TrimSuffix(b, []byte("\n")), &c); err != nil || c.Schema != schemas.SchemaControl {
			return fmt.Errorf("control line %d is not a %s object: %.80q", n, schemas.SchemaControl, b)
		}
		line(c)
		if c.Op == "finished" {
			return nil
		}
	}
}
