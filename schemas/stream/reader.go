package stream

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"unicode/utf8"

	"runner/schemas"
)

// Record is one record line. Bytes (without its LF) and Schema are valid until
// the next call of Next.
type Record struct {
	Schema string
	Bytes  []byte
	Line   int // 1-based line number in the stream
}

// Reader reads one stream and refuses everything that is not whole.
type Reader struct {
	r       *bufio.Reader
	name    string
	h       Header
	sum     hash.Hash
	prefix  []byte // `","run_id":"ID"` that must follow every record's schema value
	line    int
	n       uint64
	trailer *Trailer
	err     error
	schema  string
}

// NewReader reads the header of a stream named stream. name is for messages only.
func NewReader(r io.Reader, name, stream string) (*Reader, error) {
	return open(bufio.NewReaderSize(r, MaxLine), name, stream)
}

// open reads the header from r, whose buffer is exactly as large as the longest line.
func open(r *bufio.Reader, name, stream string) (*Reader, error) {
	s := &Reader{r: r, name: name, sum: sha256.New()}
	line, err := s.readLine()
	if err == io.EOF {
		return nil, s.fail(ErrTruncated, "empty input: no header")
	}
	if err != nil {
		return nil, err
	}
	if err := schemas.Unmarshal(line, &s.h); err != nil || s.h.Schema != schemas.SchemaHeader {
		return nil, s.fail(ErrNotStream, "the first line is not a stream header")
	}
	if again, err := schemas.Marshal(s.h); err != nil || !bytes.Equal(again, line) {
		return nil, s.fail(ErrForm, "the header is not in canonical form")
	}
	if s.h.Stream != stream {
		return nil, s.fail(ErrNotStream, "this is a %q stream, expected %q", s.h.Stream, stream)
	}
	if !schemas.ValidRunID(s.h.RunID) {
		return nil, s.fail(ErrForm, "run_id %q is not valid", s.h.RunID)
	}
	s.prefix = []byte(`","run_id":"` + s.h.RunID + `"`)
	s.sum.Write(line[:len(line)+1])
	return s, nil
}

// Header returns the stream's header.
func (s *Reader) Header() Header { return s.h }

func (s *Reader) fail(class error, format string, a ...any) error {
	s.err = fmt.Errorf("%s:%d: %w: %s", s.name, max(s.line, 1), class, fmt.Sprintf(format, a...))
	return s.err
}

// Errorf builds an error about the current line, of class ErrForm.
func (s *Reader) Errorf(format string, a ...any) error { return s.fail(ErrForm, format, a...) }

// readLine returns the next line without its LF, io.EOF at a clean end of input.
// The LF stands behind the line in the same memory, so that one call digests both.
func (s *Reader) readLine() ([]byte, error) {
	b, err := s.r.ReadSlice('\n')
	if err == io.EOF && len(b) == 0 {
		return nil, io.EOF
	}
	s.line++
	switch {
	case err == nil:
	case err == io.EOF:
		return nil, s.fail(ErrTruncated, "the last line has no newline")
	case err == bufio.ErrBufferFull:
		return nil, s.fail(ErrForm, "line is longer than %d bytes", MaxLine)
	default:
		s.err = fmt.Errorf("%s:%d: %w: %w", s.name, s.line, ErrRead, err)
		return nil, s.err
	}
	return b[:len(b)-1], nil
}

var (
	schemaKey     = []byte(`{"schema":"`)
	trailerPrefix = []byte(`{"schema":"` + schemas.SchemaTrailer + `"`)
)

// Next returns the next record, and io.EOF only after a trailer that matches
// everything read and a clean end of input.
func (s *Reader) Next() (Record, error) {
	if s.err != nil {
		return Record{}, s.err
	}
	line, err := s.readLine()
	if err == io.EOF {
		return Record{}, s.fail(ErrTruncated, "no trailer before end of input")
	}
	if err != nil {
		return Record{}, err
	}
	if bytes.HasPrefix(line, trailerPrefix) {
		return Record{}, s.finish(line)
	}
	if !bytes.HasPrefix(line, schemaKey) {
		return Record{}, s.fail(ErrForm, "a record must be a JSON object whose first key is schema: %.60q", line)
	}
	rest := line[len(schemaKey):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || line[len(line)-1] != '}' {
		return Record{}, s.fail(ErrForm, "not a JSON object: %.60q", line)
	}
	if string(rest[:end]) != s.schema {
		s.schema = string(rest[:end])
	}
	if !bytes.HasPrefix(rest[end:], s.prefix) {
		return Record{}, s.fail(ErrMixedRun, "expected run_id %q right after schema", s.h.RunID)
	}
	if !clean(line) {
		return Record{}, s.fail(ErrForm, "invalid UTF-8, or a control character that is not escaped")
	}
	s.sum.Write(line[:len(line)+1])
	s.n++
	return Record{Schema: s.schema, Bytes: line, Line: s.line}, nil
}

// clean reports whether a line holds neither control characters, which JSON
// escapes, nor invalid UTF-8.
func clean(line []byte) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	var seen uint64
	i := 0
	for ; i+8 <= len(line); i += 8 {
		x := binary.LittleEndian.Uint64(line[i:])
		if (x-0x20*each)&^x&high != 0 {
			return false
		}
		seen |= x
	}
	for ; i < len(line); i++ {
		if line[i] < 0x20 {
			return false
		}
		seen |= uint64(line[i])
	}
	return seen&high == 0 || utf8.Valid(line)
}

func (s *Reader) finish(line []byte) error {
	var t Trailer
	if err := schemas.Unmarshal(line, &t); err != nil {
		return s.fail(ErrForm, "bad trailer: %v", err)
	}
	if again, err := schemas.Marshal(t); err != nil || !bytes.Equal(again, line) {
		return s.fail(ErrForm, "the trailer is not in canonical form")
	}
	switch {
	case t.Stream != s.h.Stream:
		return s.fail(ErrForm, "trailer of a %q stream under a %q header", t.Stream, s.h.Stream)
	case t.RunID != s.h.RunID:
		return s.fail(ErrMixedRun, "trailer has run_id %q, header %q", t.RunID, s.h.RunID)
	case t.Records != s.n:
		return s.fail(ErrCount, "trailer says %d records, read %d", t.Records, s.n)
	case t.SHA256 != hex.EncodeToString(s.sum.Sum(nil)):
		return s.fail(ErrDigest, "the lines were changed after they were written")
	case t.Status != schemas.StatusComplete && t.Status != schemas.StatusPartial:
		return s.fail(ErrForm, "unknown status %q", t.Status)
	}
	if _, err := s.r.ReadByte(); err != io.EOF {
		if err == nil {
			s.line++
			return s.fail(ErrTrailing, "nothing may follow the trailer")
		}
		s.err = fmt.Errorf("%s:%d: %w: %w", s.name, s.line, ErrRead, err)
		return s.err
	}
	s.trailer, s.err = &t, io.EOF
	return io.EOF
}

// Trailer returns the checked trailer; nil before Next returned io.EOF.
func (s *Reader) Trailer() *Trailer { return s.trailer }
