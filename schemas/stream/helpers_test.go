package stream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const run = "run_01"

// header, record and trailer build valid and faulty streams, so that the tests do not
// depend on the Writer that they test.
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

// cheap makes the header and the trailer of a stream that is sealed by CRC32C.
func cheap(header, body, trailer string) (string, string) {
	h := strings.Replace(header, `"v0"}`, `"v0","checksum":"crc32c"}`, 1)
	start, end, _ := strings.Cut(trailer, `"sha256":"`)
	sum := crc32.Checksum([]byte(h+body), crc32.MakeTable(crc32.Castagnoli))
	return h, fmt.Sprintf(`%s"crc32c":"%08x"%s`, start, sum, end[len(`"`)+64:])
}

// sealCheaply is seal for a stream whose checksum is CRC32C.
func sealCheaply(lines ...string) string {
	body := strings.Join(lines, "")
	h, t := cheap(header(schemas.StreamRaw, run), body, trailer(schemas.StreamRaw, run, len(lines), "", "complete"))
	return h + body + t
}

// seals are the streams of records with each checksum.
var seals = map[string]func(...string) string{schemas.ChecksumSHA256: seal, schemas.ChecksumCRC32C: sealCheaply}

// seal puts header and trailer around record lines.
func seal(lines ...string) string {
	body := header(schemas.StreamRaw, run) + strings.Join(lines, "")
	return body + trailer(schemas.StreamRaw, run, len(lines), body, "complete")
}

// buffer is shared by all reads of these tests: clearing a fresh one for each of
// thousands of short streams would take most of their time.
var buffer = make([]byte, MaxLine)

func openTest(r io.Reader) (*Reader, error) {
	return open(newDirect(r, buffer), "in", schemas.StreamRaw)
}

// read reads a whole stream in all ways: with a plain Reader, with one that reads ahead in small pieces, and with one
// that gives records alike at once. All must give the same result. It returns the record lines.
func read(r io.Reader) (lines []string, t *Trailer, err error) {
	var seen, twice bytes.Buffer
	s, err := openTest(io.TeeReader(r, io.MultiWriter(&seen, &twice)))
	lines, t, err = rest(s, err)
	s, again := open(newReadAhead(io.MultiReader(&seen, r), 100), "in", schemas.StreamRaw)
	linesAgain, tAgain, again := rest(s, again)
	if fmt.Sprint(err) != fmt.Sprint(again) || !slices.Equal(lines, linesAgain) || (t == nil) != (tAgain == nil) || t != nil && *t != *tAgain {
		return nil, nil, fmt.Errorf("%v after %d lines, but reading ahead %v after %d", err, len(lines), again, len(linesAgain))
	}
	s, atOnce := open(newReadAhead(io.MultiReader(&twice, r), 100), "in", schemas.StreamRaw)
	linesAgain, tAgain, atOnce = records(s, atOnce, true)
	if fmt.Sprint(err) != fmt.Sprint(atOnce) || !slices.Equal(lines, linesAgain) || (t == nil) != (tAgain == nil) || t != nil && *t != *tAgain {
		return nil, nil, fmt.Errorf("%v after %d lines, but those alike at once: %v after %d", err, len(lines), atOnce, len(linesAgain))
	}
	return lines, t, err
}

// rest reads all records of a Reader.
func rest(s *Reader, err error) (lines []string, t *Trailer, _ error) { return records(s, err, false) }

// records does that, those that are alike at once if it shall.
func records(s *Reader, err error, alike bool) (lines []string, t *Trailer, _ error) {
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
		if !alike {
			continue
		}
		var each strings.Builder
		before := len(lines)
		block, n := s.Alike(func(line []byte) {
			lines = append(lines, string(line)+"\n")
			each.WriteString(lines[len(lines)-1])
		})
		if each.String() != string(block) || uint64(len(lines)-before) != n {
			return nil, nil, fmt.Errorf("%d records alike, but called for %d: %q, %q", n, len(lines)-before, block, each.String())
		}
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

// written makes a stream with the Writer, and the same with an asynchronous one.
func written(t testing.TB, checksum string, records ...string) []byte {
	t.Helper()
	var out [2]bytes.Buffer
	for i, create := range []func(io.Writer, Header) (*Writer, error){NewWriter, NewAsyncWriter} {
		w, err := create(&out[i], Header{Stream: schemas.StreamRaw, RunID: run, Tool: "test", Version: "v0", Checksum: checksum})
		testkit.Must(t, err)
		for _, r := range records {
			testkit.Must(t, w.WriteRaw([]byte(r)))
		}
		testkit.Must(t, w.Seal(schemas.StatusComplete))
		w.Close()
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) {
		t.Error("an asynchronous Writer writes something else")
	}
	return out[0].Bytes()
}
