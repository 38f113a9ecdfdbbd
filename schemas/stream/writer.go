package stream

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// writeSize is how much is digested and written at once; a buffer has room for the
// line that goes beyond it.
const (
	writeSize  = 256 << 10
	bufferSize = writeSize + 4<<10
)

// Writer writes one stream. It is not safe for concurrent use. After an error
// every further call returns that error.
type Writer struct {
	buf  []byte // neither digested nor written yet
	sink sink
	h    Header
	n    uint64
	err  error
}

// NewWriter writes and flushes the header: from here on the producer is ready.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	return create(&directSink{w: w, h: newHash(h.Checksum)}, h)
}

// NewAsyncWriter is NewWriter for a stage with much other work: a goroutine of the
// Writer digests and writes. The bytes are the same; an error may be returned
// later, but no later than by Flush and Seal. A Writer that is not sealed must be
// closed.
func NewAsyncWriter(w io.Writer, h Header) (*Writer, error) {
	return create(newAsyncWriter(w, newHash(h.Checksum)), h)
}

func create(to sink, h Header) (*Writer, error) {
	if !schemas.ValidRunID(h.RunID) {
		return nil, fmt.Errorf("run id %q: want 1 to 128 of A-Z a-z 0-9 _ -", h.RunID)
	}
	if h.Checksum == schemas.ChecksumSHA256 {
		h.Checksum = "" // it is not named
	}
	h.Schema = schemas.SchemaHeader
	s := &Writer{buf: make([]byte, 0, bufferSize), sink: to, h: h}
	line, err := schemas.Marshal(h)
	if err != nil {
		return nil, err
	}
	s.put(line, "")
	return s, s.Flush()
}

func (s *Writer) put(line []byte, end string) {
	if s.err != nil {
		return
	}
	if n := len(line) + len(end) + 1; n > MaxLine {
		s.err = fmt.Errorf("%w: line of %d bytes, at most %d", ErrForm, n, MaxLine)
		return
	}
	s.buf = append(append(append(s.buf, line...), end...), '\n')
	if len(s.buf) >= writeSize {
		s.pass()
	}
}

// pass hands over what is in the buffer.
func (s *Writer) pass() {
	if s.err == nil && len(s.buf) > 0 {
		s.buf, s.err = s.sink.put(s.buf)
	}
}

// Close ends the goroutine of a Writer that has one, and waits for it. It neither writes
// nor seals; its error is the first one of earlier writes.
func (s *Writer) Close() error { return s.sink.close() }

// Write encodes v as one record. v must carry schema first and run_id second.
func (s *Writer) Write(v any) error {
	line, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	return s.WriteRaw(line)
}

// WriteRaw writes one record line, given without its LF, as it is.
func (s *Writer) WriteRaw(line []byte) error {
	s.n++
	if s.err == nil && bytes.IndexByte(line, '\n') >= 0 {
		s.err = fmt.Errorf("%w: a record holds a newline", ErrForm)
	}
	s.put(line, "")
	return s.err
}

// Forward is WriteRaw for a line of a Reader, or for the beginning of one and another end: neither has an LF.
func (s *Writer) Forward(line []byte, end string) error {
	s.n++
	s.put(line, end)
	return s.err
}

// WriteBlock writes n whole record lines at once, each ended by LF. The caller is
// responsible for their form; each must be shorter than MaxLine.
func (s *Writer) WriteBlock(block []byte, n int) error {
	return s.Filled(append(s.Buffer(), block...), n)
}

// Buffer is what lines can be appended to that WriteBlock would copy. Filled takes it back; until then nothing else may be written.
func (s *Writer) Buffer() []byte { return s.buf }

// Filled takes back the last Buffer, to which n whole record lines were appended. After it Buffer has another one.
func (s *Writer) Filled(buf []byte, n int) error {
	if s.err != nil {
		return s.err
	}
	s.n += uint64(n)
	if s.buf = buf; len(buf) >= writeSize {
		s.pass()
	}
	return s.err
}

// Flush hands everything written so far to the underlying writer.
func (s *Writer) Flush() error {
	if s.err == errSealed {
		return nil
	}
	if s.pass(); s.err == nil {
		s.err = s.sink.wait()
	}
	return s.err
}

// Records is the number of records written.
func (s *Writer) Records() uint64 { return s.n }

var errSealed = errors.New("the stream is sealed already")

// Seal writes the trailer and flushes; nothing can be written afterwards. Do not defer it:
// a deferred call would seal the stream of a failed run.
func (s *Writer) Seal(status schemas.Status) error {
	if s.err != nil {
		return s.err
	}
	if status != schemas.StatusComplete && status != schemas.StatusPartial {
		return fmt.Errorf("%w: unknown status %q", ErrForm, status)
	}
	if err := s.Flush(); err != nil {
		return err
	}
	t := Trailer{Schema: schemas.SchemaTrailer, Stream: s.h.Stream, RunID: s.h.RunID, Records: s.n, Status: status}
	t.carry(s.h.Checksum, hex.EncodeToString(s.sink.sum()))
	line, err := schemas.Marshal(t)
	if err != nil {
		return err
	}
	s.put(line, "")
	if err := s.Flush(); err != nil {
		return err
	}
	s.err = errSealed
	s.sink.close()
	return nil
}
