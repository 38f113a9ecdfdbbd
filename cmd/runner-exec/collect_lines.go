package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// lineLog stores the lines of one log in a nameless file until the run is over. When
// the log reaches a bound, nothing more is stored: a log that ends early at a known
// place is better than one with a gap in the middle.
type lineLog struct {
	file    *os.File
	w       *bufio.Writer
	total   uint64 // bytes that arrived
	whole   int64  // stored bytes that make up whole lines
	partial int64  // stored bytes after the last LF
	lines   uint64 // whole lines
	stopped string // the bound that was reached, or ""
	err     error  // the file cannot be written: there will be no log

	clock func() uint64 // nil without --times
	ends  []uint64      // when the LF of each whole line was read
	last  uint64        // when the last bytes were read
}

func newLineLog() (*lineLog, error) {
	f, err := tool.Spool()
	if err != nil {
		return nil, err
	}
	return &lineLog{file: f, w: bufio.NewWriterSize(f, 64<<10)}, nil
}

func notStored(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("storing a log: %w", tool.ScratchError(err))
}

func (l *lineLog) close() { l.file.Close() }

// take counts and stores bytes that arrived. The result does not depend on how they
// are cut into reads.
func (l *lineLog) take(b []byte) {
	l.total += uint64(len(b))
	if l.clock != nil {
		l.last = l.clock()
	}
	for len(b) > 0 && l.stopped == "" {
		segment, rest := b, []byte(nil)
		content := len(b)
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			segment, rest, content = b[:i+1], b[i+1:], i
		}
		if l.stopped = l.bound(content, len(segment)); l.stopped != "" {
			l.partial = 0
			return
		}
		if _, err := l.w.Write(segment); err != nil && l.err == nil {
			l.err = notStored(err)
		}
		l.partial += int64(len(segment))
		if content < len(segment) {
			l.whole, l.partial = l.whole+l.partial, 0
			l.lines++
			if l.clock != nil {
				l.ends = append(l.ends, l.last)
			}
		}
		b = rest
	}
}

// bound returns the bound that the log reaches when its current line gets content more
// bytes (size with the LF), or "".
func (l *lineLog) bound(content, size int) string {
	line := schemas.MaxLogLine - l.partial
	all := schemas.MaxLogBytes - l.whole - l.partial
	switch {
	case l.lines == schemas.MaxLogLines:
		return schemas.StoppedLines
	case int64(content) > line && line <= all:
		return schemas.StoppedLine
	case int64(size) > all:
		return schemas.StoppedBytes
	}
	return ""
}

func (l *lineLog) kept() uint64 { return uint64(l.whole + l.partial) }

// records writes the stored lines, including a last line without LF, and returns how
// many there are.
func (l *lineLog) records(w *stream.Writer, runID string) (uint64, error) {
	if l.err == nil {
		l.err = notStored(l.w.Flush())
	}
	if l.err != nil {
		return 0, l.err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(l.file, 0, l.whole+l.partial), schemas.MaxLogLine+1)
	for n := uint64(0); ; n++ {
		line, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF {
			return n, fmt.Errorf("reading a stored log: %w", err)
		}
		if err == io.EOF && len(line) == 0 {
			return n, nil
		}
		text := schemas.AppendText(nil, bytes.TrimSuffix(line, []byte{'\n'}))
		rec := schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: runID, Seq: n, Line: string(text), ReceivedNS: l.received(n)}
		if err := w.Write(rec); err != nil {
			return n, err
		}
	}
}

// received is the time when a stored line had been read, 0 without --times. The time of
// a last line without LF is that of its last bytes.
func (l *lineLog) received(line uint64) uint64 {
	if line < uint64(len(l.ends)) {
		return l.ends[line]
	}
	return l.last
}
