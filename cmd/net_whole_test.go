//go:build linux

package cmd_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/exchange"

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

// TestNetInward: a rule for the command itself lets nothing out, and is warned of before the command runs; what the warning says to type does.
func TestNetInward(t *testing.T) {
	testkit.Programs(t, "requests", "curl")
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })
	web, raw := httptest.NewServer(hello), httptest.NewServer(hello)
	defer web.Close()
	defer raw.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	testkit.Must(t, err)
	_, other, err := net.SplitHostPort(raw.Listener.Addr().String())
	testkit.Must(t, err)
	c := callers(t)[0]
	dir := c.dir(t)
	rules := "schema: runner.net_allow.v0\nrules:\n"
	for _, rule := range []string{"{id: name, host: localhost, port: " + port + "}", "{id: address, host: 127.0.0.1, port: " + port + "}", "{id: bytes, host: 127.0.0.1, port: " + other + ", tcp: true}", "{id: meant, host: service.test, port: " + port + "}"} {
		rules += "- " + rule + "\n"
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "allow.yaml"), []byte(rules), 0o644))
	script := "echo began >&2; for u in localhost:" + port + " 127.0.0.1:" + port + " 127.0.0.1:" + other + " service.test:" + port + "; do curl -s http://$u/ || echo none; done"
	o := call(t, c.net(t, "record", "-o", dir+"/r", "--allow", dir+"/allow.yaml", "--upstream", "service.test:"+port+"=127.0.0.1:"+port, "--", "sh", "-c", script))
	if o.code != 0 || o.stdout != "none\nnone\nhello\nhello\n" {
		t.Errorf("%v\n%q", o, exchanges(t, dir+"/r"))
	}
	said, _, began := strings.Cut(o.stderr, "began\n")
	if !began || strings.Count(said, "warning: ") != 2 || !strings.Contains(said, "the rule name lets nothing out") || !strings.Contains(said, "the rule address lets nothing out") ||
		!strings.Contains(said, "{host: service.test, port: "+port+"} and --upstream service.test:"+port+"=127.0.0.1:"+port) {
		t.Errorf("%q", o.stderr)
	}
}

// asking asks for what servers could take in several ways, and says the first lines of the answers. A request with a length is cut.
const asking = `
import socket, sys
for line in sys.argv[1:]:
    s = socket.create_connection(("plain.test", 80))
    s.sendall(line.encode() + b" HTTP/1.1\r\nHost: plain.test\r\nContent-Length: %d\r\n\r\n" % line.startswith("POST"))
    if line.startswith("POST"):
        s.shutdown(socket.SHUT_WR)
    print(s.recv(1 << 16).split(b"\r\n")[0].decode())
`

// TestNetTargets: the record has what the server was asked for, however a request says it; what is no path is not passed on.
func TestNetTargets(t *testing.T) {
	testkit.Programs(t, "requests of other forms", "python3", "curl")
	c := callers(t)[0]
	s := serve(t, c)
	out := c.dir(t)
	o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out + "/a"}, s.flags, []string{"--", "python3", "-c", asking,
		"GET http:count", "GET x:?q", "GET http://plain.test", "GET ftp://plain.test/count", "OPTIONS *"})...))
	if want := "HTTP/1.1 400 Bad Request\nHTTP/1.1 404 Not Found\nHTTP/1.1 404 Not Found\nHTTP/1.1 200 OK\nHTTP/1.1 200 OK\n"; o.code != 0 || o.stdout != want {
		t.Errorf("%v\nexpected %s", o, want)
	}
	want := []string{"allow OPTIONS http://plain.test* 200", "allow GET http://plain.test/ 404", "allow GET http://plain.test/?q 404",
		"allow GET http://plain.test/count 200", "deny GET http://plain.testcount 400 not_http"}
	if got := exchanges(t, out+"/a"); !slices.Equal(got, want) {
		t.Errorf("%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	o = call(t, c.net(t, "replay", "-o", out+"/b", out+"/a", "--", "python3", "-c", asking, "GET http:count", "GET http:other"))
	if got := exchanges(t, out+"/b"); o.stdout != "HTTP/1.1 400 Bad Request\nHTTP/1.1 502 Bad Gateway\n" || !slices.Equal(got, []string{"replay GET http://plain.testcount 400 not_http", "miss GET http://plain.testother 502"}) {
		t.Errorf("%v\n%q", o, got)
	}
}

// TestNetReplayCut: what came of a whole request is not the answer of one that was cut, though the bytes that came are the same.
func TestNetReplayCut(t *testing.T) {
	testkit.Programs(t, "requests that are cut", "python3", "curl")
	c := callers(t)[0]
	s := serve(t, c)
	out := c.dir(t)
	for name, test := range map[string]struct {
		recorded, replayed []string
		want               string
	}{
		"whole": {[]string{"curl", "-s", "-X", "POST", "http://plain.test/echo"}, []string{"python3", "-c", asking, "POST /echo"}, "miss POST http://plain.test/echo 502 client_cut"},
		"cut":   {[]string{"python3", "-c", asking, "POST /echo"}, []string{"python3", "-c", asking, "POST /echo"}, "replay POST http://plain.test/echo 502 client_cut"},
	} {
		at := filepath.Join(out, name)
		record := call(t, c.net(t, slices.Concat([]string{"record", "-o", at}, s.flags, []string{"--"}, test.recorded)...))
		o := call(t, c.net(t, slices.Concat([]string{"replay", "-o", at + "-again", at, "--"}, test.replayed)...))
		if got := exchanges(t, at+"-again"); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: %v\n%v\n%q, expected %q", name, record, o, got, test.want)
		}
	}
}

// TestNetOddAnswers: neither a status that cannot be passed on nor what is too long for a line costs the record; trailers that were not
// announced are passed on like those that were.
func TestNetOddAnswers(t *testing.T) {
	testkit.Programs(t, "answers of odd forms", "python3")
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 5)
			io.ReadFull(c, b) // GET /
			switch io.ReadFull(c, b[:1]); b[0] {
			case 'l':
				io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Long: "+strings.Repeat("\xff", 200_000)+"\r\nContent-Length: 2\r\n\r\nok")
			case '0':
				io.WriteString(c, "HTTP/1.1 099 Early\r\nContent-Length: 2\r\n\r\nok")
			default:
				io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Late: yes\r\n\r\n")
			}
			c.Close()
		}
	}()
	c := callers(t)[0]
	dir := c.dir(t)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "odd.yaml"), []byte("schema: runner.net_allow.v0\nrules: [{host: odd.test}]\n"), 0o644))
	const script = `
import socket
for path in ("0", "t", "l", "t?" + "%5c" * 200000, "t?" + "\\\\" * 200000):
    s = socket.create_connection(("odd.test", 80))
    s.sendall(b"GET /%s HTTP/1.1\r\nHost: odd.test\r\nConnection: close\r\n%s\r\n" % (path.encode(), b"X-Secret: 1\r\n" if path == "0" else b""))
    b = b""
    while got := s.recv(1 << 16):
        b += got
    print(b.split(b"\r\n")[0].decode(), b"X-Late: yes" in b)
`
	out := filepath.Join(dir, "r")
	o := call(t, c.net(t, "record", "-o", out, "--allow", filepath.Join(dir, "odd.yaml"), "--upstream", "odd.test:80="+l.Addr().String(), "--", "python3", "-c", script))
	want := []string{"deny  http://odd.test 0 not_http", "deny  http://odd.test 0 not_http", "allow GET http://odd.test/0 502 server_cut", "allow GET http://odd.test/l 502 server_cut", "allow GET http://odd.test/t 200"}
	const answers = "HTTP/1.1 502 Bad Gateway False\nHTTP/1.1 200 OK True\nHTTP/1.1 502 Bad Gateway False\nHTTP/1.1 431 Request Header Fields Too Large False\nHTTP/1.1 431 Request Header Fields Too Large False\n"
	if got := exchanges(t, out); o.stdout != answers || !slices.Equal(got, want) {
		t.Errorf("%v\n%q", o, got)
	}
	if r, err := exchange.Read(out); err != nil || r.Net.Redacted != 1 {
		t.Errorf("%+v, %v: expected one value that was taken out", r.Net, err)
	}
}
