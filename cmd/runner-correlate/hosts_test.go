package main

import (
	"strings"
	"testing"
)

// TestHosts: the kernel reports addresses. Which of them belong to a named host is not
// known.
func TestHosts(t *testing.T) {
	asking := func(targets string) string { return strings.Replace(one, "/work", "/work "+targets, 1) }
	read := "failed-read /work/missing, read /work/a"
	deny := func(denied, allowed string) string {
		return "session S 20 30 25\ndeny S 0 tc_1 fetch 40-50 " + denied + "\nallow S 1 tc_2 fetch 100-200 completed /work " + allowed + "\nend S"
	}
	for name, c := range map[string]struct{ kernel, policy, bindings, codes string }{
		"a connection may be to the host": {" 160 connect 10.0.0.1:443\n", asking("example.com:443"),
			"tc_1 allow 3 tool_server own [connect 10.0.0.1:443, " + read + "]", "tool_call_targets_unknown:tc_1"},
		"so may a name server's": {" 160 send 10.0.0.2:53\n", asking("example.com:443"),
			"tc_1 allow 3 tool_server own [" + read + ", send 10.0.0.2:53]", "tool_call_targets_unknown:tc_1"},
		"a file is not a host": {" 160 connect 10.0.0.1:443\n 161 write /x\n", asking("example.com:443"),
			"tc_1 allow 4 tool_server own [connect 10.0.0.1:443, " + read + ", write /x]", "tool_call_effects_outside_request:tc_1"},
		"a unix socket is not a host": {" 160 connect unix:/run/docker.sock\n", asking("example.com:443"),
			"tc_1 allow 3 tool_server own [connect unix:/run/docker.sock, " + read + "]", "tool_call_effects_outside_request:tc_1"},
		"an address that was named": {" 160 connect [::ffff:10.0.0.1]:443\n", asking("10.0.0.1:443"),
			"tc_1 allow 3 tool_server own [connect [::ffff:10.0.0.1]:443, " + read + "]", ""},
		"an address that was not named": {" 160 connect 10.0.0.2:443\n", asking("10.0.0.1:443"),
			"tc_1 allow 3 tool_server own [connect 10.0.0.2:443, " + read + "]", "tool_call_effects_outside_request:tc_1"},
		"a denied connection may have happened": {"1 40 60-\n 61 connect 10.0.0.1:443\n", deny("example.com:443", ""),
			"tc_1 deny 0 tool_server own []\ntc_2 allow 2 tool_server own [" + read + "]", "tool_call_targets_unknown:tc_1"},
		"on another port or before the denial": {"1 40 20-\n 61 connect 10.0.0.1:80\n 30 connect 10.0.0.1:443\n 62 !connect 10.0.0.1:443\n", deny("example.com:443", ""),
			"tc_1 deny 0 tool_server own []\ntc_2 allow 2 tool_server own [" + read + "]", ""},
		"an allowed call may have made it": {" 160 connect 10.0.0.1:443\n", deny("example.com:443", "10.0.0.1:443"),
			"tc_1 deny 0 tool_server own []\ntc_2 allow 3 tool_server own [connect 10.0.0.1:443, " + read + "]", ""},
		"an allowed host does not cover a denied address": {" 160 connect 10.0.0.1:443\n", deny("10.0.0.1:443", "example.com:443"),
			"tc_1 deny 0 tool_server own [connect 10.0.0.1:443]\ntc_2 allow 3 tool_server own [connect 10.0.0.1:443, " + read + "]",
			"denied_call_with_kernel_effects:tc_1\ntool_call_targets_unknown:tc_2"},
		"a denied address in another form": {"1 40 60-\n 61 connect [::ffff:10.0.0.1]:443\n", deny("10.0.0.1:443", ""),
			"tc_1 deny 0 tool_server own [connect [::ffff:10.0.0.1]:443]\ntc_2 allow 2 tool_server own [" + read + "]", "denied_call_with_kernel_effects:tc_1"},
	} {
		t.Run(name, func(t *testing.T) {
			world{kernel: strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "") + c.kernel, policy: c.policy}.run(t).want(t, c.bindings, c.codes)
		})
	}
}

// TestUnobservable: a plain read of noise has no line, so a denial of one is never
// clean.
func TestUnobservable(t *testing.T) {
	for target, code := range map[string]string{
		"/app/node_modules/x/key": "tool_call_targets_unknown:tc_1",
		"/usr/lib/x":              "tool_call_targets_unknown:tc_1",
		"/proc/self/environ":      "tool_call_targets_unknown:tc_1",
		"/proc/1/environ":         "",
		"/app/modules/x":          "",
	} {
		world{kernel: strings.ReplaceAll(agent, "\t110 read /work/a\n\t150 !read /work/missing\n\t210 unlink /work/b\n", ""), policy: `
			session S 20 30 25
			deny S 0 tc_1 read_file 100-105 ` + target + `
			end S`}.run(t).want(t, "tc_1 deny 0 tool_server own []", code)
	}
}

// TestCloseness: an allowed call on a directory does not cover a denied path below it.
// One on the same path, or on a path below, does.
func TestCloseness(t *testing.T) {
	read := "failed-read /work/missing, read /work/a"
	for allowed, codes := range map[string]string{
		"/work":   "denied_call_with_kernel_effects:tc_1",
		"/":       "denied_call_with_kernel_effects:tc_1",
		"/work/a": "tool_call_effects_outside_request:tc_2", // the write
	} {
		for denied, effect := range map[string]string{"/work/a": "read /work/a", "/work/b": "write /work/b"} {
			deniedEffects, expected := "["+effect+"]", codes
			if allowed == "/work/a" {
				if denied == allowed {
					deniedEffects = "[]"
				} else {
					expected = "denied_call_with_kernel_effects:tc_1\n" + codes
				}
			}
			w := world{kernel: strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "") + " 160 write /work/b\n",
				policy: "session S 20 30 25\ndeny S 0 tc_1 x 40-50 " + denied + "\nallow S 1 tc_2 x 100-200 completed " + allowed + "\nend S"}
			w.run(t).want(t, "tc_1 deny 0 tool_server own "+deniedEffects+"\ntc_2 allow 3 tool_server own ["+read+", write /work/b]", expected)
		}
	}
}
