package clock

import (
	"testing"
	"time"
)

// TestBoth: both clocks are read at the same moment, between two others.
func TestBoth(t *testing.T) {
	before, wall := Monotonic(), time.Now()
	both := Both()
	after, later := Monotonic(), time.Now()
	if both.MonotonicNS < before || both.MonotonicNS > after {
		t.Errorf("%d is not between %d and %d", both.MonotonicNS, before, after)
	}
	if r := int64(both.RealtimeNS); r < wall.UnixNano()-int64(time.Second) || r > later.UnixNano()+int64(time.Second) {
		t.Errorf("%d is not between %d and %d", r, wall.UnixNano(), later.UnixNano())
	}
	if Shifted() {
		t.Log("these tests run in a time namespace")
	}
}
