package schemas

import (
	"runtime"
	"testing"
)

// A first use takes no more memory than any other once it was prepared: what it would have made is there.
func TestPrepare(t *testing.T) {
	type asked struct {
		A map[string]StageHealth `json:"a"`
		B []Health               `json:"b"`
	}
	type unasked struct {
		A map[string]StageHealth `json:"a"`
		B []Health               `json:"b"`
	}
	PrepareMarshal(asked{})
	PrepareUnmarshal(asked{})
	in := []byte(`{"a":{"x":{"schema":"s"}},"b":[{"run_id":"r"}]}`)
	for _, c := range []struct {
		what          string
		first, second func() error
	}{
		{"Unmarshal", func() error { return Unmarshal(in, new(unasked)) }, func() error { return Unmarshal(in, new(asked)) }},
		{"Marshal", func() error { _, err := Marshal(unasked{}); return err }, func() error { _, err := Marshal(asked{}); return err }},
	} {
		without, with := allocated(t, c.first), allocated(t, c.second)
		if with > without/2 {
			t.Errorf("%s: a first use takes %d bytes when it was prepared, and %d when not", c.what, with, without)
		}
	}
}

func allocated(t *testing.T, f func() error) uint64 {
	t.Helper()
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	err := f()
	runtime.ReadMemStats(&b)
	if err != nil {
		t.Fatal(err)
	}
	return b.TotalAlloc - a.TotalAlloc
}
