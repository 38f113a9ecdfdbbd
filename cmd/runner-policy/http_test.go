//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// httpFixture is a proxy with a policy before a server of the test.
type httpFixture struct {
	t    *testing.T
	url  string
	p    *httpProxy
	log  string
	mu   sync.Mutex
	seen []string
}

// behind starts a proxy before a handler, which gets the bodies of POST.
func behind(t *testing.T, handler func(f *httpFixture, w http.ResponseWriter, r *http.Request, body string)) *httpFixture {
	f := &httpFixture{t: t, log: filepath.Join(t.TempDir(), "log")}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.seen = append(f.seen, r.Method+" "+string(b))
		f.mu.Unlock()
		handler(f, w, r, string(b))
	}))
	file := filepath.Join(t.TempDir(), "policy.yaml")
	testkit.Must(t, os.WriteFile(file, []byte("schema: runner.policy.v0\ndefault: deny\nrules:\n  - {id: echo, allow: echo}\n"), 0o600))
	p, err := policy.Open(file)
	testkit.Must(t, err)
	to, err := decisions.Open(f.log, 0)
	testkit.Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	u, _ := url.Parse(up.URL + "/mcp")
	o := Options{Name: "srv", MaxLine: 1 << 20, HTTP: &httpOptions{Upstream: u}}
	shared, rules := decisions.Shared(to), newRulings(ruling{p, p.Digest})
	f.p = newHTTPProxy(o, "127.0.0.1", l.Addr(), func() *session { return newSession(o, rules, "/", shared) })
	srv := &http.Server{Handler: f.p}
	go srv.Serve(l)
	f.url = "http://" + l.Addr().String() + "/mcp"
	t.Cleanup(func() { f.p.stop(); srv.Close(); up.CloseClientConnections(); up.Close(); to.Close() })
	return f
}

func (f *httpFixture) do(method, at, session, body string, headers ...string) (*http.Response, string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := http.DefaultClient.Do(r)
	testkit.Must(f.t, err)
	defer answer.Body.Close()
	b, _ := io.ReadAll(answer.Body)
	return answer, string(b)
}

func (f *httpFixture) upstreamSaw(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(strings.Join(f.seen, "\n"), text)
}

// logged ends the proxy's sessions and returns the log.
func (f *httpFixture) logged() string {
	f.p.stop()
	f.p.endAll()
	return string(testkit.Read(f.t, f.log))
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`

func callOf(id int, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, name)
}

func idOf(body string) string {
	_, after, _ := strings.Cut(body, `"id":`)
	return after[:strings.IndexAny(after, ",}")]
}

// streamable is a server of the newer transport: it answers calls as a stream, others as JSON.
func streamable(f *httpFixture, w http.ResponseWriter, r *http.Request, body string) {
	switch {
	case r.Method == http.MethodDelete:
	case strings.Contains(body, `"initialize"`):
		f.mu.Lock()
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", len(f.seen)))
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, idOf(body))
	case strings.Contains(body, `"tools/call"`):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hello\r\rid: 7\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\r\ndata: \"result\":{\"content\":[]}}\r\n\r\n", idOf(body))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestHTTPSession(t *testing.T) {
	f := behind(t, streamable)
	first, body := f.do("POST", f.url, "", initialize)
	id := first.Header.Get("Mcp-Session-Id")
	if id == "" || !strings.Contains(body, `"result"`) {
		t.Fatalf("%v %s", first.Header, body)
	}
	if a, body := f.do("POST", f.url, id, callOf(1, "echo")); a.Header.Get("Content-Type") != eventStream ||
		!strings.Contains(body, "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":1, \"result\"") {
		t.Errorf("allowed: %q", body)
	}
	if a, body := f.do("POST", f.url, id, callOf(2, "rm")); a.StatusCode != 200 || !strings.Contains(body, `"id":2,"result":`) || !strings.Contains(body, "P_DENY_DEFAULT") {
		t.Errorf("denied: %d %q", a.StatusCode, body)
	}
	if a, body := f.do("POST", f.url, id, "["+callOf(3, "echo")+"]"); !strings.Contains(body, "M_BATCH") {
		t.Errorf("batch: %d %q", a.StatusCode, body)
	}
	if a, _ := f.do("POST", f.url, "other", callOf(4, "echo")); a.StatusCode != 404 {
		t.Errorf("a foreign session: %d", a.StatusCode)
	}
	if f.upstreamSaw(`"rm"`) || f.upstreamSaw("POST [") || f.upstreamSaw(`"id":4`) {
		t.Errorf("forwarded: %q", f.seen)
	}
	if a, _ := f.do("DELETE", f.url, id, ""); a.StatusCode != 200 {
		t.Errorf("delete: %d", a.StatusCode)
	}
	if a, _ := f.do("POST", f.url, id, callOf(5, "echo")); a.StatusCode != 404 {
		t.Errorf("an ended session: %d", a.StatusCode)
	}
	log := f.logged()
	for _, want := range []string{`"tool":"echo","decision":"allow"`, `"tool":"rm","decision":"deny"`, `"outcome":"completed"`,
		`"reason_code":"M_BATCH"`, `"decisions":2,"finished":1,"unfinished":0`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// The ids of two clients without a session never mix.
func TestHTTPWithoutSession(t *testing.T) {
	gate := make(chan struct{})
	f := behind(t, func(f *httpFixture, w http.ResponseWriter, r *http.Request, body string) {
		if strings.Contains(body, "slow") {
			<-gate
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"of":%q}}`, r.Header.Get("Authorization"))
	})
	slow := make(chan string, 1)
	go func() {
		_, b := f.do("POST", f.url, "", strings.Replace(callOf(1, "echo"), `{}`, `{"a":"slow"}`, 1), "Authorization", "one")
		slow <- b
	}()
	for !f.upstreamSaw("slow") {
		time.Sleep(5 * time.Millisecond)
	}
	if _, b := f.do("POST", f.url, "", callOf(1, "echo"), "Authorization", "two"); !strings.Contains(b, `"of":"two"`) {
		t.Error(b)
	}
	close(gate)
	if b := <-slow; !strings.Contains(b, `"of":"one"`) {
		t.Error(b)
	}
	if log := f.logged(); strings.Count(log, `"outcome":"completed"`) != 2 {
		t.Error(log)
	}
}

func TestHTTPGuard(t *testing.T) {
	f := behind(t, streamable)
	port := f.p.port
	for name, c := range map[string]struct {
		want    int
		headers []string
	}{
		"own origin":     {200, []string{"Origin", "http://127.0.0.1:" + port}},
		"other origin":   {403, []string{"Origin", "http://evil.example"}},
		"null origin":    {403, []string{"Origin", "null"}},
		"other port":     {403, []string{"Origin", "http://127.0.0.1:1"}},
		"rebound name":   {403, []string{"Host", "evil.example:" + port}},
		"localhost":      {200, []string{"Host", "localhost:" + port}},
		"form":           {415, []string{"Content-Type", "text/plain"}},
		"other encoding": {415, []string{"Content-Encoding", "gzip"}},
		"bad session":    {400, []string{"Mcp-Session-Id", "a b"}},
		"other method":   {400, []string{"Mcp-Method", "tools/list"}},
		"other tool":     {400, []string{"Mcp-Method", "tools/call", "Mcp-Name", "cat"}},
		"same tool":      {200, []string{"Mcp-Method", "tools/call", "Mcp-Name", "echo"}},
	} {
		if a, body := f.do("POST", f.url, "", callOf(1, "echo"), c.headers...); a.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", name, a.StatusCode, c.want, body)
		}
	}
	if a, _ := f.do("POST", f.url+"/x", "", callOf(1, "echo")); a.StatusCode != 404 {
		t.Errorf("another path: %d", a.StatusCode)
	}
	if _, body := f.do("POST", f.url, "", strings.Repeat(" ", 1<<20)+"{}"); !strings.Contains(body, "M_TOO_LONG") {
		t.Errorf("a long body: %s", body)
	}
}

// Only the upstream's origin is contacted, and an answer under another id is none.
func TestHTTPUpstreamFaults(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("contacted") }))
	defer elsewhere.Close()
	f := behind(t, func(f *httpFixture, w http.ResponseWriter, r *http.Request, body string) {
		switch {
		case strings.Contains(body, "redirect"):
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case strings.Contains(body, "other"):
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":99,"result":{}}`)
		case strings.Contains(body, "cut"):
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n")
		case r.Method == "GET":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/x\n\n", elsewhere.URL)
		default:
			w.WriteHeader(500)
		}
	})
	for _, how := range []string{"redirect", "other", "cut", "fail"} {
		_, body := f.do("POST", f.url, "", strings.Replace(callOf(1, "echo"), "{}", `{"how":"`+how+`"}`, 1))
		if !strings.Contains(body, `"id":1,"error"`) {
			t.Errorf("%s: %s", how, body)
		}
	}
	if _, body := f.do("GET", f.url, "", ""); strings.Contains(body, "endpoint") {
		t.Errorf("endpoint elsewhere: %s", body)
	}
	if log := f.logged(); strings.Count(log, "call_finished") != 4 || !strings.Contains(log, `"unfinished":0`) {
		t.Error(log)
	}
}
