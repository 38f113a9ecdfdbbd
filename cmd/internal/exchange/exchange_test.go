package exchange

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/record"

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

// sealedLines makes a sealed stream of lines, whatever they are: a digest at the end would keep a fuzzer from all but the seeds.
func sealedLines(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNet, RunID: "r", Tool: schemas.StageNet, Version: "v"})
	testkit.Must(t, err)
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 && w.WriteRaw(line) != nil {
			return nil
		}
	}
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	return b.Bytes()
}

// inner are the lines of a stream without header and trailer.
func inner(b []byte) []byte {
	list := bytes.SplitAfter(b, []byte("\n"))
	return bytes.Join(list[1:len(list)-2], nil)
}

// FuzzHAR: of whatever lines a recording has, with a body, its HAR is JSON with an entry for each HTTP exchange, and its key is one that
// does not depend on the order of the query.
func FuzzHAR(f *testing.F) {
	f.Add(inner(whole(f, lines())), []byte("body"))
	f.Add([]byte(`{"schema":"assay.runner.network_exchange.v0","run_id":"r","seq":0,"decision":"miss","scheme":"https","host":"a","port":443,"address":"198.18.0.1","method":"GET","path":"/","query":"a=%ff&b","request":{"headers":[{"name":"Content-Type","value":"\\xff"}],"bytes":0}}`), []byte{0xff, 0})
	f.Fuzz(func(t *testing.T, text, body []byte) {
		dir := t.TempDir()
		digest := schemas.DigestOf(body)
		testkit.Must(t, os.MkdirAll(filepath.Join(dir, record.BlobDir), 0o755))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, record.BlobDir, strings.TrimPrefix(digest, "sha256:")), body, 0o644))
		r := In(dir)
		if r.read(bytes.NewReader(sealedLines(t, text)), "net") != nil {
			return
		}
		want := 0
		for _, e := range r.Exchanges {
			if e.Request.SHA256 != "" || e.Response != nil && e.Response.SHA256 != "" {
				e.Request.SHA256, e.Request.Bytes = digest, uint64(len(body))
				if e.Response != nil {
					e.Response.SHA256, e.Response.Bytes = digest, uint64(len(body))
				}
			}
			same := *e
			if Key(e, nil) != Key(&same, nil) || Distance(e, &same) != 0 {
				t.Errorf("%+v is not equal to itself", e)
			}
			if e.Scheme != schemas.NetTCP && e.Method != "" {
				want++
			}
		}
		var out bytes.Buffer
		if err := r.HAR(&out); err != nil {
			return
		}
		var h struct {
			Log struct{ Entries []json.RawMessage }
		}
		if err := json.Unmarshal(out.Bytes(), &h); err != nil || len(h.Log.Entries) != want {
			t.Errorf("%d entries, expected %d; %v: %q", len(h.Log.Entries), want, err, out.Bytes())
		}
		r.Prompts(io.Discard)
	})
}
