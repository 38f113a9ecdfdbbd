package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// kept returns the lines that a log stores when it gets pieces.
func kept(t *testing.T, pieces ...[]byte) ([]string, *lineLog) {
	t.Helper()
	l, err := newLineLog()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	for _, p := range pieces {
		l.take(p)
	}
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamSDKLog, RunID: "r", Tool: "t"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.records(w, "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(schemas.StatusComplete); err != nil {
		t.Fatal(err)
	}
	lines := readLines(t, &b)
	if uint64(len(lines)) != n {
		t.Errorf("%d records, %d reported", len(lines), n)
	}
	return lines, l
}

// readLines reads the lines of a log's stream, and leaves out its health.
func readLines(t *testing.T, in io.Reader) (lines []string) {
	t.Helper()
	r, err := stream.NewReader(in, "log", schemas.StreamSDKLog)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if r.Trailer() != nil {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		var l schemas.LogLine
		if err := schemas.Unmarshal(rec.Bytes, &l); err != nil || l.Seq != uint64(len(lines)) {
			t.Fatalf("%s: %v", rec.Bytes, err)
		}
		text, err := schemas.Untext(l.Line)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
}

func TestLineLog(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name, in, stopped string
		lines             int
		partial           bool
		dropped           uint64
	}{
		{"nothing", "", "", 0, false, 0},
		{"blank lines", "\n\n", "", 2, false, 0},
		{"no end", "a\nb", "", 2, true, 0},
		{"any byte", "\x00\xff\\\r\n", "", 1, false, 0},
		{"longest", x(schemas.MaxLogLine) + "\n", "", 1, false, 0},
		{"longest without end", x(schemas.MaxLogLine), "", 1, true, 0},
		{"too long", "a\n" + x(schemas.MaxLogLine+1) + "\nb\n", "line_too_long", 1, false, schemas.MaxLogLine + 4},
		{"too long without end", "a\n" + x(schemas.MaxLogLine+1), "line_too_long", 1, false, schemas.MaxLogLine + 1},
		{"most lines", strings.Repeat("\n", schemas.MaxLogLines), "", schemas.MaxLogLines, false, 0},
		{"too many lines", strings.Repeat("\n", schemas.MaxLogLines) + "y", "too_many_lines", schemas.MaxLogLines, false, 1},
		{"most bytes", strings.Repeat(x(1023)+"\n", schemas.MaxLogBytes>>10), "", schemas.MaxLogBytes >> 10, false, 0},
		{"too many bytes", strings.Repeat(x(1023)+"\n", schemas.MaxLogBytes>>10) + "yz", "too_many_bytes", schemas.MaxLogBytes >> 10, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, l := kept(t, []byte(c.in))
			if l.stopped != c.stopped || len(lines) != c.lines || l.partial > 0 != c.partial || l.total-l.kept() != c.dropped {
				t.Errorf("stopped %q, %d lines, partial %d, dropped %d; expected %+v", l.stopped, len(lines), l.partial,
					l.total-l.kept(), c.lines)
			}
			if l.total != uint64(len(c.in)) {
				t.Errorf("%d bytes arrived, %d counted", len(c.in), l.total)
			}
			want := c.in[:l.kept()]
			if got := strings.Join(lines, "\n"); got != strings.TrimSuffix(want, "\n") && len(lines) > 0 {
				t.Errorf("the lines are not the bytes that arrived first")
			}
		})
	}
}

// TestLineLogCuts: the result does not depend on how the bytes are cut into reads.
func TestLineLogCuts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var in []byte
		for range rnd.IntN(12) {
			in = append(in, bytes.Repeat([]byte{'x'}, rnd.IntN(30_000))...)
			in = append(in, bytes.Repeat([]byte{'\n'}, rnd.IntN(3))...)
		}
		var pieces [][]byte
		for rest := in; len(rest) > 0; {
			n := 1 + rnd.IntN(len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		want, one := kept(t, in)
		got, many := kept(t, pieces...)
		if strings.Join(got, "\n") != strings.Join(want, "\n") || one.stopped != many.stopped ||
			one.kept() != many.kept() || one.partial != many.partial || one.lines != many.lines {
			t.Fatalf("in one piece %d lines %q, in %d pieces %d lines %q", len(want), one.stopped, len(pieces), len(got), many.stopped)
		}
	}
}
