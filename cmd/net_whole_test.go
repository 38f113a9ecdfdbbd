//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// forgetful asks for 300 things without waiting for an answer, says what is no request, and ends.
const forgetful = `
import os, socket
for n in range(300):
    s = socket.create_connection(("other.test", 80))
    s.sendall(b"GET /%d HTTP/1.1\r\nHost: other.test\r\n\r\n" % n)
for text in (b"GET / HTTP/9.9\r\n\r\n", b"GET /whole HTTP/1.1\r\nHost: odd.test\r\n\r\nNONSENSE\r\n\r\n", b"\x16garbage that is no handshake"):
    s = socket.create_connection(("odd.test", 80))
    s.sendall(text)
    s.shutdown(socket.SHUT_WR)
s = socket.create_connection(("odd.test", 80))
os._exit(0)
`

// TestNetLosesNothing: what the program asked for just before it ended is in the record, and so is what was no request.
func TestNetLosesNothing(t *testing.T) {
	testkit.Programs(t, "requests that nobody waits for", "curl", "python3")
	for _, c := range callers(t) {
		s := serve(t, c)
		for n := range 3 {
			out := filepath.Join(c.dir(t), fmt.Sprint(n))
			o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out}, s.flags, []string{"--", "python3", "-c", forgetful})...))
			if o.code != 0 {
				t.Fatal(o)
			}
			got := exchanges(t, out)
			if odd := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.Contains(s, "other.test") }); !slices.Equal(odd, []string{
				"deny  http://odd.test 0 not_http", "deny  http://odd.test 0 not_http", "deny GET http://odd.test/whole 403", "deny  https://odd.test:80 0 client_tls", "deny  tcp://odd.test:80 0 silent"}) {
				t.Errorf("%s: %s", c.name, strings.Join(odd, "\n"))
			}
			if len(got) != 305 {
				t.Errorf("%s: %d exchanges, expected 305", c.name, len(got))
			}
		}
	}
}

// TestNetEarlyAnswer: where a server answers without the whole request, the record says that it has a part.
func TestNetEarlyAnswer(t *testing.T) {
	testkit.Programs(t, "a request that the server does not want", "curl")
	c := callers(t)[0]
	s := serve(t, c)
	big := filepath.Join(s.dir, "big")
	testkit.Must(t, os.WriteFile(big, make([]byte, 32<<20), 0o644))
	out := filepath.Join(c.dir(t), "r")
	o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out}, s.flags, []string{"--", "curl", "-s", "-o", "/dev/null", "-H", "Expect:", "-w", "%{http_code}", "--data-binary", "@" + big, "http://plain.test/early"})...))
	if got := exchanges(t, out); o.code != 0 && o.code != 55 || len(got) != 1 || !strings.Contains(got[0], "request_cut") && !strings.Contains(got[0], "server_cut") && !strings.Contains(got[0], "client_cut") {
		t.Errorf("%v\n%q", o, got)
	}
}

// TestNetPorts: there can be more ports than descriptors in one message.
func TestNetPorts(t *testing.T) {
	c := callers(t)[0]
	s := serve(t, c)
	rules := "schema: runner.net_allow.v0\nrules:\n"
	for n := range 600 {
		rules += fmt.Sprintf("- {host: many.test, port: %d}\n", 10_000+n)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(s.dir, "many.yaml"), []byte(rules), 0o644))
	out := filepath.Join(c.dir(t), "r")
	o := call(t, c.net(t, "record", "-o", out, "--allow", filepath.Join(s.dir, "many.yaml"), "--upstream", "many.test:10599=127.0.0.1:1", "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://many.test:10599/"))
	if got := exchanges(t, out); o.stdout != "502" || len(got) != 1 {
		t.Errorf("%v\n%q", o, got)
	}
}
