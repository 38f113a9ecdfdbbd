package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// full is a disk with room for a number of bytes.
type full struct {
	bytes.Buffer
	room int
}

func (f *full) Write(b []byte) (int, error) {
	if f.Len()+len(b) > f.room {
		return 0, fmt.Errorf("no room after %d bytes", f.room)
	}
	return f.Buffer.Write(b)
}

// TestFirstErrorWins: a damaged stream gives the same result for every schedule of the
// goroutines. The first error in the stream is reported, what was written before it is
// a prefix of the whole output, and there is no trailer.
func TestFirstErrorWins(t *testing.T) {
	var whole bytes.Buffer
	const lines = 12_000
	manyNames(t, &whole, lines)
	in := whole.Bytes()
	_, joined, _ := call(in)
	at := func(line int) int { // the offset of a line
		n := 0
		for range line {
			n += bytes.IndexByte(in[n:], '\n') + 1
		}
		return n
	}
	spoil := func(line int, old, new string) func() []byte {
		return func() []byte {
			b := bytes.Clone(in)
			from := at(line - 1)
			return append(b[:from], bytes.Replace(b[from:], []byte(old), []byte(new), 1)...)
		}
	}
	const roomy = 1 << 30
	for _, c := range []struct {
		name string
		in   func() []byte
		room int
		code int
		want string
	}{
		{"a bad line", spoil(5000, `"pid"`, `"pod"`), roomy, 3, "stdin:5000: malformed line: kernel line"},
		{"a bad line, and later the disk is full", spoil(5000, `"pid"`, `"pod"`), 2_000_000, 3, "stdin:5000: "},
		{"the disk is full, and later a bad line", spoil(9000, `"pid"`, `"pod"`), 500_000, 5, "no room after 500000 bytes"},
		{"a changed line", spoil(5000, `"pid":100`, `"pid":101`), roomy, 3, fmt.Sprintf("stdin:%d: digest", lines+6)},
		{"the disk is full, and a changed line", spoil(5000, `"pid":100`, `"pid":101`), 1_000_000, 5, "no room"},
		{"the end is missing", func() []byte { return in[:at(11_000)+7] }, roomy, 3, "stdin:11001: stream is truncated"},
		{"the disk is full at the end", func() []byte { return in }, len(joined) - 1, 5, "no room"},
		{"the disk is full from the start", func() []byte { return in }, 10, 5, "no room"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := c.in()
			first := ""
			for range 8 {
				out := &full{room: c.room}
				var stderr strings.Builder
				// Pieces of odd sizes vary how much is read ahead.
				code := app().Call(context.Background(), io.MultiReader(bytes.NewReader(stream[:1000]), bytes.NewReader(stream[1000:])), out, &stderr, nil)
				if code != c.code || !strings.Contains(stderr.String(), c.want) {
					t.Fatalf("exit %d, %q, expected %d and %q", code, stderr.String(), c.code, c.want)
				}
				if !bytes.HasPrefix(joined, out.Bytes()) && c.name != "a changed line" && c.name != "the disk is full, and a changed line" {
					t.Error("what was written is not a prefix of the whole output")
				}
				if bytes.Contains(out.Bytes(), []byte(schemas.SchemaTrailer)) {
					t.Error("sealed after an error")
				}
				if first == "" {
					first = stderr.String() + out.String()
				} else if first != stderr.String()+out.String() {
					t.Error("another time another message, or other bytes")
				}
			}
		})
	}
}
