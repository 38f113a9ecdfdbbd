package parties

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overHTTP starts a program that says its address in its first line, on standard output or standard error.
func overHTTP(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), env...), w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		done := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
		defer done.Stop()
		c.Wait()
	})
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if _, at, found := strings.Cut(line, "http://"); found {
			go func() { io.Copy(os.Stderr, lines); r.Close() }()
			at, _, _ = strings.Cut(strings.TrimSpace(at), " ")
			return "http://" + at
		}
		if err != nil {
			t.Fatalf("%s: no address: %v", argv[0], err)
		}
	}
}

// wire notes what passes between a client and a server over HTTP: the messages of both ways.
type wire struct {
	mu      sync.Mutex
	in, out []string
	cutAt   string // after an event with this text, the stream breaks, once
	resumed int    // requests with the id of the last event
}

// tapHTTP is the address of a wire to a server.
func tapHTTP(t *testing.T, to string) (*wire, string) {
	t.Helper()
	w := &wire{}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
			b, _ := io.ReadAll(r.In.Body)
			r.Out.Body = io.NopCloser(bytes.NewReader(b))
			w.note(&w.in, string(b))
			if r.In.Header.Get("Last-Event-Id") != "" {
				w.mu.Lock()
				w.resumed++
				w.mu.Unlock()
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &heardBody{ReadCloser: r.Body, to: w, events: strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")}
			return nil
		}}
	srv := httptest.NewServer(p)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return w, srv.URL + u.Path
}

// breaks reports whether the stream is to break after this event.
func (w *wire) breaks(data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cutAt == "" || !bytes.Contains(data, []byte(w.cutAt)) {
		return false
	}
	w.cutAt = ""
	return true
}

func (w *wire) note(list *[]string, message string) {
	if message = strings.TrimSpace(message); message != "" {
		w.mu.Lock()
		*list = append(*list, message)
		w.mu.Unlock()
	}
}

// messages are those of one way, sorted: several streams have no common order.
func (w *wire) messages(list *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(*list))
}

// heardBody is a body that is noted while it is read.
type heardBody struct {
	io.ReadCloser
	to     *wire
	events bool
	rest   []byte
}

func (h *heardBody) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	h.rest = append(h.rest, b[:n]...)
	for h.events {
		line, rest, whole := bytes.Cut(h.rest, []byte("\n"))
		if !whole {
			break
		}
		h.rest = rest
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			h.to.note(&h.to.out, string(data))
			if h.to.breaks(data) {
				return n, io.ErrUnexpectedEOF
			}
		}
	}
	if err != nil && !h.events {
		h.to.note(&h.to.out, string(h.rest))
		h.rest = nil
	}
	return n, err
}

// webConversation is one session of a pair over HTTP: through the proxy if there is a policy.
type webConversation struct {
	said           []string
	client, server *wire
	log            string
}

func (p party) web(t *testing.T, policy string) (v webConversation) {
	t.Helper()
	dir := t.TempDir()
	cancelled := filepath.Join(dir, "cancelled")
	env := []string{"PARTIES_CANCELLED=" + cancelled}
	serves := append(p.server(t), "http")
	var at string
	v.server, at = tapHTTP(t, overHTTP(t, env, serves...))
	if v.client = v.server; policy != "" {
		file := filepath.Join(dir, "policy.yaml")
		if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		v.log = filepath.Join(dir, "log")
		v.client, at = tapHTTP(t, overHTTP(t, nil, proxy, "--policy", file, "--log", v.log, "--http", "127.0.0.1:0", "--upstream", at))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	if strings.HasPrefix(p.name, "go-client") {
		v.said, err = talk(ctx, p.version, cancelled, &mcp.StreamableClientTransport{Endpoint: at})
	} else {
		c := exec.CommandContext(ctx, at)
		c.Args, c.Env = []string{at}, append(os.Environ(), env...)
		v.said, err = jsTalk(t, p.version, cancelled, c)
	}
	if err != nil {
		t.Fatal(err, v.said)
	}
	if b, err := os.ReadFile(cancelled); (err != nil || string(b) != "yes") && !strings.Contains(p.name, deaf) {
		t.Errorf("the server did not hear of the cancellation: %v", err)
	}
	return v
}

// TestWebResumed: a stream that breaks in a call is resumed through the proxy, and the call ends as without a break.
func TestWebResumed(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "log")
	if err := os.WriteFile(file, []byte(allowAll), 0o600); err != nil {
		t.Fatal(err)
	}
	upstream := overHTTP(t, []string{"PARTIES_CANCELLED=" + filepath.Join(dir, "cancelled")}, os.Args[0], "serve", "http")
	w, at := tapHTTP(t, overHTTP(t, nil, proxy, "--policy", file, "--log", log, "--http", "127.0.0.1:0", "--upstream", upstream))
	w.cutAt = `"progress":1`
	client := mcp.NewClient(&mcp.Implementation{Name: "party", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at}, &mcp.ClientSessionOptions{ProtocolVersion: legacy})
	if err != nil {
		t.Fatal(err)
	}
	slowly := &mcp.CallToolParams{Meta: mcp.Meta{"tool_call_id": "tc_slow"}, Name: "slow", Arguments: slowIn{1000, 2}}
	slowly.SetProgressToken("p1")
	g := &goClient{session: session}
	if err := g.call(t.Context(), "slow", slowly); err != nil || !slices.Equal(g.said, []string{"slow ok slow"}) {
		t.Errorf("%v: the client saw %q", err, g.said)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cutAt != "" || w.resumed == 0 {
		t.Errorf("the stream did not break, or was not resumed: %q, %d", w.cutAt, w.resumed)
	}
	if b := string(heard(t, log)); strings.Count(b, `"outcome":"completed"`) < 1 || strings.Contains(b, "_gone") {
		t.Errorf("the log has\n%s", b)
	}
}

// deaf is a server that does not hear over HTTP that a client is gone, with or without the proxy: the stateless
// one of the Go SDK 1.8.
const deaf = "go-server " + modern

// cutID matches the answer to the call that was cancelled.
func cutID(t *testing.T, w *wire) *regexp.Regexp {
	t.Helper()
	for _, message := range w.messages(&w.in) {
		var call struct{ ID json.RawMessage }
		if strings.Contains(message, `"tc_cut"`) && json.Unmarshal([]byte(message), &call) == nil {
			return regexp.MustCompile(`"id":` + regexp.QuoteMeta(string(call.ID)) + `[,}]`)
		}
	}
	t.Fatal("nothing was cancelled")
	return nil
}

// TestWebTransparent: over HTTP too, a policy that allows all changes nothing that either side sees.
func TestWebTransparent(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			with, direct := p.web(t, allowAll), p.web(t, "")
			for _, v := range []webConversation{with, direct} {
				if want := saw(p); !slices.Equal(v.said, want) {
					t.Errorf("the client saw\n%q, not\n%q", v.said, want)
				}
			}
			if sent, got := with.client.messages(&with.client.in), with.server.messages(&with.server.in); !slices.Equal(sent, got) {
				t.Errorf("the client sent\n%s\nthe server got\n%s", strings.Join(sent, "\n"), strings.Join(got, "\n"))
			}
			id := cutID(t, with.client) // whether its answer still arrives is nobody's promise
			sent, got := slices.DeleteFunc(with.server.messages(&with.server.out), id.MatchString), slices.DeleteFunc(with.client.messages(&with.client.out), id.MatchString)
			if !slices.Equal(sent, got) {
				t.Errorf("the server sent\n%s\nthe client got\n%s", strings.Join(sent, "\n"), strings.Join(got, "\n"))
			}
			decidedAs(t, heard(t, with.log), "allow")
		})
	}
}

// TestWebDenied: the client does not see the tool and gets the reason of a denial, and the server gets nothing of the call.
func TestWebDenied(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			v := p.web(t, noSecret)
			sawDenied(t, p, v.said)
			for _, message := range v.server.messages(&v.server.in) {
				if strings.Contains(message, `"name":"secret"`) {
					t.Errorf("the server got %s", message)
				}
			}
			decided(t, heard(t, v.log))
		})
	}
}
