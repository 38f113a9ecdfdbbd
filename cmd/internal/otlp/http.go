package otlp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of sending.
const (
	maxAnswer    = 64 << 10 // bytes of an answer that are read
	maxMessage   = 300      // bytes of it that are told
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// Client sends requests to an endpoint by OTLP/HTTP.
type Client struct {
	URL      string // without the path of a signal
	Header   http.Header
	HTTP     *http.Client
	RetryFor time.Duration                              // for all tries of one request
	Sleep    func(context.Context, time.Duration) error // nil: the real one

	Retries uint64
}

// Answer is what an endpoint says of a request that it took.
type Answer struct {
	Rejected uint64 // records that it did not take
	Message  string // why, or a warning
}

// Post sends a request until it is taken or refused. Statuses that the specification calls retryable, and
// connections that fail, are tried again, not longer than RetryFor.
func (c *Client) Post(ctx context.Context, signal Signal, request []byte) (Answer, error) {
	start, backoff := time.Now(), firstBackoff
	slept := time.Duration(0)
	for tries := 1; ; tries++ {
		answer, wait, err := c.try(ctx, signal, request)
		var again *retryable
		if err == nil || !errors.As(err, &again) || ctx.Err() != nil {
			return answer, err
		}
		if wait == 0 {
			wait = backoff/2 + rand.N(backoff/2+1) // what fails together is not tried together again
			backoff = min(2*backoff, lastBackoff)
		}
		if slept = max(slept, time.Since(start)); slept+wait > c.RetryFor {
			return answer, fmt.Errorf("given up after %d tries of this request (--retry-for %s): %w", tries, c.RetryFor, err)
		}
		slept += wait
		c.Retries++
		if err := c.sleep(ctx, wait); err != nil {
			return answer, err
		}
	}
}

// retryable is an error after which the specification lets a client try again.
type retryable struct{ error }

func (r *retryable) Unwrap() error { return r.error }

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// try sends a request once. wait is what the endpoint asks for before the next try; 0 is nothing.
func (c *Client) try(ctx context.Context, signal Signal, request []byte) (a Answer, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/v1/"+signal.Name, bytes.NewReader(request))
	if err != nil {
		return a, 0, err
	}
	for k, v := range c.Header {
		r.Header[k] = v
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(r)
	if stranger := (*tls.CertificateVerificationError)(nil); errors.As(err, &stranger) || errors.Is(err, http.ErrSchemeMismatch) {
		return a, 0, err // the next try would meet the same endpoint
	}
	if err != nil {
		return a, 0, &retryable{err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 == 2 {
		if err != nil {
			return a, 0, &retryable{fmt.Errorf("the answer was cut: %w", err)}
		}
		return success(body), 0, nil
	}
	err = fmt.Errorf("the endpoint answered %d: %s", resp.StatusCode, short(body))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return a, retryAfter(resp.Header.Get("Retry-After"), time.Now()), &retryable{err}
	}
	return a, 0, &Refused{err}
}

// Refused is the error about a request that an endpoint does not want again.
type Refused struct{ error }

func (r *Refused) Unwrap() error { return r.error }

// success reads the answer to a request that was taken. Answers of no known form say nothing.
func success(body []byte) (a Answer) {
	var r struct {
		PartialSuccess struct {
			Spans   any `json:"rejectedSpans"`
			Logs    any `json:"rejectedLogRecords"`
			Message any `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(body, &r) != nil {
		return a
	}
	for _, v := range []any{r.PartialSuccess.Spans, r.PartialSuccess.Logs} { // 64-bit numbers are texts in OTLP/JSON
		if n, err := strconv.ParseUint(fmt.Sprint(v), 10, 32); err == nil {
			a.Rejected += n
		}
	}
	if text, ok := r.PartialSuccess.Message.(string); ok { // what is no text does not hide the numbers
		a.Message = short([]byte(text))
	}
	return a
}

// retryAfter reads seconds or a date; 0 is neither.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 31); err == nil {
		return max(time.Duration(n)*time.Second, time.Millisecond)
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(t.Sub(now), time.Millisecond)
	}
	return 0
}

// short is the beginning of what an endpoint says.
func short(b []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(b), "�"))
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return strconv.QuoteToGraphic(s)
}
