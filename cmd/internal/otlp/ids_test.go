package otlp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestIDs: ids follow from what they are of, and nothing else has them.
func TestIDs(t *testing.T) {
	if a := TraceOf("run_1"); a != TraceOf("run_1") || a == TraceOf("run_2") || !isHex(a.ID, 32) || a.Parent != "" {
		t.Errorf("%+v", a)
	}
	if a := SpanOf("run_1", "c"); a != SpanOf("run_1", "c") || a == SpanOf("run_2", "c") || a == SpanOf("run_1", "d") || !isHex(a, 16) {
		t.Error(a)
	}
}

// TestTraceparent: the examples of W3C Trace Context.
func TestTraceparent(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for s, ok := range map[string]bool{
		"00-" + id + "-" + span + "-01": true, "00-" + id + "-" + span + "-00": true, "cc-" + id + "-" + span + "-01-more": true,
		"00-" + id + "-" + span + "-01-more": false, "ff-" + id + "-" + span + "-01": false, "00-" + strings.ToUpper(id) + "-" + span + "-01": false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false, "00-" + id + "-" + strings.Repeat("0", 16) + "-01": false, "": false, "00-" + id: false,
	} {
		got, err := ParseTraceparent(s)
		if (err == nil) != ok || ok && got != (Trace{id, span}) {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
}

// TestBatches: requests have a bounded number of records, are JSON, and are the same whichever way the buffers come back.
func TestBatches(t *testing.T) {
	var all [2]string
	for i, reuse := range []bool{false, true} {
		requests, records := 0, 0
		b := Batcher{Signal: Logs, Resource: Text(nil, "a", "b"), Send: func(r []byte) ([]byte, error) {
			all[i] += string(r)
			var v struct {
				ResourceLogs []struct {
					ScopeLogs []struct {
						LogRecords []json.RawMessage `json:"logRecords"`
					} `json:"scopeLogs"`
				} `json:"resourceLogs"`
			}
			if err := json.Unmarshal(r, &v); err != nil || r[len(r)-1] != '\n' || len(v.ResourceLogs[0].ScopeLogs[0].LogRecords) > maxRecords {
				t.Fatalf("%v: %.200s", err, r)
			}
			requests++
			records += len(v.ResourceLogs[0].ScopeLogs[0].LogRecords)
			if reuse {
				return r, nil
			}
			return nil, nil
		}}
		for scope := range 3 {
			if err := b.Scope(fmt.Sprint(scope), "1", nil); err != nil {
				t.Fatal(err)
			}
			for n := range 700 {
				if err := b.Done(append(Trim(Int(append(b.Record(), `{"attributes":[`...), "n", int64(n))), "]}"...)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := b.Flush(); err != nil || requests != 6 || records != 2100 || b.Records != 2100 {
			t.Errorf("%d requests, %d records, %d counted, %v", requests, records, b.Records, err)
		}
	}
	if all[0] != all[1] {
		t.Error("the bytes depend on the buffers")
	}
}
