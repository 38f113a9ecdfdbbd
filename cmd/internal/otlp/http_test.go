package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// server answers with one handler after the other; the last one goes on.
func server(t *testing.T, handlers ...http.HandlerFunc) (*httptest.Server, *int) {
	n := new(int)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || string(b) != "{}\n" || r.URL.Path != "/base/v1/logs" || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "secret" {
			t.Errorf("%s %s %v: %q, %v", r.Method, r.URL, r.Header, b, err)
		}
		h := handlers[min(*n, len(handlers)-1)]
		*n++
		h(w, r)
	}))
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s, n
}

func status(code int, header, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(code)
		io.WriteString(w, text)
	}
}

// cut ends the connection: before an answer, or in it.
func cut(in bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		if in {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"partial")
		}
		c.Close()
	}
}

func post(url string, slept *[]time.Duration) (Answer, *Client, error) {
	c := &Client{URL: url + "/base/", Header: http.Header{"X-Key": {"secret"}}, HTTP: &http.Client{Timeout: 5 * time.Second}, RetryFor: time.Minute,
		Sleep: func(ctx context.Context, d time.Duration) error { *slept = append(*slept, d); return ctx.Err() }}
	a, err := c.Post(context.Background(), Logs, []byte("{}\n"))
	return a, c, err
}

// TestPost: what the OTLP specification says to try again is tried again, and nothing else.
func TestPost(t *testing.T) {
	ok := status(200, "", `{"partialSuccess":{}}`)
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		tries    int
		fails    string // of the error
		rejected uint64
		message  string
	}{
		"taken":             {handlers: []http.HandlerFunc{ok}, tries: 1},
		"taken, no JSON":    {handlers: []http.HandlerFunc{status(200, "", "fine")}, tries: 1},
		"429 then taken":    {handlers: []http.HandlerFunc{status(429, "", ""), ok}, tries: 2},
		"502, 503, 504":     {handlers: []http.HandlerFunc{status(502, "", ""), status(503, "", ""), status(504, "", ""), ok}, tries: 4},
		"cut":               {handlers: []http.HandlerFunc{cut(false), cut(true), ok}, tries: 3},
		"bad":               {handlers: []http.HandlerFunc{status(400, "", "bad \x1b[2J\xff data")}, tries: 1, fails: `answered 400: "bad \x1b[2J� data"`},
		"unauthorized":      {handlers: []http.HandlerFunc{status(401, "5", "")}, tries: 1, fails: "answered 401"},
		"500 is final":      {handlers: []http.HandlerFunc{status(500, "", "")}, tries: 1, fails: "answered 500"},
		"a redirect":        {handlers: []http.HandlerFunc{status(302, "", "")}, tries: 1, fails: "302"},
		"never":             {handlers: []http.HandlerFunc{status(503, "", "busy")}, tries: 5, fails: "given up after"},
		"asks for too long": {handlers: []http.HandlerFunc{status(429, "3600", "")}, tries: 1, fails: "given up after 1 tries"},
		"partial":           {handlers: []http.HandlerFunc{status(200, "", `{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"no\u202e room"}}`)}, tries: 1, rejected: 3, message: `"no\u202e room"`},
		"a number":          {handlers: []http.HandlerFunc{status(200, "", `{"partialSuccess":{"rejectedSpans":2}}`)}, tries: 1, rejected: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := server(t, c.handlers...)
			var slept []time.Duration
			a, client, err := post(s.URL, &slept)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if name == "never" && *n > 5 {
				c.tries = *n // the backoff has a random part
			}
			if *n != c.tries || a.Rejected != c.rejected || c.message != "" && a.Message != c.message || int(client.Retries) != *n-1 {
				t.Errorf("%d tries, %d counted, %+v", *n, client.Retries, a)
			}
			total := time.Duration(0)
			for _, d := range slept {
				total += d
			}
			if total > time.Minute {
				t.Errorf("slept %v", slept)
			}
		})
	}
}

// TestRetryAfter: the endpoint's own time counts, in both forms.
func TestRetryAfter(t *testing.T) {
	s, _ := server(t, status(503, "7", ""), status(429, time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat), ""), status(200, "", ""))
	var slept []time.Duration
	if _, _, err := post(s.URL, &slept); err != nil || len(slept) != 2 || slept[0] != 7*time.Second || slept[1] < 15*time.Second || slept[1] > 21*time.Second {
		t.Errorf("%v, %v", slept, err)
	}
}

// TestNobody: a port where nobody listens is tried until the time is over.
func TestNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	url := "http://" + l.Addr().String()
	l.Close()
	var slept []time.Duration
	if _, _, err := post(url, &slept); err == nil || !strings.Contains(err.Error(), "given up after") || len(slept) < 2 {
		t.Errorf("%v, %v", slept, err)
	}
}

// TestTLS: a certificate that is not trusted gets nothing of the record, and is not tried again.
func TestTLS(t *testing.T) {
	got := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got++; io.WriteString(w, "{}") }))
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	c := &Client{URL: s.URL, HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}, RetryFor: time.Minute}
	if _, err := c.Post(context.Background(), Traces, []byte("{}")); err == nil || got > 0 || c.Retries > 0 {
		t.Errorf("%v, %d requests, %d tries more", err, got, c.Retries)
	}
	c.HTTP = s.Client()
	if _, err := c.Post(context.Background(), Traces, []byte("{}")); err != nil || got != 1 {
		t.Errorf("%v, %d requests", err, got)
	}
}

// TestInterrupted: an interrupt ends the waiting.
func TestInterrupted(t *testing.T) {
	s, _ := server(t, status(503, "30", ""))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	c := &Client{URL: s.URL + "/base", Header: http.Header{"X-Key": {"secret"}}, HTTP: s.Client(), RetryFor: time.Minute}
	start := time.Now()
	if _, err := c.Post(ctx, Logs, []byte("{}\n")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
