//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestConnectResults: a connect that does not wait reads as its program was told by SO_ERROR, and one that
// has no end stays pending.
func TestConnectResults(t *testing.T) {
	requireBPF(t)
	a, m := record(t, nil, tool("dials"), "40")
	a.complete(t)
	want := map[string]int{}
	pending := 0
	for l := range strings.Lines(m.stdout) {
		want[strings.TrimSpace(l)]++
		if strings.Contains(l, "pending") {
			pending++
		}
	}
	if len(want) < 10 || pending != 2 {
		t.Fatalf("the program made %v", want)
	}
	got := map[string]int{}
	for b := range bytes.Lines(a.members["layers/kernel.ndjson"]) {
		var l struct {
			EventType int `json:"event_type"`
			Value     string
			Return    *int `json:"return_value"`
			Result    *int `json:"connect_result"`
		}
		if decode(t, b, &l); l.EventType != 2 || l.Value == "" {
			continue // a disconnect has no peer
		}
		told := "returned"
		switch {
		case l.Result != nil:
			told = fmt.Sprint(*l.Result)
		case *l.Return == -115:
			told = "pending"
		}
		got[fmt.Sprintf("%s %d %s", l.Value, *l.Return, told)]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("recorded %v\nthe program was told %v", got, want)
	}
}
