package cmd_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// parent is an incoming trace context.
const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// collector is an endpoint: what it got by signal, in order, and what it answers.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	header http.Header         // that each request must have
	got    map[string][]string // requests that it took, by path
	asked  int                 // all requests
	answer func(n int, w http.ResponseWriter, r *http.Request) (taken bool)
}

func newCollector(t *testing.T, secure bool) *collector {
	c := &collector{got: map[string][]string{}}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked++
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || !json.Valid(b) {
			t.Errorf("%s %s %v: %.100q, %v", r.Method, r.URL, r.Header, b, err)
		}
		for key := range c.header {
			if r.Header.Get(key) != c.header.Get(key) {
				t.Errorf("%s: %q, want %q", key, r.Header.Get(key), c.header.Get(key))
			}
		}
		if c.answer == nil || c.answer(c.asked, w, r) {
			c.got[r.URL.Path] = append(c.got[r.URL.Path], string(b))
		}
	}))
	c.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		c.StartTLS()
	} else {
		c.Start()
	}
	t.Cleanup(c.Close)
	return c
}

// took checks that the endpoint took each request of an export once, but for so many that came twice.
func (c *collector) took(t *testing.T, traces, logs []byte, repeats int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	twice := 0
	for path, want := range map[string][]byte{"/v1/traces": traces, "/v1/logs": logs} {
		once := slices.Compact(slices.Clone(c.got[path]))
		twice += len(c.got[path]) - len(once)
		if got := strings.Join(once, ""); got != string(want) {
			t.Errorf("%s took %d bytes in %d requests, the file has %d", path, len(got), len(c.got[path]), len(want))
		}
	}
	if twice != repeats || len(c.got) != 2 {
		t.Errorf("%d requests came twice, want %d; %d signals", twice, repeats, len(c.got))
	}
}

// TestOTelTLS: with --ca and a secret in a file, the endpoint gets what the files have, and no output has the secret.
// Who is not trusted gets nothing, and is not tried for minutes.
func TestOTelTLS(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	archive := packed(t, "tool-times", at("run.tar.gz"))
	c := newCollector(t, true)
	c.header = http.Header{"Authorization": {"Bearer s3cret, of two parts"}, "X-Plain": {"a=b,c"}}
	testkit.Must(t, os.WriteFile(at("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}), 0o600))
	write(t, at("secret"), "Bearer s3cret, of two parts\r\n")
	send := []string{"--endpoint", c.URL, "--header", "authorization=@" + at("secret"), "--header", "X-Plain=a=b,c"}
	traces, logs, _ := otel(t, archive, append(send, "--ca", at("ca.pem"), "--state", at("state"))...)
	c.took(t, traces, logs, 0)
	asked := c.asked
	if n := bytes.Count(traces, []byte("\n")) + bytes.Count(logs, []byte("\n")); asked != n || n < 5 {
		t.Errorf("%d requests, of %d lines", asked, n)
	}
	if b := testkit.Read(t, at("state")); bytes.Contains(b, []byte("s3cret")) {
		t.Errorf("the state has the secret: %s", b)
	}
	write(t, at("none.pem"), "no certificate")
	for _, x := range []struct {
		code int
		says string
		args []string
	}{
		{5, "certificate", nil}, // the system does not know it
		{3, "no certificate in PEM", []string{"--ca", at("none.pem")}},
		{5, "no such file", []string{"--ca", at("missing.pem")}},
		{5, "no such file", []string{"--header", "X-More=@" + at("missing")}},
	} {
		o := call(t, command(t, "runner-otel", append(append(append([]string{}, send...), x.args...), archive)...))
		if o.code != x.code || !strings.Contains(o.stderr, x.says) || strings.Contains(o.stderr+o.stdout, "s3cret") || strings.Contains(o.stderr, "given up") {
			t.Errorf("%q: %v", x.args, o)
		}
	}
	if c.asked != asked {
		t.Errorf("%d requests to who is not trusted", c.asked-asked)
	}
}

// TestOTelResumes: an export that was stopped at any request goes on with it, and each is taken once. Only a request
// that was taken when the program was killed, before it could note that, is taken twice.
func TestOTelResumes(t *testing.T) {
	archive := packed(t, "tool-times", filepath.Join(t.TempDir(), "run.tar.gz"))
	traces, logs, _ := otel(t, archive)
	requests := bytes.Count(traces, []byte("\n")) + bytes.Count(logs, []byte("\n"))
	for name, c := range map[string]struct {
		signal        os.Signal // nil: the endpoint refuses
		exit, repeats int
	}{"refused": {nil, 5, 0}, "terminated": {syscall.SIGTERM, -1, 0}, "killed": {os.Kill, -1, 1}} {
		t.Run(name, func(t *testing.T) {
			for last := 1; last <= requests; last++ {
				stopAt(t, archive, last, requests, c.signal, c.exit, c.repeats).took(t, traces, logs, c.repeats)
			}
		})
	}
}

// stopAt stops an export at a request, and lets the next call end it.
func stopAt(t *testing.T, archive string, last, requests int, signal os.Signal, exit, repeats int) *collector {
	c, dir := newCollector(t, false), t.TempDir()
	args := []string{"--endpoint", c.URL, "--state", filepath.Join(dir, "state"), "--logs", filepath.Join(dir, "logs"), archive}
	p := command(t, "runner-otel", args...)
	c.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case n < last:
			return true
		case signal == nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			p.Process.Signal(signal)
			<-r.Context().Done() // it hangs up
		}
		return repeats > 0
	}
	if o := call(t, p); o.code != exit || o.stdout != "" {
		t.Errorf("stopped at request %d: %v", last, o)
	}
	if left := testkit.Names(t, dir); signal != os.Kill && (len(left) > 1 || len(left) == 1 && left[0] != "state") {
		t.Errorf("stopped at request %d, it left %q", last, left)
	}
	c.mu.Lock()
	c.answer = nil
	c.mu.Unlock()
	o := call(t, command(t, "runner-otel", args...))
	if want := fmt.Sprintf("took %d requests; %d were sent before", requests-last+1, last-1); o.code != 0 || !strings.Contains(o.stdout, want) {
		t.Errorf("at request %d, want %q: %v", last, want, o)
	}
	return c
}

// TestOTelState: a state serves one archive, endpoint and set of flags; what is no state is kept.
func TestOTelState(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	archive, other := packed(t, "tool-times", at("run.tar.gz")), packed(t, "tool-denied", at("other.tar.gz"))
	c, d := newCollector(t, false), newCollector(t, false)
	send := func(state string, args ...string) outcome {
		return call(t, command(t, "runner-otel", append([]string{"--state", at(state), "--endpoint"}, args...)...))
	}
	if o := send("state", c.URL, archive); o.code != 0 {
		t.Fatal(o)
	}
	validate(t, "otel-state-v1", testkit.Read(t, at("state")))
	asked := c.asked
	if o := send("state", c.URL, archive); o.code != 0 || !strings.Contains(o.stdout, "took 0 requests") {
		t.Errorf("again: %v", o)
	}
	write(t, at("mine"), "mine")
	write(t, at("broken"), `{"schema_version":"otel-state-v1","export":1}`)
	for says, o := range map[string]outcome{
		"another archive":         send("state", c.URL, other),
		"endpoint":                send("state", d.URL, archive),
		"other flags":             send("state", c.URL, "--traceparent", parent, archive),
		"it is kept":              send("mine", c.URL, archive),
		"--state " + at("broken"): send("broken", c.URL, archive),
	} {
		if o.code != 2 && o.code != 3 || !strings.Contains(o.stderr, says) || o.stdout != "" {
			t.Errorf("%s: %v", says, o)
		}
	}
	if c.asked != asked || d.asked != 0 || string(testkit.Read(t, at("mine"))) != "mine" {
		t.Errorf("%d and %d requests more", c.asked-asked, d.asked)
	}
}

// TestOTelRejected: records that the endpoint rejects are counted by signal: in the message, the report, and in the
// state, so that the next call does not hide them.
func TestOTelRejected(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	archive := packed(t, "tool-times", at("run.tar.gz"))
	c := newCollector(t, false)
	c.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/traces" {
			io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":7}}`) // no text: the number counts
		} else if n == 2 {
			io.WriteString(w, `{"partialSuccess":{"rejectedLogRecords":2,"errorMessage":"no room\u202e\u001b[2J"}}`)
		}
		return true
	}
	args := []string{"--endpoint", c.URL, "--state", at("state"), "--logs", at("l"), "--traces", at("t"), "--mapping-report", at("m"), archive}
	for _, says := range []string{`"no room\u202e\x1b[2J"`, ""} {
		o := call(t, command(t, "runner-otel", args...))
		if o.code != 1 || !strings.Contains(o.stderr, "refused 3 records: 2 of the logs, 1 of the traces") || !strings.Contains(o.stderr, says) || strings.ContainsAny(o.stderr, "\u202e\x1b") {
			t.Error(o)
		}
		var r struct {
			Sent struct{ Requests, Rejected map[string]int }
		}
		testkit.Must(t, json.Unmarshal(testkit.Read(t, at("m")), &r))
		if fmt.Sprint(r.Sent.Rejected) != "map[logs:2 traces:1]" || r.Sent.Requests["logs"]+r.Sent.Requests["traces"] != c.asked {
			t.Errorf("%+v of %d requests", r, c.asked)
		}
	}
	c.took(t, testkit.Read(t, at("t")), testkit.Read(t, at("l")), 0)
}

// TestOTelTrace: every record that is sent is of the incoming trace, and every span has its parent.
func TestOTelTrace(t *testing.T) {
	c := newCollector(t, false)
	o := call(t, command(t, "runner-otel", "--endpoint", c.URL, "--traceparent", parent, packed(t, "tool-times", filepath.Join(t.TempDir(), "run.tar.gz"))))
	if o.code != 0 {
		t.Fatal(o)
	}
	id := regexp.MustCompile(`"traceId":"([^"]*)"`)
	for path, list := range c.got {
		all := strings.Join(list, "")
		for _, m := range id.FindAllStringSubmatch(all, -1) {
			if m[1] != "4bf92f3577b34da6a3ce929d0e0e4736" {
				t.Errorf("%s: trace %s", path, m[1])
			}
		}
		if spans := strings.Count(all, `"name":"execute_tool`); path == "/v1/traces" && (spans == 0 || strings.Count(all, `"parentSpanId":"00f067aa0ba902b7"`) != spans) {
			t.Errorf("a span has another parent: %s", all)
		}
	}
	if len(c.got) != 2 {
		t.Errorf("%d signals", len(c.got))
	}
}
