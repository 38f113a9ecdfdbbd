//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

// quick is a client that continues its call as soon as it has read the answer.
type quick struct {
	inFlight *inFlight
	known    bool // the proxy knew the call when the last piece of the answer was written
}

func (q *quick) Write(b []byte) (int, error) {
	r, _ := q.inFlight.resumed([]byte("s1"), "t")
	q.known = r != nil
	return len(b), nil
}

// TestRoundIsKnownInTime: the proxy notes that a call can continue in another request
// before the client can send that request, for answers in one piece and streamed ones.
func TestRoundIsKnownInTime(t *testing.T) {
	for _, size := range []int{1, 8 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := newSession(Options{}, newRulings(ruling{hider(false), "sha256:0"}), "/", &discardLog{})
			client := &quick{inFlight: s.inFlight}
			s.client = client
			e := otherRequest("1")
			e.call.tool = "t"
			s.inFlight.add(e)
			answer := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s1","inputRequests":{"a":"` + strings.Repeat("x", size) + `"}}}` + "\n"
			if err := s.readServer(&pieces{[]byte(answer), 1}); err != nil {
				t.Fatal(err)
			}
			if !client.known {
				t.Error("a client that answers at once begins a new call")
			}
		})
	}
}
