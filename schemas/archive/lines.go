package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/runner-evidence/runner/schemas"
)

// lineParser parses one line of a member, checks its place, and returns its event;
// nil when the line cannot be used, which is a finding.
type lineParser func(line []byte, n int) (event any)

// lines visits the lines of a member and returns how many there are.
func (s *reader) lines(form schemas.Form, r io.Reader) (uint64, error) {
	parse := s.parser(form.Member)
	count := uint64(0)
	l := &Line{Member: form.Member}
	err := s.eachLine(form.Member, r, func(line []byte, n int) error {
		count++
		s.exact = false
		event := parse(line, n)
		if event == nil || s.visit.Line == nil {
			return nil
		}
		l.Number, l.Bytes, l.RunID, l.Event, l.Canonical = n, line, s.sum.RunID, event, s.exact
		return visited(s.visit.Line(l))
	})
	return count, err
}

// parser makes the parser of one member: that of its row in the layer table, if it
// has one.
func (s *reader) parser(member string) lineParser {
	for i := range schemas.Layers {
		if l := &schemas.Layers[i]; l.Member == member && l.Parse != nil {
			return s.layerParser(l)
		}
	}
	if member == schemas.MemberEvents {
		return s.eventParser()
	}
	return s.kernelParser(member)
}

// layerParser parses the lines of a layer with the parser of its row.
func (s *reader) layerParser(layer *schemas.Layer) lineParser {
	next := uint64(0)
	return func(line []byte, n int) any {
		next++
		if !s.shallow(layer.Member, n, line) {
			return nil
		}
		l, err := layer.Parse(line)
		if err != nil {
			s.find(RuleLineSchema, layer.Member, n, "%v", err)
			return nil
		}
		s.sameRun(layer.Member, n, l.RunID)
		if l.Seq != next-1 {
			s.find(RuleSeq, layer.Member, n, "seq is %d, expected %d", l.Seq, next-1)
		}
		return l.Value
	}
}

// kernelParser parses the kernel layer, which can be large, into one event.
func (s *reader) kernelParser(member string) lineParser {
	parser := schemas.NewKernelParser(s.sum.RunID)
	var e schemas.KernelEvent
	next := uint64(0)
	return func(line []byte, n int) any {
		if err := parser.Parse(line, &e); err != nil {
			rule := RuleLineSchema
			if errors.Is(err, schemas.ErrRunID) {
				rule = RuleRunID
			}
			s.find(rule, member, n, "%v", err)
			next++
			return nil
		}
		if e.Seq != next {
			s.find(RuleSeq, member, n, "seq is %d, expected %d", e.Seq, next)
		}
		next = e.Seq + 1
		s.exact = parser.Canonical()
		return &e
	}
}

// eventParser parses events.ndjson: run_started, then run_finished, and no more.
func (s *reader) eventParser() lineParser {
	const member = schemas.MemberEvents
	count := 0
	return func(line []byte, n int) any {
		count++
		if count > 2 {
			s.find(RuleEventsPair, member, n, "a third event, expected only run_started and run_finished")
			return nil
		}
		if !s.shallow(member, n, line) {
			return nil
		}
		e, err := schemas.ParseEvent(line)
		switch {
		case err != nil:
			s.find(RuleLineSchema, member, n, "%v", err)
		case e.Started != nil && count == 1:
			s.sameRun(member, n, e.Started.RunID)
			return e.Started
		case e.Finished != nil && count == 2:
			s.sameRun(member, n, e.Finished.RunID)
			return e.Finished
		default:
			s.find(RuleEventsPair, member, n, "expected %s here", [...]string{schemas.TypeRunStarted, schemas.TypeRunFinished}[count-1])
		}
		return nil
	}
}

// buffers are those of readings that are over.
var buffers sync.Pool

// close gives the buffer away.
func (s *reader) close() {
	if s.buf != nil {
		s.buf.Reset(nil)
		buffers.Put(s.buf)
		s.buf = nil
	}
}

// eachLine calls take for every line of a member, without its LF. The line is
// valid during the call. What is not a line is a finding, and reading goes on.
func (s *reader) eachLine(member string, r io.Reader, take func(line []byte, n int) error) error {
	if s.buf == nil {
		s.buf, _ = buffers.Get().(*bufio.Reader)
		if s.buf == nil {
			s.buf = bufio.NewReaderSize(r, MaxLine)
		}
	}
	s.buf.Reset(r)
	for n := 1; ; n++ {
		if s.sum.Findings >= MaxFindings {
			return ErrTooMany
		}
		line, err := s.buf.ReadSlice('\n')
		switch err {
		case nil:
			line = line[:len(line)-1]
		case bufio.ErrBufferFull:
			s.find(RuleLimit, member, n, "line is longer than %d bytes", MaxLine)
			if err := s.skipLine(); err != nil {
				return err
			}
			continue
		case io.EOF:
			if len(line) == 0 {
				return nil
			}
			s.find(RuleLinesForm, member, n, "the last line does not end in a line feed")
		default:
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			s.find(RuleLinesForm, member, n, "blank line")
			continue
		}
		if err := take(line, n); err != nil {
			return err
		}
	}
}

// skipLine reads to the end of a line that is too long.
func (s *reader) skipLine() error {
	for {
		_, err := s.buf.ReadSlice('\n')
		switch err {
		case nil, io.EOF:
			return nil
		case bufio.ErrBufferFull:
		default:
			return err
		}
	}
}
