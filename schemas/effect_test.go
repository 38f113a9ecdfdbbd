package schemas

import "testing"

func TestEffects(t *testing.T) {
	for _, c := range []struct {
		e    KernelEvent
		want string
	}{
		{KernelEvent{EventType: EventOpenat, AccessMode: "read", Value: []byte("/a b")}, "read /a b"},
		{KernelEvent{EventType: EventOpenat, AccessMode: "read_write", Status: StatusError, Value: []byte("/a")}, "failed-read_write /a"},
		{KernelEvent{EventType: EventOpenat, AccessMode: "unknown", Value: []byte("/a")}, "open /a"},
		{KernelEvent{EventType: EventUnlink, Status: StatusUnproven, Value: []byte("/a")}, "unproven-unlink /a"},
		{KernelEvent{EventType: EventExecFailed, Status: StatusError, Value: []byte("/a")}, "failed-exec /a"},
		{KernelEvent{EventType: EventScript, Status: StatusSuccess, Value: []byte("/a")}, "exec /a"},
		{KernelEvent{EventType: EventConnect, Value: []byte("127.0.0.1:80")}, "connect 127.0.0.1:80"},
		{KernelEvent{EventType: EventSendmmsg, Value: []byte("unix:@a")}, "send unix:@a"},
		{KernelEvent{EventType: EventRenameTo, Value: []byte("/b")}, "rename /b"},
		{KernelEvent{EventType: 999, Value: []byte("x")}, "event_999 x"},
		{KernelEvent{EventType: EventConnectBlocked, Status: StatusError, Value: []byte("127.0.0.1:80")}, "connect_blocked 127.0.0.1:80"},
		{KernelEvent{EventType: EventUnlink}, ""},
	} {
		if got := string(AppendEffect([]byte("> "), &c.e)); got != "> "+c.want {
			t.Errorf("%+v reads %q, expected %q", c.e, got, c.want)
		}
	}
	// Every event that feeds a set has a verb of its own.
	for id := range uint32(256) {
		if SetOf(id) != SetNone && id != EventOpenat && effectVerbs[id] == "" {
			t.Errorf("event %d has no verb", id)
		}
	}
}
