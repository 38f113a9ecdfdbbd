package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func TestRoundTrip(t *testing.T) {
	h := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: run, Stage: "a"}
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Stream: schemas.StreamRaw, RunID: run, Tool: "test", Version: "v0"})
	testkit.Must(t, err)
	if b.Len() == 0 {
		t.Error("the header is not flushed: nobody sees that the producer is ready")
	}
	one := strings.TrimSuffix(record(run, 1), "\n")
	testkit.Must(t, w.WriteRaw([]byte(one)))
	testkit.Must(t, w.WriteBlock([]byte(record(run, 2)+record(run, 3)), 2))
	testkit.Must(t, w.Write(h))
	if w.Records() != 4 {
		t.Errorf("%d records, want 4", w.Records())
	}
	testkit.Must(t, w.Seal(schemas.StatusPartial))

	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(b.Bytes()), "byte by byte": iotest.OneByteReader(bytes.NewReader(b.Bytes())),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(b.Bytes())),
	} {
		lines, tr, err := read(r)
		testkit.Must(t, err)
		last, _ := schemas.Marshal(h)
		want := []string{record(run, 1), record(run, 2), record(run, 3), string(last) + "\n"}
		if !slices.Equal(lines, want) || tr.Records != 4 || tr.Status != schemas.StatusPartial {
			t.Errorf("%s: read %q, %+v", name, lines, tr)
		}
	}
	s, err := NewReader(bytes.NewReader(b.Bytes()), "in", schemas.StreamRaw)
	testkit.Must(t, err)
	if h := s.Header(); h.RunID != run || h.Tool != "test" || s.Trailer() != nil {
		t.Errorf("header %+v, trailer %+v", h, s.Trailer())
	}
	rec, err := s.Next()
	if err != nil || rec.Schema != schemas.SchemaStageHealth || rec.Line != 2 || string(rec.Bytes) != one {
		t.Errorf("first record %+v, %v", rec, err)
	}
}

// The Writer and the hand-made streams of these tests are the same bytes.
func TestWriterForm(t *testing.T) {
	for checksum, seal := range seals {
		got := written(t, checksum, strings.TrimSuffix(record(run, 1), "\n"))
		if want := seal(record(run, 1)); string(got) != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// The check value of CRC32C, which its definitions give.
func TestCRC32C(t *testing.T) {
	h := newHash(schemas.ChecksumCRC32C)
	h.Write([]byte("123456789"))
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != "e3069283" {
		t.Error(got)
	}
}

// The end of input is not a seal: the reader notices every truncation.
func TestEveryPrefixIsRefused(t *testing.T) {
	for _, seal := range seals {
		everyPrefix(t, seal(record(run, 1), record(run, 2)))
	}
}

func everyPrefix(t *testing.T, whole string) {
	for n := range len(whole) {
		_, _, err := read(strings.NewReader(whole[:n]))
		if err == nil {
			t.Fatalf("accepts the first %d of %d bytes", n, len(whole))
		}
		if c := classOf(t, err); c != "truncated" {
			t.Fatalf("first %d bytes: %s (%v), want truncated", n, c, err)
		}
	}
	if _, _, err := read(strings.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryBitFlipIsRefused(t *testing.T) {
	for _, seal := range seals {
		everyBitFlip(t, []byte(seal(record(run, 1), record(run, 2))))
	}
}

func everyBitFlip(t *testing.T, whole []byte) {
	for i := range whole {
		for bit := range 8 {
			whole[i] ^= 1 << bit
			// One reader is enough here: the buffers of a second one would take most of the time.
			if _, _, err := rest(openTest(bytes.NewReader(whole))); err == nil {
				t.Fatalf("accepts bit %d of byte %d flipped: %q", bit, i, whole[max(0, i-20):i+1])
			} else {
				classOf(t, err)
			}
			whole[i] ^= 1 << bit
		}
	}
}

func TestEveryLineOrderAndRepetition(t *testing.T) {
	for _, seal := range seals {
		everyOrder(t, strings.SplitAfter(strings.TrimSuffix(seal(record(run, 1), record(run, 2)), "\n"), "\n"))
	}
}

func everyOrder(t *testing.T, lines []string) {
	lines[len(lines)-1] += "\n"
	for i := range lines {
		without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
		twice := strings.Join(slices.Insert(slices.Clone(lines), i, lines[i]), "")
		for _, s := range []string{without, twice} {
			if _, _, err := read(strings.NewReader(s)); err == nil {
				t.Errorf("accepts\n%s", s)
			}
		}
		for j := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			if _, _, err := read(strings.NewReader(strings.Join(swapped, ""))); err == nil {
				t.Errorf("accepts lines %d and %d swapped", i, j)
			}
		}
	}
}

// padded is a record line of n bytes, its LF included.
func padded(n int) string {
	const start, end = `{"schema":"x","run_id":"` + run + `","v":"`, "\"}\n"
	return start + strings.Repeat("a", n-len(start)-len(end)) + end
}

func TestMaxLine(t *testing.T) {
	for _, c := range []struct {
		size  int
		class string
	}{{MaxLine - 1, "ok"}, {MaxLine, "ok"}, {MaxLine + 1, "form"}, {3 * MaxLine, "form"}} {
		for _, at := range []int{0, 1} { // also after a line that moves it in the buffer
			lines := []string{padded(c.size)}
			if at == 1 {
				lines = []string{padded(777), padded(c.size), padded(MaxLine)}
			}
			got, _, err := read(strings.NewReader(seal(lines...)))
			if k := classOf(t, err); k != c.class {
				t.Errorf("line of %d bytes: %s (%v), want %s", c.size, k, err, c.class)
			}
			if err == nil && !slices.Equal(got, lines) {
				t.Errorf("line of %d bytes is read differently", c.size)
			}
		}
	}
	w, err := NewWriter(io.Discard, Header{Stream: schemas.StreamRaw, RunID: run})
	testkit.Must(t, err)
	if err := w.WriteRaw([]byte(strings.TrimSuffix(padded(MaxLine), "\n"))); err != nil {
		t.Errorf("the writer refuses a line that readers accept: %v", err)
	}
	if err := w.WriteRaw([]byte(strings.TrimSuffix(padded(MaxLine+1), "\n"))); !errors.Is(err, ErrForm) {
		t.Errorf("the writer writes a line that readers refuse: %v", err)
	}
	if err := w.Seal(schemas.StatusComplete); !errors.Is(err, ErrForm) {
		t.Errorf("sealed after an error: %v", err)
	}
}

func TestReaderFailure(t *testing.T) {
	boom := errors.New("boom")
	whole := seal(record(run, 1))
	for n := range len(whole) + 1 {
		r := io.MultiReader(strings.NewReader(whole[:n]), iotest.ErrReader(boom))
		_, _, err := read(r)
		if !errors.Is(err, boom) || classOf(t, err) != "read" {
			t.Fatalf("failure after %d bytes: %v", n, err)
		}
	}
}

func TestMessages(t *testing.T) {
	for want, in := range map[string]string{
		"in:1: stream is truncated: empty input: no header":                                                        "",
		"in:1: not a runner stream: the first line is not a stream header":                                         "hello\n",
		`in:1: not a runner stream: this is a "run.joined" stream, which runner-pack reads; expected "kernel.raw"`: header("run.joined", run),
		"in:2: stream is truncated: no trailer before end of input":                                                header("kernel.raw", run) + record(run, 1),
		"in:3: stream is truncated: the last line has no newline":                                                  header("kernel.raw", run) + record(run, 1) + "{",
		`in:2: record of another run: expected run_id "run_01" right after schema`:                                 header("kernel.raw", run) + record("run_02", 1),
		"in:4: data after the trailer: nothing may follow the trailer":                                             seal(record(run, 1)) + "\n",
		"in:2: malformed line: a record must be a JSON object whose first key is schema: \"[]\"":                   header("kernel.raw", run) + "[]\n",
		"in:3: record count does not match the trailer: trailer says 7 records, read 1":                            header("kernel.raw", run) + record(run, 1) + trailer("kernel.raw", run, 7, "", "complete"),
		"in:3: digest does not match the trailer: the lines were changed after they were written":                  header("kernel.raw", run) + record(run, 1) + trailer("kernel.raw", run, 1, "", "complete"),
		"in:2: malformed line: invalid UTF-8, or a control character that is not escaped":                          header("kernel.raw", run) + strings.Replace(record(run, 1), "é", "\xff", 1),
		`in:2: malformed line: trailer of a "kernel.normalized" stream under a "kernel.raw" header`:                header("kernel.raw", run) + trailer("kernel.normalized", run, 0, "", "complete"),
		`in:2: record of another run: trailer has run_id "run_02", header "run_01"`:                                header("kernel.raw", run) + trailer("kernel.raw", "run_02", 0, "", "complete"),
		"in:2: malformed line: the trailer does not carry the one checksum that the header names: crc32c":          strings.Replace(header("kernel.raw", run), `"}`, `","checksum":"crc32c"}`, 1) + trailer("kernel.raw", run, 0, "", "complete"),
		`in:1: malformed line: unknown checksum "md5", expected none or crc32c`:                                    strings.Replace(header("kernel.raw", run), `"}`, `","checksum":"md5"}`, 1),
		`in:2: malformed line: unknown status "failed"`:                                                            header("kernel.raw", run) + trailer("kernel.raw", run, 0, header("kernel.raw", run), "failed"),
		"in:2: malformed line: the trailer is not in canonical form":                                               header("kernel.raw", run) + strings.Replace(trailer("kernel.raw", run, 0, header("kernel.raw", run), "complete"), `,"status"`, `, "status"`, 1),
		"in:1: malformed line: the header is not in canonical form":                                                strings.Replace(header("kernel.raw", run), `,"tool"`, `, "tool"`, 1),
		"in:1: malformed line: run_id \"a b\" is not valid":                                                        header("kernel.raw", "a b"),
	} {
		if _, _, err := read(strings.NewReader(in)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// With Trust, only the bytes of records of one schema are not checked.
func TestTrust(t *testing.T) {
	bad := func(schema string) string {
		return `{"schema":"` + schema + `","run_id":"` + run + `","v":"` + "\xff\"}\n"
	}
	for schema, class := range map[string]string{"x": "ok", "y": "form"} {
		s, err := openTest(strings.NewReader(seal(record(run, 1), bad(schema), record(run, 2))))
		testkit.Must(t, err)
		s.Trust("x")
		if _, _, err := rest(s, nil); classOf(t, err) != class {
			t.Errorf("schema %s: %v, expected %s", schema, err, class)
		}
	}
}

// Whatever a line holds, and at whichever place.
func TestClean(t *testing.T) {
	for c := range 256 {
		for n := range 70 {
			for _, rest := range []string{" ", "~", "é", "\u007f"} {
				line := []byte(strings.Repeat(rest, n) + string([]byte{byte(c)}) + strings.Repeat(rest, 70-n))
				want := utf8.Valid(line) && !bytes.ContainsFunc(line, func(r rune) bool { return r < 0x20 })
				if clean(line) != want {
					t.Fatalf("%q: %t", line, !want)
				}
			}
		}
	}
}

// An error that the consumer reports about a line stops the reader like its own errors.
func TestErrorf(t *testing.T) {
	s, err := NewReader(strings.NewReader(seal(record(run, 1))), "in", schemas.StreamRaw)
	testkit.Must(t, err)
	_, err = s.Next()
	testkit.Must(t, err)
	if err := s.Errorf("no good: %d", 7); err.Error() != "in:2: malformed line: no good: 7" {
		t.Error(err)
	}
	if _, err := s.Next(); !errors.Is(err, ErrForm) {
		t.Errorf("goes on after an error: %v", err)
	}
}

type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, io.ErrShortWrite
	}
	f.left -= len(b)
	return len(b), nil
}

func TestWriterRefuses(t *testing.T) {
	for _, id := range []string{"", "a b", "é", "a/b", strings.Repeat("a", 129)} {
		if _, err := NewWriter(io.Discard, Header{Stream: schemas.StreamRaw, RunID: id}); err == nil {
			t.Errorf("accepts run id %q", id)
		}
	}
	if _, err := NewWriter(&failing{}, Header{Stream: schemas.StreamRaw, RunID: run}); err == nil {
		t.Error("does not see that the header could not be written")
	}
	w, err := NewWriter(&failing{left: 200}, Header{Stream: schemas.StreamRaw, RunID: run})
	testkit.Must(t, err)
	for range 10000 {
		err = w.WriteRaw([]byte(record(run, 1)[:60]))
	}
	if err == nil || w.Seal(schemas.StatusComplete) == nil || w.Flush() == nil || w.WriteBlock(nil, 0) == nil {
		t.Error("goes on after a failed write")
	}
	for _, n := range []int{1, 3000, 100_000} {
		w, err := NewAsyncWriter(&failing{left: 200}, Header{Stream: schemas.StreamRaw, RunID: run})
		testkit.Must(t, err)
		for range n {
			err = w.WriteRaw([]byte(record(run, 1)[:60]))
		}
		if n == 100_000 && err == nil || w.Seal(schemas.StatusComplete) == nil || w.Flush() == nil || w.WriteRaw(nil) == nil {
			t.Errorf("goes on after a failed asynchronous write, %d lines", n)
		}
		w.Close()
	}
	for _, line := range []string{"a\nb", "a\n", "\n"} {
		w, _ := NewWriter(io.Discard, Header{Stream: schemas.StreamRaw, RunID: run})
		if w.WriteRaw([]byte(line)) == nil || w.WriteRaw([]byte("{}")) == nil || w.Seal(schemas.StatusComplete) == nil {
			t.Errorf("writes a record with a newline in it: %q", line)
		}
	}
	w, _ = NewWriter(io.Discard, Header{Stream: schemas.StreamRaw, RunID: run})
	if w.Seal("failed") == nil {
		t.Error("seals with an unknown status")
	}
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	testkit.Must(t, w.Flush())
	if w.Seal(schemas.StatusComplete) == nil || w.WriteRaw([]byte("{}")) == nil || w.Write(Header{}) == nil || w.WriteBlock([]byte("{}\n"), 1) == nil {
		t.Error("writes after the seal")
	}
}

// Reading must not allocate per record: streams have millions.
func TestReaderDoesNotAllocate(t *testing.T) {
	in := seal(slices.Repeat([]string{record(run, 1)}, 1000)...)
	for name, open := range map[string]func(io.Reader, string, string) (*Reader, error){"": NewReader, "ahead": NewReadAhead} {
		s, err := open(strings.NewReader(in), "in", schemas.StreamRaw)
		testkit.Must(t, err)
		if n := testing.AllocsPerRun(900, func() {
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v allocations a record %s", n, name)
		}
		s.Close()
	}
}

func BenchmarkReader(b *testing.B)      { benchmarkReader(b, NewReader) }
func BenchmarkAheadReader(b *testing.B) { benchmarkReader(b, NewReadAhead) }

func benchmarkReader(b *testing.B, open func(io.Reader, string, string) (*Reader, error)) {
	in := seal(slices.Repeat([]string{padded(300)}, 100_000)...)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := open(strings.NewReader(in), "in", schemas.StreamRaw)
		for err == nil {
			_, err = s.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}

// FuzzReader: no input makes the reader panic or loop, and whatever it accepts
// is exactly what the Writer would write from the records it returned.
func FuzzReader(f *testing.F) {
	for _, v := range vectors() {
		if len(v.bytes) < 4096 {
			f.Add([]byte(v.bytes))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := openTest(bytes.NewReader(in))
		if err != nil {
			classOf(t, err)
			return
		}
		var b bytes.Buffer
		w, err := NewWriter(&b, s.Header())
		testkit.Must(t, err)
		for {
			rec, err := s.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				classOf(t, err)
				return
			}
			testkit.Must(t, w.WriteRaw(rec.Bytes))
		}
		testkit.Must(t, w.Seal(s.Trailer().Status))
		if !bytes.Equal(b.Bytes(), in) {
			t.Fatalf("accepted\n%s\nbut its records give\n%s", in, b.Bytes())
		}
	})
}

// Streams much longer than the buffers, with lines of all lengths, come through
// asynchronous writing and reading ahead.
func TestLongStreams(t *testing.T) {
	var records []string
	for i := range 400 {
		n := 100 + i*i*i%(40<<10)
		if i%97 == 0 {
			n = MaxLine - i
		}
		records = append(records, strings.TrimSuffix(padded(n), "\n"))
	}
	for checksum := range seals {
		longStream(t, records, written(t, checksum, records...))
	}
}

func longStream(t *testing.T, records []string, whole []byte) {
	lines, _, err := read(bytes.NewReader(whole))
	testkit.Must(t, err)
	if len(lines) != len(records) {
		t.Fatalf("%d lines, expected %d", len(lines), len(records))
	}
	for i, l := range lines {
		if l != records[i]+"\n" {
			t.Fatalf("line %d has changed", i)
		}
	}
	for _, n := range []int{len(whole) / 2, len(whole) - 1} {
		if _, _, err := read(bytes.NewReader(whole[:n])); classOf(t, err) != "truncated" {
			t.Errorf("first %d of %d bytes: %v", n, len(whole), err)
		}
	}
	whole[len(whole)/3] ^= 1
	if _, _, err := read(bytes.NewReader(whole)); classOf(t, err) != "digest" {
		t.Errorf("one bit flipped: %v", err)
	}
}
