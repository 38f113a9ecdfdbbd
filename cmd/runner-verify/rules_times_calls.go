package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rule that compares the layer times with the bindings: a call with a window of its
// own cannot have more kernel lines than happened while it ran.

const ruleTimesWindows = "times.windows"

// windowTimes are the times of the kernel lines, and the windows of calls. The lines may be
// millions and come before the windows, so they wait on disk.
type windowTimes struct {
	compare func() bool // whether some binding has a window of its own; asked once
	file    *os.File    // made for the first time
	w       *bufio.Writer
	windows []timeWindow
}

// timeWindow is when a call ran, in nanoseconds since run_started, both included.
type timeWindow struct {
	binding    int
	start, end uint64
}

const timeBytes = 8

// hasOwnWindow reports whether a binding has the window of its call.
func hasOwnWindow(b *schemas.Binding) bool { return b.Window == schemas.CallWindow(b.ToolCallID) }

// windowTime takes in a line of the layer times.
func (v *verifier) windowTime(e *schemas.TimeEvent) {
	t := &v.times.windows
	if t.compare == nil { // the report may have as many bindings as the layer has lines
		t.compare = sync.OnceValue(func() bool {
			return v.report != nil && slices.ContainsFunc(v.report.Bindings, func(b schemas.Binding) bool { return hasOwnWindow(&b) })
		})
	}
	if v.err != nil || !t.compare() {
		return
	}
	switch {
	case e.Layer == schemas.LayerKernel:
		v.err = t.add(e.NS)
	case e.Layer == schemas.LayerPolicy && e.Source == schemas.TimeProxy && e.HasEnd && e.Line < uint64(len(v.report.Bindings)):
		if i := int(e.Line); hasOwnWindow(&v.report.Bindings[i]) {
			t.windows = append(t.windows, timeWindow{i, e.NS, e.EndNS})
		}
	}
}

func (t *windowTimes) add(ns uint64) (err error) {
	if t.file == nil {
		if t.file, err = tool.Spool(); err != nil {
			return err
		}
		t.w = bufio.NewWriterSize(t.file, 64<<10)
	}
	if _, err = t.w.Write(binary.LittleEndian.AppendUint64(t.w.AvailableBuffer(), ns)); err != nil {
		return tool.ScratchError(err)
	}
	return nil
}

func (t *windowTimes) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// timesWindows compares the bindings' counts with the kernel lines in their windows.
func (v *verifier) timesWindows() {
	t := &v.times.windows
	if len(t.windows) == 0 || v.err != nil || !v.sound(timesLayerName) {
		return
	}
	var before func(ns uint64) uint64
	if before, v.err = t.count(); v.err != nil {
		return
	}
	v.timesTogether(before)
	for _, w := range t.windows {
		b := &v.report.Bindings[w.binding]
		if n := before(w.end+1) - min(before(w.start), before(w.end+1)); b.KernelEventCount > n {
			v.add(ruleTimesWindows, bundle.ReportName, 0, "binding %d: kernel_event_count is %d, but %d kernel lines happened between the start and the end of the call", w.binding, b.KernelEventCount, n)
		}
	}
}

// timesTogether compares calls at the same time with all lines of that time: of one session, no line is of
// two calls.
func (v *verifier) timesTogether(before func(ns uint64) uint64) {
	if v.sessions() != 1 || v.unknownServers() > 0 {
		return
	}
	list := slices.Clone(v.times.windows.windows)
	slices.SortFunc(list, func(a, b timeWindow) int { return cmp.Compare(a.start, b.start) })
	for i := 0; i < len(list); {
		end, sum, first := list[i].end, uint64(0), i
		for ; i < len(list) && list[i].start <= end; i++ {
			end, sum = max(end, list[i].end), sum+v.report.Bindings[list[i].binding].KernelEventCount
		}
		if n := before(end+1) - min(before(list[first].start), before(end+1)); sum > n {
			v.add(ruleTimesWindows, bundle.ReportName, 0, "binding %d and those at the same time: their kernel_event_count add up to %d, but %d kernel lines happened in that time", list[first].binding, sum, n)
		}
	}
}

// count returns how many kernel lines happened before the start, or just after the end,
// of a window. It reads the times once: a line is sorted in among the ends of windows.
func (t *windowTimes) count() (before func(ns uint64) uint64, err error) {
	var ends []uint64
	for _, w := range t.windows {
		ends = append(ends, w.start, w.end+1)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	sums := make([]uint64, len(ends)+1) // at i: lines that i ends do not follow
	if t.file != nil {
		if err := t.w.Flush(); err != nil {
			return nil, tool.ScratchError(err)
		}
		r := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, 1<<62), 64<<10)
		for b := make([]byte, timeBytes); ; {
			if _, err := io.ReadFull(r, b); err == io.EOF {
				break
			} else if err != nil {
				return nil, tool.ScratchError(err)
			}
			i, found := slices.BinarySearch(ends, binary.LittleEndian.Uint64(b))
			if found {
				i++
			}
			sums[i]++
		}
	}
	for i := 1; i < len(sums); i++ {
		sums[i] += sums[i-1]
	}
	return func(ns uint64) uint64 {
		i, _ := slices.BinarySearch(ends, ns)
		return sums[i]
	}, nil
}
