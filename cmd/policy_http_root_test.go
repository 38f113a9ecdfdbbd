//go:build linux

package cmd_test

import "testing"

// TestPolicyHTTPMeasured: an ordinary run with a server over HTTP reads clean, and says that the server is elsewhere.
func TestPolicyHTTPMeasured(t *testing.T) {
	requireBPF(t)
	archive := overHTTP(t)
	o := call(t, command(t, "runner-verify", "--explain", "--assert", `.report.status == "clean"`,
		"--assert", `.report.notes | index("tool_server_elsewhere:web") != null`, archive))
	if o.code != 0 {
		t.Error(o, call(t, command(t, "runner-show", archive)).stdout)
	}
}
