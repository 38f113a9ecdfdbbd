package exchange

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func lines() []*schemas.NetExchange {
	var list []*schemas.NetExchange
	for i, x := range []struct{ host, method, path, query string }{{"a", "GET", "/x", ""}, {"a", "GET", "/x", "b=1&a=2"}, {"a", "GET", "/x", "a=2&b=1"}, {"b", "POST", "/x", ""}, {"a", "GET", "/y", ""}} {
		list = append(list, &schemas.NetExchange{Schema: schemas.SchemaNetExchange, RunID: "r", Seq: uint64(i), Decision: schemas.NetAllow, Scheme: schemas.NetHTTP, Host: x.host, Port: 80, Address: "198.18.0.1", Method: x.method, Path: x.path, Query: x.query, Status: 200, Response: &schemas.NetMessage{}})
	}
	return list
}

func whole(t testing.TB, list []*schemas.NetExchange) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNet, RunID: "r", Tool: schemas.StageNet, Version: "v"})
	testkit.Must(t, err)
	for _, e := range list {
		testkit.Must(t, w.Write(e))
	}
	testkit.Must(t, w.Write(&schemas.Net{Schema: schemas.SchemaNet, RunID: "r", Mode: schemas.NetModeRecord, Ports: []uint16{80}, Headers: []string{}}))
	testkit.Must(t, w.Write(&schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: "r", Stage: schemas.StageNet, Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{}, Notes: []string{}}))
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	return b.Bytes()
}

// TestSort: the order of different requests says nothing, that of equal ones stays.
func TestSort(t *testing.T) {
	want := lines()
	Sort(want)
	for seed := range uint64(20) {
		list := lines()
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		Sort(list)
		for i := range list {
			if Key(list[i], nil) != Key(want[i], nil) || list[i].Seq != uint64(i) {
				t.Fatalf("%d: %+v, expected %+v", i, list[i], want[i])
			}
		}
	}
	if a, b := lines()[1], lines()[2]; Key(a, nil) != Key(b, nil) || Distance(a, b) != 0 {
		t.Error("the order of the parts of a query makes a difference")
	}
}

// TestEveryPrefix: no prefix of a record is a record.
func TestEveryPrefix(t *testing.T) {
	b := whole(t, lines())
	testkit.Must(t, new(Recording).read(bytes.NewReader(b), "net"))
	for n := range b {
		if new(Recording).read(bytes.NewReader(b[:n]), "net") == nil {
			t.Fatalf("%d of %d bytes are a record", n, len(b))
		}
	}
}

// FuzzRead: whatever is read can be projected, and its HAR is JSON.
func FuzzRead(f *testing.F) {
	f.Add(whole(f, lines()))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &Recording{dir: t.TempDir()}
		if r.read(bytes.NewReader(b), "net") != nil {
			return
		}
		var out bytes.Buffer
		if r.HAR(&out) == nil && !json.Valid(out.Bytes()) {
			t.Errorf("%q", out.Bytes())
		}
		r.Prompts(io.Discard)
	})
}
