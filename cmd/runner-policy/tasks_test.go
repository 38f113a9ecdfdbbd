//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestTasks: a call that goes on as a task ends when the task does.
func TestTasks(t *testing.T) {
	t.Parallel()
	const asks = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_task","arguments":{},"task":{"ttl":60000}}}`
	about := func(id, method, status string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"taskId":"T","status":"` + status + `"}}`
	}
	for name, c := range map[string]struct {
		lines   []string
		outcome string
		last    bool // the call is the last thing that ends, before other requests of the list do it is still open
	}{
		"result":            {[]string{asks, about("2", "tasks/get", "working"), about("3", "tasks/result", "")}, "tool_error", true},
		"get says it":       {[]string{asks, about("2", "tasks/get", "completed")}, "completed", true},
		"it fails":          {[]string{asks, about("2", "tasks/get", "failed")}, "tool_error", true},
		"cancel":            {[]string{asks, about("2", "tasks/cancel", "")}, "cancelled", true},
		"a notification":    {[]string{asks, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_lines","arguments":{"lines":["{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{\"taskId\":\"T\",\"status\":\"completed\"}}","{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}"]}}}`}, "completed", false},
		"the client leaves": {[]string{asks, about("2", "tasks/get", "working")}, "client_gone", true},
		"an escaped key":    {[]string{strings.Replace(asks, `"task"`, `"t\u0061sk"`, 1), about("2", "tasks/get", "completed")}, "completed", true},
		"no task was asked": {[]string{strings.Replace(asks, `,"task":{"ttl":60000}`, "", 1)}, "completed", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, "schema: runner.policy.v0\ndefault: allow\n")
			for _, line := range c.lines {
				p.send(line)
				for p.receive(); strings.Contains(line, "notifications/tasks/status"); {
					p.receive()
					break
				}
			}
			if code, rest := p.end(); code != 0 || rest != "" {
				t.Errorf("exit %d, %q", code, rest)
			}
			ends := p.entries("runner.policy.call_finished")
			if len(ends) == 0 || ends[0]["outcome"] != c.outcome || ends[0]["tool_call_id"] == nil {
				t.Fatalf("%v, expected %s", ends, c.outcome)
			}
			begun := p.entries("runner.policy.request_decided")
			if c.last && len(begun) > 0 && ends[0]["end_ns"].(float64) <= begun[len(begun)-1]["start_ns"].(float64) {
				t.Errorf("the call ended before its task: %v, %v", ends, begun)
			}
		})
	}
}
