package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// What a server cannot have done is not said to be in doubt, and what it may have done is.
func TestUnsure(t *testing.T) {
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	nobody := "http://" + l.Addr().String()
	l.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	for name, c := range map[string]struct {
		url    string
		unsure bool
	}{
		"nobody listens":            {nobody, false},
		"an untrusted certificate":  {untrusted.URL, false},
		"too often":                 {status(http.StatusTooManyRequests), false},
		"cannot serve now":          {status(http.StatusServiceUnavailable), false},
		"an error of the server":    {status(http.StatusInternalServerError), true},
		"an error of a gateway":     {status(http.StatusBadGateway), true},
		"a connection that was cut": {cut.URL, true},
	} {
		s := &sender{client: http.Client{Timeout: 5 * time.Second}, wait: func(context.Context, time.Duration) error { return nil }}
		_, err := s.send(t.Context(), &message{method: http.MethodPost, url: c.url, key: "k", body: []byte("x")})
		if err == nil || errors.Is(err, journal.ErrUnsure) != c.unsure {
			t.Errorf("%s: %v", name, err)
		}
	}
}
