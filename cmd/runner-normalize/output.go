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

// head is what lines of one process and one shape have between seq and value.
type head struct {
	number uint32 // of the process
	shape  *shapeText
	text   []byte
}

// lineWriter completes lines with what their place decides, seq and pid.
type lineWriter struct {
	w         *stream.Writer
	shapes    *shapes
	results   []int16 // of pending connects
	drop      *dropper
	show      *shower
	runID     string
	canonical bool
	order     *order
	times     *clock      // nil without --windows
	tree      *treeWriter // nil without --windows
	procs     *processes  // nil without --processes

	number uint32 // of the process whose lines are being written
	seq    uint64
	start  []byte // what each line begins with, up to seq
	head   head
	line   []byte
	block  []byte // the buffer of w
	from   int    // what of it w knows of
	lines  int
}

// write writes packed lines of the task at a place. Places come in ascending order.
func (o *lineWriter) write(ctx context.Context, place uint32, lines []byte) error {
	o.advance(place)
	for len(lines) > 0 {
		var ktime uint64
		if o.times != nil {
			ktime, lines = o.times.unpack(lines)
		}
		var line shortLine
		line, lines = o.shapes.unpack(lines, o.results)
		if o.drop != nil {
			yes, err := o.drops(ctx, line)
			if err != nil {
				return err
			}
			if yes {
				continue
			}
		}
		if o.tree != nil {
			if err := o.writeProcesses(); err != nil {
				return err
			}
		}
		from := len(o.block)
		o.block = o.appendLine(o.block, line)
		if err := o.fits(len(o.block) - from); err != nil {
			return err
		}
		if o.times != nil {
			o.block = schemas.AppendKernelTime(o.block, ktime)
		}
		o.block = append(o.block, schemas.KernelEnd+"\n"...)
		o.seq++
		o.procs.counted(o.number)
		if err := o.added(); err != nil {
			return err
		}
	}
	return nil
}

// life adds events of the process whose first thread is at a place.
func (o *lineWriter) life(place uint32, events []byte) {
	o.advance(place)
	o.tree.life(o.number, events)
}

// advance makes number that of the process of the task at a place.
func (o *lineWriter) advance(place uint32) {
	o.number = max(o.number, 1)
	for o.order.process(o.number).end <= place {
		o.number++
	}
}

// pid is the process id in the lines of a process: the kernel's, or its number.
func (o *lineWriter) pid(number uint32) uint32 {
	if o.canonical {
		return number
	}
	return o.order.process(number).pid
}

// appendLine appends a line that is still without time and end.
func (o *lineWriter) appendLine(dst []byte, line shortLine) []byte {
	if o.head.number != o.number || o.head.shape != line.shape {
		o.head = head{o.number, line.shape, append(schemas.AppendKernelPID(o.head.text[:0], o.pid(o.number)), line.shape.operation...)}
	}
	dst = append(append(strconv.AppendUint(append(dst, o.start...), o.seq, 10), o.head.text...), line.text...)
	return line.appendDetails(dst)
}

// fits checks the length of what appendLine appended, with the longest time.
func (o *lineWriter) fits(size int) error {
	size += len(schemas.KernelEnd + "\n")
	if o.times != nil {
		size += schemas.MaxKernelTime
	}
	if size > stream.MaxLine {
		return tool.Failf(tool.ExitInput, "a kernel line would be %d bytes long, at most %d", size, stream.MaxLine)
	}
	return nil
}

// drops asks the user's program about a line. It does not see the time.
func (o *lineWriter) drops(ctx context.Context, line shortLine) (bool, error) {
	o.line = o.appendLine(o.line[:0], line)
	if err := o.fits(len(o.line)); err != nil {
		return false, err
	}
	o.line = append(o.line, schemas.KernelEnd...)
	yes, err := o.drop.drops(ctx, o.line)
	if yes {
		o.show.filtered(schemas.FilterDrop, "", o.line)
	}
	return yes, err
}

// writeProcesses writes the records of processes that must come before a line of the
// present one.
func (o *lineWriter) writeProcesses() error {
	o.tree.enter(o.number)
	for {
		number, record := o.tree.next()
		if number == 0 {
			return nil
		}
		record.RunID, record.PID = o.runID, o.pid(number)
		o.block = append(record.AppendJSON(o.block), '\n')
		// There may be a million of them, one below the other.
		if err := o.added(); err != nil {
			return err
		}
	}
}

// added notes one more line in the block.
func (o *lineWriter) added() error {
	o.lines++
	if len(o.block)-o.from < blockSize {
		return nil
	}
	return o.flush()
}

func (o *lineWriter) flush() error {
	if err := o.w.Filled(o.block, o.lines); err != nil {
		return writeError(err)
	}
	o.block, o.lines = o.w.Buffer(), 0
	o.from = len(o.block)
	return nil
}
