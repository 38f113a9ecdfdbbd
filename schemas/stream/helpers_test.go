package stream

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"

	"runner/schemas"
)

const run = "run_01"

// header, record and trailer build streams by hand, faults included, so that the
// tests do not lean on the Writer they test.
func header(stream, run string) string {
	return fmt.Sprintf(`{"schema":"runner.stream_header.v0","stream":"%s","run_id":"%s","tool":"test","version":"v0"}`+"\n", stream, run)
}

func record(run string, n int) string {
	return fmt.Sprintf(`{"schema":"runner.stage_health.v0","run_id":"%s","stage":"s%d","in":0,"out":0,"filtered":{},"counters":{},"facts":{},"notes":["é"]}`+"\n", run, n)
}

func trailer(stream, run string, records int, body, status string) string {
	return fmt.Sprintf(`{"schema":"runner.stream_trailer.v0","stream":"%s","run_id":"%s","records":%d,"sha256":"%x","status":"%s"}`+"\n",
		stream, run, records, sha256.Sum256([]byte(body)), status)
}

// seal puts header and trailer around record lines.
func seal(lines ...string) string {
	body := header(schemas.StreamRaw, run)
	for _, l := range lines {
		body += l
	}
	return body + trailer(schemas.StreamRaw, run, len(lines), body, "complete")
}

// buffer is shared by all reads of these tests: clearing a fresh one for each of
// thousands of short streams would take most of their time.
var buffer = bufio.NewReaderSize(nil, MaxLine)

func openTest(r io.Reader) (*Reader, error) {
	buffer.Reset(r)
	return open(buffer, "in", schemas.StreamRaw)
}

// read reads a whole stream and returns its record lines.
func read(r io.Reader) (lines []string, t *Trailer, err error) {
	s, err := openTest(r)
	if err != nil {
		return nil, nil, err
	}
	for {
		rec, err := s.Next()
		if err == io.EOF {
			return lines, s.Trailer(), nil
		}
		if err != nil {
			if _, again := s.Next(); again != err {
				return nil, nil, fmt.Errorf("after %w the reader goes on", err)
			}
			if s.Trailer() != nil {
				return nil, nil, errors.New("a trailer without a whole stream")
			}
			return lines, nil, err
		}
		lines = append(lines, string(rec.Bytes)+"\n")
	}
}

var classes = map[string]error{
	"not_stream": ErrNotStream, "truncated": ErrTruncated, "count": ErrCount, "digest": ErrDigest,
	"trailing": ErrTrailing, "mixed_run": ErrMixedRun, "form": ErrForm, "read": ErrRead,
}

// classOf names the one class that an error of a Reader wraps.
func classOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	found := ""
	for name, class := range classes {
		if errors.Is(err, class) {
			if found != "" {
				t.Errorf("%v is both %s and %s", err, found, name)
			}
			found = name
		}
	}
	if found == "" {
		t.Errorf("%v has no class", err)
	}
	return found
}

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// written makes a stream with the Writer.
func written(t testing.TB, records ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Stream: schemas.StreamRaw, RunID: run, Tool: "test", Version: "v0"})
	must(t, err)
	for _, r := range records {
		must(t, w.WriteRaw([]byte(r)))
	}
	must(t, w.Seal(schemas.StatusComplete))
	return b.Bytes()
}
