// Package stream reads and writes framed NDJSON: a header line, records, and a
// trailer that seals count and digest. End of input without the trailer is an
// error, always (schemas/STREAMS.md, "Form of a stream").
package stream

import (
	"errors"

	"github.com/runner-evidence/runner/schemas"
)

// MaxLine is the longest line of a stream in bytes, its LF included.
const MaxLine = 1 << 20

// Header is the first line: the producer is ready.
type Header struct {
	Schema  string `json:"schema"`
	Stream  string `json:"stream"`
	RunID   string `json:"run_id"`
	Tool    string `json:"tool"`
	Version string `json:"version"`
	// Checksum is what the trailer carries: "" is SHA-256, and ChecksumCRC32C is for streams that stay
	// between processes of one run.
	Checksum string `json:"checksum,omitempty"`
}

// Trailer is the last line: the seal. It has the one checksum that the header names.
type Trailer struct {
	Schema  string         `json:"schema"`
	Stream  string         `json:"stream"`
	RunID   string         `json:"run_id"`
	Records uint64         `json:"records"`
	SHA256  string         `json:"sha256,omitempty"`
	CRC32C  string         `json:"crc32c,omitempty"`
	Status  schemas.Status `json:"status"`
}

// Error classes. Every error of a Reader wraps exactly one of them.
var (
	ErrNotStream = errors.New("not a runner stream")
	ErrTruncated = errors.New("stream is truncated")
	ErrCount     = errors.New("record count does not match the trailer")
	ErrDigest    = errors.New("digest does not match the trailer")
	ErrTrailing  = errors.New("data after the trailer")
	ErrMixedRun  = errors.New("record of another run")
	ErrForm      = errors.New("malformed line")
	// ErrRead is the underlying reader's failure, not the stream's.
	ErrRead = errors.New("reading")
)
