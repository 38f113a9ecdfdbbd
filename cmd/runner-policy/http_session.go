package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

// httpSession is one session of the protocol, or all exchanges of clients that have none.
// What decides a message is the session of stdio; it knows nothing of HTTP. One message
// is handled at a time, so what it writes belongs to that message.
type httpSession struct {
	mu     sync.Mutex
	core   *session
	client *jsonrpc.Scanner
	server *serverReader
	shared *waiting // requests in flight of a session
	ended  bool

	id       string   // "" without a session
	post     *url.URL // where the client's messages go: the older transport
	stream   *eventWriter
	active   int // protected by the proxy's lock, as is used
	used     time.Time
	loneOnly bool // no session: each exchange has requests of its own
}

// waiting is the requests that wait for an answer on the same streams.
type waiting struct{ inFlight, asked *inFlight }

func newWaiting() *waiting { return &waiting{newInFlight(), newInFlight()} }

// turn is what a message led to.
type turn struct {
	toClient, toServer [][]byte
	refused            bool
}

// lines keeps what is written, line by line.
type lines struct{ list *[][]byte }

func (l lines) Write(b []byte) (int, error) {
	*l.list = append(*l.list, bytes.Clone(b))
	return len(b), nil
}

func newHTTPSession(core *session) *httpSession {
	return &httpSession{core: core, client: jsonrpc.NewClient(), used: time.Now(), shared: newWaiting(),
		server: &serverReader{session: core, sc: jsonrpc.NewServer()}}
}

// start writes the first line of the log. There is no process of a server.
func (h *httpSession) start() bool {
	c := h.core
	denies, cut := c.by.engine.Denies()
	return c.log.started(c.o.Name, c.by.digest, c.dir, denies, cut, os.Getpid(), 0)
}

// begin is where the requests of one HTTP exchange wait.
func (h *httpSession) begin() *waiting {
	if h.loneOnly {
		return newWaiting()
	}
	return h.shared
}

// handle lets the core handle one message.
func (h *httpSession) handle(x *waiting, f func()) (t turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return turn{refused: true}
	}
	c, refused := h.core, h.core.log.Counts().Refused
	c.inFlight, c.asked = x.inFlight, x.asked
	if h.loneOnly {
		c.deniedIDs = nil
		x.inFlight.rounds, x.inFlight.states = h.shared.inFlight.rounds, h.shared.inFlight.states
	}
	c.client, c.server = lines{&t.toClient}, lines{&t.toServer}
	f()
	if h.loneOnly {
		h.shared.inFlight.states = x.inFlight.states
	}
	t.refused = c.log.Counts().Refused != refused || c.log.Err() != nil
	return t
}

// fromClient handles a message of the client.
func (h *httpSession) fromClient(ctx context.Context, x *waiting, body []byte) turn {
	return h.handle(x, func() { h.core.fromClient(ctx, h.client, asLine(body)) })
}

// fromServer handles a message of the server.
func (h *httpSession) fromServer(x *waiting, body []byte) turn {
	return h.handle(x, func() { h.server.line(asLine(body)) })
}

// drop records a message of the server that is not forwarded.
func (h *httpSession) drop(x *waiting, code string) {
	h.handle(x, func() { h.core.log.messageRefused(fromServerSide, code) })
}

// tooLong records a message of the client that is not forwarded.
func (h *httpSession) tooLong(x *waiting) turn {
	return h.handle(x, func() { h.core.refuse(jsonrpc.NullID, schemas.ReasonTooLong, true) })
}

// gone ends a request that will never be answered. The result is what the client gets.
func (h *httpSession) gone(x *waiting, key, outcome, why string) (answer []byte) {
	h.handle(x, func() {
		e := x.inFlight.answered(key)
		if key == "" || e == nil {
			return
		}
		if e.cancelled {
			outcome = schemas.OutcomeClientGone
		}
		h.core.finish(e, now(), outcome)
		answer = goneAnswer(e.id, why)
	})
	return answer
}

// close ends all requests of an exchange.
func (h *httpSession) close(x *waiting, outcome string) {
	h.handle(x, func() {
		end := now()
		for _, e := range append(x.inFlight.drain(), x.asked.drain()...) {
			h.core.finish(e, end, outcome)
		}
	})
}

// end writes the last lines of the log.
func (h *httpSession) end(outcome string) {
	h.close(h.shared, outcome)
	h.handle(h.shared, func() {
		for _, e := range h.core.tasks.drain() {
			h.core.finish(e, now(), outcome)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.ended = true
	h.core.log.Ended(now(), nil, nil)
}

// asLine is a message as one line: line breaks between the parts of JSON become blanks. A
// line break in a string stays, and is refused as on stdio.
func asLine(body []byte) []byte {
	line, inString, escaped := append(bytes.Clone(body), '\n'), false, false
	for i, c := range body {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == '\n' || c == '\r'):
			line[i] = ' '
		}
	}
	return line
}
