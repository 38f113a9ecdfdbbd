package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of requests.
const (
	defaultTimeout = 30 * time.Second // of one attempt
	maxAttempts    = 5
	maxAnswer      = 16 << 20               // bytes of an answer
	firstWait      = 200 * time.Millisecond // before the second attempt; twice as long before each further one
	maxWait        = 30 * time.Second       // that a server may ask for
	maxSecret      = 64 << 10               // bytes of a file of --header
)

// keyHeader is the header by which a server knows a request that it has answered before
// (draft-ietf-httpapi-idempotency-key-header).
const keyHeader = "Idempotency-Key"

// sender makes requests. It follows no redirect: where a request goes is what was approved.
type sender struct {
	client  http.Client
	secrets map[string]http.Header // by the host of a URL, with its port if it has one
	wait    func(ctx context.Context, d time.Duration) error
}

// newSender reads the flags --timeout and --header.
func newSender(env *tool.Env) (*sender, error) {
	timeout, err := env.Duration("timeout")
	if err != nil || timeout == 0 {
		return nil, tool.BadValue("timeout", env.Flag.Duration("timeout").String(), "a duration above 0")
	}
	s := &sender{secrets: map[string]http.Header{}, wait: wait}
	s.client = http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, text := range env.Flag.StringSlice("header") {
		host, rest, ok1 := strings.Cut(text, "/")
		name, file, ok2 := strings.Cut(rest, "=@")
		if !ok1 || !ok2 || host == "" || name == "" || file == "" {
			return nil, tool.BadValue("header", text, "HOST/NAME=@FILE, such as api.example/authorization=@token")
		}
		b, err := tool.ReadFile(file, maxSecret)
		if err != nil {
			return nil, err
		}
		value := strings.TrimRight(string(b), "\r\n")
		if value == "" || strings.ContainsAny(value, "\r\n\x00") {
			return nil, tool.Failf(tool.ExitUsage, "--header: %s has not one line", schemas.Text(file))
		}
		host = strings.ToLower(host)
		if s.secrets[host] == nil {
			s.secrets[host] = http.Header{}
		}
		s.secrets[host].Set(name, value)
	}
	return s, nil
}

// message is a request that can be made again.
type message struct {
	method, url, key string
	headers          []schemas.Header
	body             []byte
}

// answer is what a server said.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	attempts int
}

// send makes a request until it is answered for good: what a server may answer otherwise a moment later is tried again. The error wraps
// journal.ErrUnsure if the server may have done what was asked for.
func (s *sender) send(ctx context.Context, m *message) (*answer, error) {
	var failed error
	pause, may := firstWait, false
	for n := 1; ; n++ {
		a, err := s.once(ctx, m)
		may = may || mayBeDone(a, err)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", journal.ErrUnsure, context.Cause(ctx))
		case err == nil && !again(a.status):
			a.attempts = n
			return a, nil
		case err == nil:
			failed = fmt.Errorf("it answered %d", a.status)
		default:
			failed = err
		}
		if n == maxAttempts {
			failed = fmt.Errorf("%s %s: %w, %d times", m.method, m.url, failed, n)
			if may {
				failed = fmt.Errorf("%w: %w", journal.ErrUnsure, failed)
			}
			return nil, failed
		}
		wait := pause
		if a != nil {
			if asked, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && asked >= 0 {
				wait = min(time.Duration(asked)*time.Second, maxWait)
			}
		}
		pause *= 2
		if err := s.wait(ctx, wait); err != nil {
			return nil, fmt.Errorf("%w: %w", journal.ErrUnsure, err)
		}
	}
}

// mayBeDone reports whether a server may have done what was asked for though it did not say so. It has not if there was no connection, or
// or none that is trusted, or if it says that it was too early, too often or that it cannot serve now.
func mayBeDone(a *answer, err error) bool {
	if err != nil {
		var untrusted *tls.CertificateVerificationError
		if errors.As(err, &untrusted) { // of the handshake: nothing was sent
			return false
		}
		var op *net.OpError
		return !errors.As(err, &op) || op.Op != "dial"
	}
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	}
	return again(a.status)
}

// again reports whether a server may answer otherwise a moment later.
func again(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented
}

func (s *sender) once(ctx context.Context, m *message) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, m.method, m.url, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	if m.body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	for _, h := range m.headers {
		req.Header.Set(h.Name, h.Value)
	}
	for name, values := range s.secrets[strings.ToLower(req.URL.Host)] {
		req.Header[name] = values
	}
	if m.key != "" {
		req.Header.Set(keyHeader, m.key)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "runner-gate")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, plainError(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("its answer ended early: %w", err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return &answer{status: res.StatusCode, header: res.Header, body: body}, nil
}

// plainError is an error of the client without the request, which the caller names.
func plainError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
