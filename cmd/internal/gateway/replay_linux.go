package gateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// prepare makes the queues of a recording. What has no request that could be asked again is not in them.
func (g *Gateway) prepare(r *exchange.Recording) {
	g.waiting = map[string][]*schemas.NetExchange{}
	for _, e := range r.Exchanges {
		if e.Scheme == schemas.NetTCP || e.Method == "" || e.Decision == schemas.NetMiss {
			continue
		}
		key := exchange.Key(e, g.c.Match)
		g.waiting[key] = append(g.waiting[key], e)
		g.unused++
	}
}

// next takes the next answer of a key. nil: there is none, or none any more; then the nearest recording is returned too. What came
// of a request that was cut can be all of another one: only one that was cut, too, is the same.
func (g *Gateway) next(line *schemas.NetExchange) (e, nearest *schemas.NetExchange) {
	key := exchange.Key(line, g.c.Match)
	g.mu.Lock()
	defer g.mu.Unlock()
	if list := g.waiting[key]; len(list) > 0 && (line.Failure == "" || line.Failure == list[0].Failure) {
		g.waiting[key] = list[1:]
		g.unused--
		return list[0], nil
	}
	for _, e := range g.c.Replay.Exchanges {
		if e.Method != "" && (nearest == nil || exchange.Distance(line, e) < exchange.Distance(line, nearest)) {
			nearest = e
		}
	}
	return nil, nearest
}

// replay answers a request from the recording, and never from the network.
func (q *request) replay() {
	line := q.e.line
	if _, err := io.Copy(q.sent, q.r.Body); err != nil {
		line.Failure = schemas.NetClientCut
	}
	line.Request = q.sentMessage()
	e, nearest := q.g.next(line)
	if e == nil {
		line.Decision, line.Status = schemas.NetMiss, schemas.NetOwnStatus(schemas.NetMiss, line.Failure)
		q.say(schemas.NetMiss, q.miss(nearest))
		return
	}
	line.Decision, line.Rule, line.Status, line.Failure, line.Response = schemas.NetReplay, e.Rule, e.Status, e.Failure, e.Response
	if e.Response == nil {
		if e.Status != 0 { // the gateway answered, and does so again
			header, text := ownAnswer(e)
			q.say(header, text)
			return
		}
		panic(http.ErrAbortHandler) // nothing came
	}
	q.play(e)
}

// miss says which recording is the nearest, and how it differs.
func (q *request) miss(nearest *schemas.NetExchange) string {
	line := q.e.line
	text := fmt.Sprintf("runner-net: no recording answers %s %s", line.Method, exchange.URL(line))
	if nearest == nil {
		return text + "; there are none"
	}
	if exchange.Key(line, q.g.c.Match) == exchange.Key(nearest, q.g.c.Match) {
		return text + " once more: all of them were used"
	}
	text += fmt.Sprintf("; the nearest is %s %s", nearest.Method, exchange.URL(nearest))
	if line.Request.SHA256 != nearest.Request.SHA256 {
		text += fmt.Sprintf(", with a body of %d bytes instead of %d", nearest.Request.Bytes, line.Request.Bytes)
		if line.Request.Bytes == nearest.Request.Bytes {
			text += ", which are others"
		}
	}
	return text
}

// play writes a recorded answer.
func (q *request) play(e *schemas.NetExchange) {
	m := e.Response
	body, err := q.g.c.Replay.Body(m)
	if err != nil {
		q.g.fail(fmt.Errorf("reading the recording: %w", err))
		panic(http.ErrAbortHandler)
	}
	defer body.Close()
	h := q.w.Header()
	h["Date"], h["Content-Type"] = nil, nil
	for _, x := range m.Headers {
		if value := bytesOf(x.Value); !strings.Contains(value, schemas.RedactionMark) {
			h[x.Name] = append(h[x.Name], value)
		}
	}
	for _, x := range m.Trailers {
		if !slices.Contains(h.Values("Trailer"), x.Name) {
			h.Add("Trailer", x.Name)
		}
	}
	q.w.WriteHeader(int(e.Status))
	got, client := q.g.body(), &tool.Willing{W: q.w}
	if _, err := io.Copy(io.MultiWriter(client, got), body); err != nil {
		q.g.fail(fmt.Errorf("reading the recording: %w", err))
	}
	got.message()
	if client.Err != nil && e.Failure == "" {
		q.e.line.Failure = schemas.NetClientCut
	}
	for _, x := range m.Trailers {
		h[x.Name] = append(h[x.Name], bytesOf(x.Value))
	}
	if e.Failure == schemas.NetServerCut {
		http.NewResponseController(q.w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// bytesOf is the bytes of a text.
func bytesOf(text string) string {
	b, err := schemas.Untext(text)
	if err != nil {
		return text
	}
	return string(b)
}
