package main

import (
	"context"
	"strconv"

	"runner/cmd/internal/tool"
	"runner/schemas"
	"runner/schemas/stream"
)

// blockSize is how many bytes of lines go to the stream at once.
const blockSize = 64 << 10

// lineWriter completes lines with what their place decides, seq and pid.
type lineWriter struct {
	w      *stream.Writer
	shapes *shapes
	drop   *dropper
	show   *shower
	runID  string
	seq    uint64
	start  []byte
	block  []byte
	lines  int
}

// write writes packed lines, of one process.
func (o *lineWriter) write(ctx context.Context, pid, packed []byte) error {
	if o.start == nil {
		o.start = []byte(`{"schema":"` + schemas.SchemaKernelEvent + `","run_id":"` + o.runID + `","seq":`)
		o.block = make([]byte, 0, blockSize+blockSize/4)
	}
	for len(packed) > 0 {
		from := len(o.block)
		o.block = append(o.block, o.start...)
		o.block = strconv.AppendUint(o.block, o.seq, 10)
		o.block = append(o.block, `,"pid":`...)
		o.block = append(o.block, pid...)
		o.block, packed = o.shapes.unpack(o.block, packed)
		if size := len(o.block) - from; size > stream.MaxLine {
			return tool.Failf(tool.ExitInput, "a kernel line would be %d bytes long, at most %d", size, stream.MaxLine)
		}
		if o.drop != nil {
			line := o.block[from : len(o.block)-1]
			yes, err := o.drop.drops(ctx, line)
			if err != nil {
				return err
			}
			if yes {
				o.show.filtered(ruleUser, "", line)
				o.block = o.block[:from]
				continue
			}
		}
		o.seq++
		o.lines++
		if len(o.block) >= blockSize {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *lineWriter) flush() error {
	if err := o.w.WriteBlock(o.block, o.lines); err != nil {
		return writeError(err)
	}
	o.block, o.lines = o.block[:0], 0
	return nil
}
