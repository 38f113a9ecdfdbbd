package stream

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// Record is one record line. Bytes (without its LF) and Schema are valid until
// the next call of Next.
type Record struct {
	Schema string
	Bytes  []byte
	Line   int // 1-based line number in the stream
}

// Reader reads one stream and refuses everything that is not whole. Not safe for
// concurrent use.
type Reader struct {
	src     source
	block   []byte // whole lines
	at      int    // where the next line begins
	name    string
	h       Header
	prefix  []byte // `","run_id":"ID"` that must follow every record's schema value
	line    int
	n       uint64
	trailer *Trailer
	err     error
	schema  string
	strict  string // the schema whose records the caller checks byte by byte
	start   []byte // the beginning of the last record, from the brace to the end of its run_id
}

// NewReader reads the header of a stream named stream. name is for messages only.
func NewReader(r io.Reader, name, stream string) (*Reader, error) {
	return open(newDirect(r, make([]byte, MaxLine)), name, stream)
}

// NewReadAhead is NewReader for a stage with much other work: goroutines of the
// Reader read ahead of Next and digest what was read. Results and errors are the
// same. A Reader that is not read to its end must be closed.
func NewReadAhead(r io.Reader, name, stream string) (*Reader, error) {
	return open(newReadAhead(r, readSize), name, stream)
}

func open(src source, name, stream string) (*Reader, error) {
	s := &Reader{src: src, name: name}
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
		if reader := schemas.ReaderOf(s.h.Stream); reader != "" {
			return nil, s.fail(ErrNotStream, "this is a %q stream, which %s reads; expected %q", s.h.Stream, reader, stream)
		}
		return nil, s.fail(ErrNotStream, "this is a %q stream, expected %q", s.h.Stream, stream)
	}
	if !schemas.ValidRunID(s.h.RunID) {
		return nil, s.fail(ErrForm, "run_id %q is not valid", s.h.RunID)
	}
	if s.h.Checksum != "" && s.h.Checksum != schemas.ChecksumCRC32C {
		return nil, s.fail(ErrForm, "unknown checksum %q, expected none or %s", s.h.Checksum, schemas.ChecksumCRC32C)
	}
	s.src.digest(newHash(s.h.Checksum))
	s.prefix = []byte(`","run_id":"` + s.h.RunID + `"`)
	return s, nil
}

// Header returns the stream's header.
func (s *Reader) Header() Header { return s.h }

// Trust makes the caller responsible for refusing invalid UTF-8 and control characters in
// the records of one schema: a parser that checks every byte does this anyway.
func (s *Reader) Trust(schema string) { s.strict = schema }

// Close ends the goroutines of a Reader that reads ahead. It does not close the
// input.
func (s *Reader) Close() { s.src.close() }

func (s *Reader) fail(class error, format string, a ...any) error {
	return s.stop(fmt.Errorf("%s:%d: %w: %s", s.name, max(s.line, 1), class, fmt.Sprintf(format, a...)))
}

// stop makes err the answer to every further call.
func (s *Reader) stop(err error) error {
	s.err = err
	s.src.close()
	return err
}

// Errorf builds an error about the current line, of class ErrForm.
func (s *Reader) Errorf(format string, a ...any) error { return s.fail(ErrForm, format, a...) }

// readLine returns the next line without its LF, io.EOF at a clean end of input.
func (s *Reader) readLine() ([]byte, error) {
	if s.at == len(s.block) {
		block, err := s.src.next()
		if err == io.EOF && len(block) == 0 {
			return nil, io.EOF
		}
		if err != nil {
			s.line++
		}
		switch err {
		case nil:
		case io.EOF:
			return nil, s.fail(ErrTruncated, "the last line has no newline")
		case errLong{}:
			return nil, s.tooLong()
		default:
			return nil, s.stop(fmt.Errorf("%s:%d: %w: %w", s.name, s.line, ErrRead, err))
		}
		s.block, s.at = block, 0
	}
	s.line++
	rest := s.block[s.at:]
	n := bytes.IndexByte(rest, '\n')
	if n >= MaxLine {
		return nil, s.tooLong()
	}
	s.at += n + 1
	return rest[:n:n], nil
}

func (s *Reader) tooLong() error {
	return s.fail(ErrForm, "line is longer than %d bytes", MaxLine)
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
	checked := len(s.start) // was, in the line before
	if checked == 0 || !bytes.HasPrefix(line, s.start) {
		checked = 0
		if bytes.HasPrefix(line, trailerPrefix) {
			return Record{}, s.finish(line)
		}
		if err := s.begin(line); err != nil {
			return Record{}, err
		}
	}
	if line[len(line)-1] != '}' {
		return Record{}, s.fail(ErrForm, "not a JSON object: %.60q", line)
	}
	if s.schema != s.strict && !clean(line[checked:]) {
		return Record{}, s.fail(ErrForm, "invalid UTF-8, or a control character that is not escaped")
	}
	s.n++
	return Record{Schema: s.schema, Bytes: line, Line: s.line}, nil
}

// Alike gives the records that follow the last one of Next, have the same schema, and were read already: as they are in the stream, each
// with its LF, until the next call of Next. They are as if Next had returned them. each is called with every one, without its LF. (A source gives blocks of whole lines: see source.)
func (s *Reader) Alike(each func(line []byte)) (block []byte, n uint64) {
	from := s.at
	for s.err == nil && s.at < len(s.block) {
		rest := s.block[s.at:]
		end := bytes.IndexByte(rest, '\n')
		if end >= MaxLine || len(s.start) == 0 || !bytes.HasPrefix(rest[:end], s.start) {
			break
		}
		line := rest[:end:end]
		if line[end-1] != '}' || s.schema != s.strict && !clean(line[len(s.start):]) {
			break // Next says why
		}
		each(line)
		s.at += end + 1
		n++
	}
	s.line, s.n = s.line+int(n), s.n+n
	return s.block[from:s.at], n
}

// begin checks the beginning of a record and stores it, because most records have the same
// beginning as the previous one.
func (s *Reader) begin(line []byte) error {
	if !bytes.HasPrefix(line, schemaKey) {
		return s.fail(ErrForm, "a record must be a JSON object whose first key is schema: %.60q", line)
	}
	rest := line[len(schemaKey):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || line[len(line)-1] != '}' {
		return s.fail(ErrForm, "not a JSON object: %.60q", line)
	}
	if !bytes.HasPrefix(rest[end:], s.prefix) {
		return s.fail(ErrMixedRun, "expected run_id %q right after schema", s.h.RunID)
	}
	s.schema = string(rest[:end])
	s.start = append(s.start[:0], line[:len(schemaKey)+end+len(s.prefix)]...)
	return nil
}

// clean reports whether a line holds neither control characters, which JSON
// escapes, nor invalid UTF-8.
func clean(line []byte) bool {
	return printable(line) || !controls(line) && utf8.Valid(line)
}

// blanks are eight of the first byte that is no control character, high the highest bits of eight bytes.
const blanks, high = 0x2020202020202020, 0x8080808080808080

// controls reports whether there is a control character.
func controls(line []byte) bool {
	for len(line) >= 8 {
		x := binary.LittleEndian.Uint64(line)
		if (x-blanks)&^x&high != 0 {
			return true
		}
		line = line[8:]
	}
	for _, c := range line {
		if c < 0x20 {
			return true
		}
	}
	return false
}

// printable reports whether all bytes are ASCII, none of them a control character, as in most lines. In such a line no byte
// minus 0x20 has the highest bit, and none borrows from the next one; otherwise the first one that is something else shows.
func printable(line []byte) bool {
	var seen uint64
	for len(line) >= 32 {
		a, b := binary.LittleEndian.Uint64(line), binary.LittleEndian.Uint64(line[8:])
		c, d := binary.LittleEndian.Uint64(line[16:]), binary.LittleEndian.Uint64(line[24:])
		seen |= a | (a - blanks) | b | (b - blanks) | c | (c - blanks) | d | (d - blanks)
		line = line[32:]
	}
	for len(line) >= 8 {
		x := binary.LittleEndian.Uint64(line)
		seen |= x | (x - blanks)
		line = line[8:]
	}
	for _, c := range line {
		seen |= uint64(c | (c - 0x20))
	}
	return seen&high == 0
}

func (s *Reader) finish(line []byte) error {
	var t Trailer
	if err := schemas.Unmarshal(line, &t); err != nil {
		return s.fail(ErrForm, "bad trailer: %v", err)
	}
	if again, err := schemas.Marshal(t); err != nil || !bytes.Equal(again, line) {
		return s.fail(ErrForm, "the trailer is not in canonical form")
	}
	checksum, other := t.carried(s.h.Checksum)
	switch {
	case checksum == "" || other != "":
		return s.fail(ErrForm, "the trailer does not carry the one checksum that the header names: %s", cmp.Or(s.h.Checksum, schemas.ChecksumSHA256))
	case t.Stream != s.h.Stream:
		return s.fail(ErrForm, "trailer of a %q stream under a %q header", t.Stream, s.h.Stream)
	case t.RunID != s.h.RunID:
		return s.fail(ErrMixedRun, "trailer has run_id %q, header %q", t.RunID, s.h.RunID)
	case t.Records != s.n:
		return s.fail(ErrCount, "trailer says %d records, read %d", t.Records, s.n)
	case checksum != hex.EncodeToString(s.src.sum(s.at-len(line)-1)):
		return s.fail(ErrDigest, "the lines were changed after they were written")
	case t.Status != schemas.StatusComplete && t.Status != schemas.StatusPartial:
		return s.fail(ErrForm, "unknown status %q", t.Status)
	}
	if s.at == len(s.block) {
		rest, err := s.src.next()
		if err != nil && err != io.EOF && len(rest) == 0 {
			return s.stop(fmt.Errorf("%s:%d: %w: %w", s.name, s.line, ErrRead, err))
		}
		s.block, s.at = rest, 0
	}
	if s.at < len(s.block) {
		s.line++
		return s.fail(ErrTrailing, "nothing may follow the trailer")
	}
	s.trailer = &t
	return s.stop(io.EOF)
}

// Trailer returns the checked trailer; nil before Next returned io.EOF.
func (s *Reader) Trailer() *Trailer { return s.trailer }
