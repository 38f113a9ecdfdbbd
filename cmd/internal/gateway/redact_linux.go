package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// kept are the headers of requests whose values are recorded. All others can be secrets.
var kept = []string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Length", "Content-Range", "Content-Type", "Date", "Expect", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	"Last-Event-Id", "Mcp-Protocol-Version", "Origin", "Pragma", "Range", "Te", "Trailer", "User-Agent", "Vary", "X-Requested-With",
	"Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "Git-Protocol",
}

// secret are the headers of answers whose values are not recorded.
var secret = []string{"Set-Cookie", "Set-Cookie2", "Authorization", "Proxy-Authorization", "Authentication-Info", "Proxy-Authentication-Info", "X-Amz-Security-Token"}

// requestHeaders are the headers of a request as the record has them.
func (g *Gateway) requestHeaders(h http.Header) []schemas.NetHeader {
	return g.headers(h, func(name string) bool {
		return g.named(kept, name) && !g.named(g.c.Redact.Take, name) || g.named(g.c.Redact.Keep, name)
	})
}

// responseHeaders are those of an answer.
func (g *Gateway) responseHeaders(h http.Header) []schemas.NetHeader {
	return g.headers(h, func(name string) bool {
		return !g.named(secret, name) && !g.named(g.c.Redact.Take, name) || g.named(g.c.Redact.Keep, name)
	})
}

// trailers adds trailers to a message. False: there is no room for them, and the message is without them.
func (g *Gateway) trailers(m *schemas.NetMessage, h http.Header) bool {
	m.Trailers = g.responseHeaders(h)
	if !fits(m) {
		m.Trailers = nil
		return false
	}
	return true
}

// errLong is an answer that no line of the record has room for.
var errLong = errors.New("the header of the answer is longer than can be recorded")

// fits reports whether what is recorded of one side of an exchange leaves room in a line for the other.
func fits(side any) bool {
	const most = stream.MaxLine/2 - 4096
	b, err := schemas.Marshal(side)
	return err == nil && len(b) <= most
}

func (g *Gateway) named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
}

func (g *Gateway) headers(h http.Header, keep func(string) bool) (list []schemas.NetHeader) {
	for name, values := range h {
		if slices.Contains(hop, name) {
			continue
		}
		for _, v := range values {
			if !keep(name) {
				v = g.redact(v)
			}
			list = append(list, schemas.NetHeader{Name: schemas.Text(name), Value: schemas.Text(v)})
		}
	}
	slices.SortStableFunc(list, func(a, b schemas.NetHeader) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// redact is what stands for a value: with a key, a digest that its owner can compare.
func (g *Gateway) redact(v string) string {
	g.mu.Lock()
	g.redacted++
	g.mu.Unlock()
	return string(g.c.Redact.Key.Mark(schemas.RedactHeader, []byte(v)))
}

// query is a query without the secrets that the rules for arguments find in it.
func (g *Gateway) query(q string) string {
	if q == "" {
		return ""
	}
	out := strings.TrimPrefix(arguments.Redact([][]byte{[]byte("http://h/?" + q)}, g.c.Redact.Key)[0], "http://h/?")
	if out != schemas.Text(q) {
		g.mu.Lock()
		g.redacted++
		g.mu.Unlock()
	}
	return out
}
