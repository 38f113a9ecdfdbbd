package still

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const good = `{"process":"python:0123456789abcdef.1","seq":1,"op":"sleep","for_ns":5,"at_ns":[10]}
{"process":"python:0123456789abcdef.1","seq":0,"op":"read","at_ns":[10]}
{"process":"node:0123456789abcdef.0","seq":0,"op":"read","at_ns":[10,20]}
`

// TestTicks: ticks are sorted, and what is none is counted and left out.
func TestTicks(t *testing.T) {
	list, bad, err := read(strings.NewReader("x\n"+good+`{"process":"node:0","seq":0,"op":"read","at_ns":[1]}`+"\n"+strings.Repeat("y", 1<<20)+"\n"+good[:20]), "r")
	testkit.Must(t, err)
	if bad != 4 || len(list) != 3 || list[0].Process != "node:0123456789abcdef.0" || list[1].Op != schemas.TickRead || list[2].Seq != 2 {
		t.Errorf("%d %+v", bad, list)
	}
	if Differ(list, list) != -1 || Differ(list, list[:2]) != 2 {
		t.Error("Differ")
	}
}

// TestMissing: a tick that is not there is counted, and so is a process that did not end.
func TestMissing(t *testing.T) {
	tick := func(process string, n uint64, op string) schemas.ClockTick {
		return schemas.ClockTick{Process: process, Tick: n, Op: op}
	}
	for _, x := range []struct {
		list          []schemas.ClockTick
		lost, unended uint64
	}{
		{nil, 0, 0},
		{[]schemas.ClockTick{tick("a", 0, schemas.TickRead), tick("a", 1, schemas.TickEnd), tick("b", 0, schemas.TickEnd)}, 0, 0},
		{[]schemas.ClockTick{tick("a", 0, schemas.TickRead), tick("b", 0, schemas.TickRead), tick("b", 1, schemas.TickEnd)}, 0, 1},
		{[]schemas.ClockTick{tick("a", 2, schemas.TickRead), tick("a", 7, schemas.TickEnd), tick("b", 3, schemas.TickSleep)}, 9, 1},
	} {
		if lost, unended := missing(x.list); lost != x.lost || unended != x.unended {
			t.Errorf("%v: %d lost, %d unended", x.list, lost, unended)
		}
	}
}

func whole(t testing.TB) []byte {
	t.Helper()
	list, _, err := read(strings.NewReader(good), "r")
	testkit.Must(t, err)
	r := Record{schemas.Clock{Schema: schemas.SchemaClock, RunID: "r", Seed: "1", Start: "2026-01-01T00:00:00.000Z", Runtimes: []string{"node"}, Crypto: schemas.CryptoSeed}, list}
	var b bytes.Buffer
	testkit.Must(t, r.Write(&b))
	return b.Bytes()
}

// TestEveryPrefix: no prefix of a record is a record.
func TestEveryPrefix(t *testing.T) {
	b := whole(t)
	for n := range len(b) + 1 {
		if _, err := parse(bytes.NewReader(b[:n]), "clock"); (err == nil) != (n == len(b)) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

// FuzzTicks: whatever the program writes, what is read of it is a record that can be read again.
func FuzzTicks(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, bad, err := read(bytes.NewReader(text), "r")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		r := Record{schemas.Clock{Schema: schemas.SchemaClock, RunID: "r", Seed: "1", Start: "2026-01-01T00:00:00Z", Crypto: schemas.CryptoSeed, Bad: bad}, list}
		testkit.Must(t, r.Write(&b))
		again, err := parse(&b, "clock")
		if err != nil || Differ(again.Ticks, list) >= 0 {
			t.Errorf("%v", err)
		}
	})
}

// FuzzRecord: nothing makes the reader of records panic.
func FuzzRecord(f *testing.F) {
	f.Add(whole(f))
	f.Fuzz(func(_ *testing.T, b []byte) { parse(bytes.NewReader(b), "clock") })
}

// FuzzLines: of whatever lines a record has, what is read of it can be written, and read again as the same. The digest at the end of a
// record would keep a fuzzer from all but the seeds.
func FuzzLines(f *testing.F) {
	list := bytes.SplitAfter(whole(f), []byte("\n"))
	f.Add(bytes.Join(list[1:len(list)-2], nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var b bytes.Buffer
		w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamClock, RunID: "r", Tool: schemas.StageClock, Version: "v"})
		testkit.Must(t, err)
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 && w.WriteRaw(line) != nil {
				return
			}
		}
		testkit.Must(t, w.Seal(schemas.StatusComplete))
		r, err := parse(&b, "clock")
		if err != nil {
			return
		}
		var out bytes.Buffer
		testkit.Must(t, r.Write(&out))
		again, err := parse(&out, "clock")
		if err != nil || Differ(again.Ticks, r.Ticks) >= 0 || again.Clock.Seed != r.Clock.Seed {
			t.Errorf("%v: %+v", err, r)
		}
	})
}
