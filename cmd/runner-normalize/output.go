package main

import (
	"context"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// blockSize is how many bytes of lines go to the stream at once.
const blockSize = 64 << 10

// timeKey comes in front of a line's time; timeSize is what both take at most.
const (
	timeKey  = `,"ktime_ns":`
	timeSize = len(timeKey) + len("18446744073709551615")
)

// lineWriter completes lines with what their place decides, seq and pid.
type lineWriter struct {
	w      *stream.Writer
	shapes *shapes
	drop   *dropper
	show   *shower
	runID  string
	times  *clock      // nil without --windows
	tree   *treeWriter // nil without --windows
	seq    uint64
	start  []byte
	line   []byte
	block  []byte
	lines  int
	pid    [10]byte
}

// write writes packed lines of one process: of a pid, and with --windows of the
// process that has this head.
func (o *lineWriter) write(ctx context.Context, process uint32, packed []byte) error {
	if o.start == nil {
		o.start = []byte(`{"schema":"` + schemas.SchemaKernelEvent + `","run_id":"` + o.runID + `","seq":`)
		o.block = make([]byte, 0, blockSize+blockSize/4)
	}
	number := process
	if o.tree != nil {
		number = o.tree.pid(process)
	}
	pid := strconv.AppendUint(o.pid[:0], uint64(number), 10)
	for len(packed) > 0 {
		var ktime uint64
		if o.times != nil {
			ktime, packed = o.times.unpack(packed)
		}
		from := len(o.block)
		o.block = append(o.block, o.start...)
		o.block = strconv.AppendUint(o.block, o.seq, 10)
		o.block = append(o.block, `,"pid":`...)
		o.block = append(o.block, pid...)
		o.block, packed = o.shapes.unpack(o.block, packed)
		size := len(o.block) - from
		if o.tree != nil {
			size += timeSize
		}
		if size > stream.MaxLine {
			return tool.Failf(tool.ExitInput, "a kernel line would be %d bytes long, at most %d", size, stream.MaxLine)
		}
		if o.drop != nil {
			line := o.block[from : len(o.block)-1]
			yes, err := o.drop.drops(ctx, line)
			if err != nil {
				return err
			}
			if yes {
				o.show.filtered(schemas.FilterDrop, "", line)
				o.block = o.block[:from]
				continue
			}
		}
		if o.tree != nil {
			if err := o.window(process, from, ktime); err != nil {
				return err
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

// window adds what --windows is about to the line that begins at from: its time,
// and in front of it the records of processes that are not written yet.
func (o *lineWriter) window(process uint32, from int, ktime uint64) error {
	o.block = append(o.block[:len(o.block)-len("}\n")], timeKey...)
	o.block = append(strconv.AppendUint(o.block, ktime, 10), "}\n"...)
	if o.tree.current == process {
		return nil
	}
	o.line = append(o.line[:0], o.block[from:]...)
	o.block = o.block[:from]
	for _, head := range o.tree.enter(process) {
		o.block = o.tree.record(o.block, head)
		o.lines++
		// There may be a million of them, one below the other.
		if len(o.block) >= blockSize {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	o.block = append(o.block, o.line...)
	return nil
}

func (o *lineWriter) flush() error {
	if err := o.w.WriteBlock(o.block, o.lines); err != nil {
		return writeError(err)
	}
	o.block, o.lines = o.block[:0], 0
	return nil
}
