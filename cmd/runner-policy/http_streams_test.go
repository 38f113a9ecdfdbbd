//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// A result that arrives on a resumed stream ends the call of its session; a request of the
// server on it is recorded.
func TestHTTPResumes(t *testing.T) {
	f := behind(t, func(f *httpFixture, w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case r.Method == "GET" && r.Header.Get("Last-Event-ID") == "e1":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
		case strings.Contains(body, `"tools/call"`):
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "id: e1\ndata:\n\n")
		default:
			streamable(f, w, r, body)
		}
	})
	first, _ := f.do("POST", f.url, "", initialize)
	id := first.Header.Get("Mcp-Session-Id")
	if _, body := f.do("POST", f.url, id, callOf(1, "echo")); strings.Contains(body, "error") || !strings.Contains(body, "id: e1") {
		t.Fatalf("%q", body)
	}
	if _, body := f.do("POST", f.url, id, callOf(1, "echo")); !strings.Contains(body, "M_ID_IN_USE") {
		t.Errorf("the id in flight: %q", body)
	}
	if _, body := f.do("GET", f.url, id, "", "Last-Event-ID", "e1"); !strings.Contains(body, `"id":1,"result"`) {
		t.Errorf("resumed: %q", body)
	}
	log := f.logged()
	for _, want := range []string{`"direction":"server","method":"ping"`, `"outcome":"completed"`, `"unfinished":0`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// The older transport: answers come on the stream, also those of the proxy.
func TestHTTPOlder(t *testing.T) {
	answers := make(chan string, 8)
	f := behind(t, func(f *httpFixture, w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == "GET" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: endpoint\ndata: /messages?s=1\n\n")
			w.(http.Flusher).Flush()
			for line := range answers {
				io.WriteString(w, "event: message\ndata: "+line+"\n\n")
				w.(http.Flusher).Flush()
			}
			return
		}
		if r.URL.RequestURI() != "/messages?s=1" {
			t.Errorf("posted to %s", r.URL)
		}
		w.WriteHeader(http.StatusAccepted)
		answers <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, idOf(body))
	})
	a, err := http.Get(f.url)
	testkit.Must(t, err)
	defer a.Body.Close()
	events := newEventReader(a.Body, 1<<20)
	ev, err := events.next()
	testkit.Must(t, err)
	at := strings.TrimSuffix(f.url, "/mcp") + string(ev.data)
	if ev.name != "endpoint" || !strings.Contains(at, sessionQuery) {
		t.Fatalf("%+v", ev)
	}
	for i, tool := range []string{"echo", "rm"} {
		if a, body := f.do("POST", at, "", callOf(i, tool)); a.StatusCode != 202 {
			t.Errorf("%d %s", a.StatusCode, body)
		}
		ev, err := events.next()
		testkit.Must(t, err)
		if want := fmt.Sprintf(`"id":%d,"result"`, i); !strings.Contains(string(ev.data), want) {
			t.Errorf("%s: %s", tool, ev.data)
		}
	}
	if a, _ := f.do("POST", at+"x", "", callOf(9, "echo")); a.StatusCode != 404 {
		t.Errorf("a guessed name: %d", a.StatusCode)
	}
	close(answers)
	io.Copy(io.Discard, a.Body)
	if log := f.logged(); !strings.Contains(log, `"decisions":2,"finished":1,"unfinished":0`) || f.upstreamSaw(`"rm"`) {
		t.Error(log)
	}
}

// What is read from a stream and written again reads the same.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfid: 1\r\ndata: a\rdata:b\n\n:c\n\nevent:x\nretry: 10\ndata\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newEventReader(strings.NewReader(string(b)), 1000)
		for {
			ev, err := r.next()
			if err != nil {
				return
			}
			again, err := newEventReader(strings.NewReader(string(ev.text())), 1<<20).next()
			if err != nil || string(again.data) != string(ev.data) || again.id != ev.id || again.name != ev.name || again.retry != ev.retry || again.hasID != ev.hasID {
				t.Fatalf("%+v, again %+v: %v", ev, again, err)
			}
		}
	})
}
