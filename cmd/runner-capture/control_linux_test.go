package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

func TestReadControl(t *testing.T) {
	const started = `{"schema":"runner.control.v0","op":"started","command":["a"],"agent_shim":"none","env_keys":[],"inherited_fds":0}` + "\n"
	const finished = `{"schema":"runner.control.v0","op":"finished","exit_code":0,"signal":null}` + "\n"
	for _, c := range []struct {
		name, in, ops string
		lost          bool
		fails         bool
	}{
		{"whole, then gone before the seal", started + finished, "started finished", false, true},
		{"a line too many", started + finished + finished, "started finished", false, true},
		{"end before finished", started, "started", true, true},
		{"nothing at all", "", "", true, true},
		{"half a line is not a line", started + strings.TrimSuffix(finished, "\n"), "started", true, true},
		{"another schema", strings.Replace(started, "control", "contro1", 1), "", false, true},
		{"not JSON", "stop\n", "", false, true},
	} {
		var ops []string
		err := readControl(strings.NewReader(c.in), func(l schemas.Control) { ops = append(ops, l.Op) })
		if got := strings.Join(ops, " "); got != c.ops || (err != nil) != c.fails || errors.Is(err, errSupervisorLost) != c.lost {
			t.Errorf("%s: operations %q, error %v", c.name, got, err)
		}
	}
}

func TestRunSpan(t *testing.T) {
	for _, c := range []struct {
		started  schemas.RunClock
		finished uint64
		span     string
	}{
		{schemas.RunClock{MonotonicNS: 5, RealtimeNS: 7}, 9, "monotonic_ns=5 realtime_ns=7 finished_ns=4"},
		{schemas.RunClock{MonotonicNS: 5, RealtimeNS: 7}, 5, "monotonic_ns=5 realtime_ns=7 finished_ns=0"},
		{schemas.RunClock{MonotonicNS: 5, RealtimeNS: 7}, 4, ""},
		{schemas.RunClock{MonotonicNS: 5, RealtimeNS: 7}, 0, ""},
		{schemas.RunClock{RealtimeNS: 7}, 9, ""},
		{schemas.RunClock{MonotonicNS: 5, RealtimeNS: 1 << 62}, 9, ""},
	} {
		span, err := runSpan(c.started, c.finished)
		if (err == nil) != (c.span != "") || err == nil && span.String() != c.span {
			t.Errorf("%+v to %d: %v, %v", c.started, c.finished, span, err)
		}
	}
}
