package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestMCPServer: it answers requests in order and with their ids, in JSON, and writes
// nothing else.
func TestMCPServer(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_file","arguments":{}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"big","arguments":{}}}
`
	var out bytes.Buffer
	if err := mcpServer(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	id := 0
	for line := range bytes.Lines(out.Bytes()) {
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(line, &m); err != nil || len(m.Result) == 0 {
			t.Fatalf("%.200s: %v", line, err)
		}
		if id++; m.ID != id {
			t.Errorf("answer to %d, expected %d", m.ID, id)
		}
	}
	if id != 3 || out.Len() < bigText {
		t.Errorf("%d answers, %d bytes", id, out.Len())
	}
}
