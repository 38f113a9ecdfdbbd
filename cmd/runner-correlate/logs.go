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

// layerRoom keeps the policy layer within its bound. Its lines are written at the end,
// when outcomes and numbers are known, so each is counted with its largest length.
type layerRoom struct {
	runID string
	used  int
	calls schemas.CallRoom
	full  bool
}

func (r *layerRoom) take(e schemas.PolicyEvent) bool {
	e.Schema, e.RunID, e.Seq, e.SourceEventType = schemas.SchemaPolicyEvent, r.runID, schemas.MaxLogLines, schemas.LogDecision
	if e.Outcome == "" && schemas.IsLogSource(e.Source) {
		e.Outcome = schemas.OutcomeInputRequired // the longest
	}
	b, err := schemas.Marshal(e)
	if r.used += len(b) + len("\n"); err != nil || r.used > schemas.MaxLogLayer || !e.Room(&r.calls) {
		r.full = true
	}
	return !r.full
}

// logFacts is what is known about a log apart from its lines.
type logFacts struct {
	lines        uint64
	stopped      bool   // it exceeded its limits
	unterminated bool   // its last line has no LF
	replaced     bool   // another file had its path at the end
	writerOpen   bool   // a process held it open when the command ended
	writtenAfter bool   // something was written to it after the command ended
	policy       string // digest of the run's policy, or ""
	seal         schemas.Status
	untimed      bool // a line has no time when it was read
	empty        bool // the file has no bytes: no stream, and no line of a plain log
	unused       bool // it was collected, nobody wrote to it, and nothing is wrong with it
}

// logLine is one line of a log, numbered from 1 and without LF. Its text is valid only
// during the call that receives it.
type logLine struct {
	number   uint64
	text     []byte
	received uint64 // CLOCK_MONOTONIC when runner-exec read it; 0 is unknown
}

// takeLine receives the lines of a log.
type takeLine func(logLine)

// readLog reads a log, a collected stream or a plain file, to its end. It fails when
// the log cannot be read, a stream is not whole, or a plain file is something else by its first line. What
// the measured command wrote to a log that was collected is never an error.
func readLog(path string, l *schemas.Layer, runID string, each takeLine) (logFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return logFacts{}, tool.CannotRead(path, err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return logFacts{}, tool.Failf(tool.ExitInput, "%s is a directory, expected a log", path)
	}
	return readLogFrom(f, path, l, runID, each)
}

func readLogFrom(f io.Reader, path string, l *schemas.Layer, runID string, each takeLine) (logFacts, error) {
	r := bufio.NewReaderSize(f, schemas.MaxLogLine+1)
	const header = `{"schema":"` + schemas.SchemaHeader + `"`
	if begin, _ := r.Peek(len(header)); string(begin) != header {
		head, _ := r.Peek(r.Size())
		if why := l.Begins(head); why != nil {
			return logFacts{}, tool.Fail(tool.ExitInput, fmt.Errorf("%s:1: this is no %s: %w", path, l.Log.Title, why), "name the file that runner-exec --"+l.Name+"-log wrote, or the log itself")
		}
		return readPlain(r, path, each)
	}
	c := &collected{runID: runID, each: each}
	var err error
	if c.in, err = stream.NewReader(r, path, l.Log.Stream); err == nil {
		err = c.read()
	}
	if err != nil {
		return logFacts{}, tool.StreamError(err)
	}
	c.facts.seal = c.in.Trailer().Status
	return c.facts, nil
}

// readPlain reads a file of lines, up to the limits.
func readPlain(r *bufio.Reader, path string, each takeLine) (logFacts, error) {
	f := logFacts{seal: schemas.StatusComplete, untimed: true}
	left := schemas.MaxLogBytes
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case err == bufio.ErrBufferFull:
			f.stopped = true
			return f, nil
		case err != nil && err != io.EOF:
			return f, tool.CannotRead(path, err)
		case len(line) == 0:
			f.empty = f.lines == 0
			return f, nil
		}
		if left -= len(line); left < 0 || f.lines == schemas.MaxLogLines {
			f.stopped = true
			return f, nil
		}
		f.lines++
		each(logLine{number: f.lines, text: bytes.TrimSuffix(line, []byte{'\n'})})
		if err == io.EOF {
			// Many loggers write no LF after the last line. A file does not show whether
			// that line was cut.
			return f, nil
		}
	}
}

// collected reads a log that runner-exec collected.
type collected struct {
	in    *stream.Reader
	runID string
	each  takeLine
	facts logFacts
	ended bool
	last  uint64 // received_ns of the line before
}

func (c *collected) read() error {
	if id := c.in.Header().RunID; id != c.runID {
		return c.in.Errorf("this is the log of run %q, the kernel stream's is %q", id, c.runID)
	}
	for {
		rec, err := c.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if c.ended {
			return c.in.Errorf("a record after the stage health")
		}
		switch rec.Schema {
		case schemas.SchemaLogLine:
			err = c.line(rec.Bytes)
		case schemas.SchemaStageHealth:
			err = c.health(rec.Bytes)
		default:
			err = fmt.Errorf("unknown schema %.80q", rec.Schema)
		}
		if err != nil {
			return c.in.Errorf("%v", err)
		}
	}
	if !c.ended {
		return c.in.Errorf("no stage health")
	}
	return nil
}

func (c *collected) line(b []byte) error {
	l, err := schemas.ParseLogLine(b)
	if err != nil {
		return err
	}
	if l.Seq != c.facts.lines {
		return fmt.Errorf("seq %d, expected %d", l.Seq, c.facts.lines)
	}
	raw, err := schemas.Untext(l.Line)
	switch {
	case err != nil:
		return err
	case len(raw) > schemas.MaxLogLine || c.facts.lines == schemas.MaxLogLines:
		return fmt.Errorf("line %d is beyond the limits of a collected log", l.Seq+1)
	}
	if l.ReceivedNS != 0 && (l.ReceivedNS < c.last || l.ReceivedNS > schemas.MaxTimeNS) {
		return fmt.Errorf("received_ns is %d, expected %d to %d: lines are read one after the other", l.ReceivedNS, c.last, uint64(schemas.MaxTimeNS))
	}
	c.last = max(c.last, l.ReceivedNS)
	c.facts.lines++
	c.facts.untimed = c.facts.untimed || l.ReceivedNS == 0
	c.each(logLine{c.facts.lines, []byte(raw), l.ReceivedNS})
	return nil
}

func (c *collected) health(b []byte) error {
	h, err := schemas.ParseStageHealth(b)
	if err != nil {
		return err
	}
	c.ended = true
	if h.Stage != schemas.StageExec {
		return fmt.Errorf("stage health of %q, expected %s", h.Stage, schemas.StageExec)
	}
	for _, name := range schemas.CountersOf(schemas.StageExec, "") {
		if _, ok := h.Counters[name]; !ok {
			return fmt.Errorf("runner-exec reports no counter %q", name)
		}
	}
	if n := h.Counters[schemas.CounterLines]; n != c.facts.lines {
		return fmt.Errorf("runner-exec counted %d lines, read %d", n, c.facts.lines)
	}
	for _, fact := range schemas.FactsOf(schemas.StageExec, "") {
		if err := fact.Check(h); err != nil {
			return err
		}
	}
	f := &c.facts
	f.stopped = h.Facts[schemas.FactStopped] != schemas.StoppedNot || h.Counters[schemas.CounterDroppedBytes] > 0
	f.unterminated = h.Facts[schemas.FactUnterminated] == schemas.Yes
	f.replaced = h.Facts[schemas.FactReplaced] == schemas.Yes
	f.writerOpen = h.Facts[schemas.FactWritersAtEnd] == schemas.WritersOpen
	f.writtenAfter = h.Counters[schemas.CounterAfterEndBytes] > 0
	f.unused = f.lines == 0 && h.Counters[schemas.CounterBytes] == 0 && h.Facts[schemas.FactWritersAtEnd] == schemas.WritersNone && !f.stopped && !f.unterminated && !f.replaced && !f.writtenAfter
	if f.policy = h.Facts[schemas.FactPolicyDigest]; f.policy != "" && !schemas.ValidDigest(f.policy) {
		return fmt.Errorf("%s reports %s=%.100q, expected sha256: and 64 lower-case hex digits", h.Stage, schemas.FactPolicyDigest, f.policy)
	}
	return nil
}

// problem is why a layer ends before its log does.
type problem struct {
	line uint64 // 0 is none
	why  string
}

// unlessCut drops a problem that is explained by a last line that was cut.
func (p problem) unlessCut(f logFacts) problem {
	if f.unterminated && p.line == f.lines && p.why == schemas.WhyJSON {
		return problem{}
	}
	return p
}
