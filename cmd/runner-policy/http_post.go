package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

const methodInitialize = "initialize"

var errBodyTooLong = errors.New("the body is too long")

// exchanging is one HTTP request of a client.
type exchanging struct {
	*httpProxy
	w   http.ResponseWriter
	r   *http.Request
	h   *httpSession
	x   *waiting
	key string // of the request that waits for an answer
	own bool   // the session began with this request and has no name yet
}

// post handles one message of a client.
func (p *httpProxy) post(w http.ResponseWriter, r *http.Request, h *httpSession) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit))
	body, err := readBody(r.Body, p.o.MaxLine)
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil && err != errBodyTooLong {
		return // the message is not complete
	}
	c := &exchanging{httpProxy: p, w: w, r: r, h: h}
	sc := jsonrpc.NewClient()
	var m jsonrpc.Message
	if err == nil {
		body = trimLF(asLine(body))
		if sc.Line(body) == "" {
			m, _ = sc.Message(body)
		}
	}
	if !headersAgree(r.Header, sc, m) {
		http.Error(w, "runner-policy: a header differs from the message", http.StatusBadRequest)
		return
	}
	if h == nil {
		if c.own = m.Kind == jsonrpc.Request && m.Method == methodInitialize; c.own {
			c.h = p.open()
		} else {
			c.h = p.without()
		}
	}
	if c.h == nil {
		http.Error(w, "runner-policy: the decision log cannot be written", http.StatusServiceUnavailable)
		return
	}
	c.x = c.h.begin()
	if m.Kind == jsonrpc.Request {
		c.key = m.ID.Key
	}
	c.handle(body, err != nil)
	c.finish()
}

// finish ends what the end of the HTTP request ends.
func (c *exchanging) finish() {
	outcome := schemas.OutcomeServerGone
	if c.r.Context().Err() != nil {
		outcome = schemas.OutcomeClientGone
	}
	switch {
	case c.own && c.h.id == "":
		c.end(c.h, outcome)
	case c.own:
		c.release(c.h)
	case c.h.loneOnly:
		c.h.close(c.x, outcome)
	}
	if c.h.core.log.Err() != nil {
		c.failed(c.h)
	}
}

func (c *exchanging) handle(body []byte, long bool) {
	var t turn
	if long {
		t = c.h.tooLong(c.x)
	} else {
		t = c.h.fromClient(c.r.Context(), c.x, body)
	}
	if len(t.toServer) == 0 {
		c.key = "" // it never waited, or another request has the id
		c.answerNow(t)
		return
	}
	to := c.upstream
	if c.h.post != nil {
		to = c.h.post
	}
	answer, err := c.send(c.r, to, bytes.NewReader(trimLF(t.toServer[0])))
	if err != nil {
		c.noAnswer(http.StatusBadGateway, "the server cannot be reached")
		return
	}
	defer answer.Body.Close()
	if c.h.post != nil {
		if answer.StatusCode/100 != 2 {
			c.noAnswer(answer.StatusCode, "the server refused the message: "+answer.Status)
			return
		}
		c.w.WriteHeader(http.StatusAccepted)
		return
	}
	if !c.named(answer) {
		c.noAnswer(http.StatusBadGateway, "the server gave a session id that cannot be used")
		return
	}
	c.relayAnswer(answer)
	if answer.StatusCode == http.StatusNotFound && c.h.id != "" {
		c.forget(c.h, schemas.OutcomeServerGone)
	}
}

// answerNow answers a message that the server does not get.
func (c *exchanging) answerNow(t turn) {
	switch {
	case len(t.toClient) == 0 && t.refused:
		http.Error(c.w, "runner-policy: the message was refused", http.StatusBadRequest)
	case len(t.toClient) == 0:
		c.w.WriteHeader(http.StatusAccepted)
	case c.h.stream != nil:
		c.w.WriteHeader(http.StatusAccepted)
		c.h.stream.message(t.toClient[0])
	default:
		c.writeJSON(http.StatusOK, t.toClient[0])
	}
}

func (c *exchanging) writeJSON(status int, line []byte) {
	c.w.Header().Set("Content-Type", jsonBody)
	c.w.WriteHeader(status)
	c.w.Write(line)
}

// noAnswer ends the request in flight, which will have no answer of the server.
func (c *exchanging) noAnswer(status int, why string) {
	line := c.h.gone(c.x, c.key, schemas.OutcomeServerGone, why)
	switch {
	case line == nil:
		http.Error(c.w, "runner-policy: "+why, status)
	case c.h.stream != nil:
		c.w.WriteHeader(http.StatusAccepted)
		c.h.stream.message(line)
	default:
		c.writeJSON(http.StatusOK, line)
	}
}

// named takes the session id that the server gives. It returns false for one that it must
// not give.
func (c *exchanging) named(answer *http.Response) bool {
	ids := answer.Header.Values(sessionHeader)
	if !c.own || len(ids) == 0 {
		answer.Header.Del(sessionHeader) // only the answer to initialize gives one
		return true
	}
	if len(ids) > 1 || ids[0] == "" || !validSession(ids[0]) {
		return false
	}
	c.h.active++ // nobody else has it yet
	return c.keep(c.h, ids[0])
}

// relayAnswer forwards the upstream's answer to a POST.
func (c *exchanging) relayAnswer(answer *http.Response) {
	copyHeaders(c.w.Header(), answer.Header)
	switch kind := mediaType(answer.Header); {
	case kind == eventStream && answer.StatusCode == http.StatusOK:
		out := streamTo(c.w)
		if !c.relay(out, answer.Body) {
			return // the answer may come on another stream
		}
		if line := c.h.gone(c.x, c.key, c.whoLeft(), "the server's stream ended without the answer"); line != nil {
			out.message(line)
		}
	case kind == jsonBody:
		c.relayJSON(answer)
	default:
		if line := c.h.gone(c.x, c.key, schemas.OutcomeError, "the server answered "+answer.Status); line != nil {
			c.writeJSON(notOK(answer.StatusCode), line)
			return
		}
		c.w.WriteHeader(answer.StatusCode)
	}
}

func (c *exchanging) relayJSON(answer *http.Response) {
	body, err := readBody(answer.Body, c.o.MaxLine)
	if err != nil {
		code := schemas.ReasonBadJSON
		if err == errBodyTooLong {
			code = schemas.ReasonTooLong
		}
		c.h.drop(c.x, code)
	}
	var t turn
	if err == nil && len(body) > 0 {
		t = c.h.fromServer(c.x, body)
	}
	c.back(t.toServer)
	left := c.h.gone(c.x, c.key, c.whoLeft(), "the server's answer was not one to this request")
	switch {
	case left != nil:
		c.writeJSON(notOK(answer.StatusCode), left)
	case len(t.toClient) > 0:
		c.writeJSON(answer.StatusCode, t.toClient[0])
	case answer.StatusCode/100 == 2:
		c.w.WriteHeader(http.StatusAccepted)
	default:
		c.w.WriteHeader(answer.StatusCode)
	}
}

// whoLeft is the outcome of a request whose answer did not come.
func (c *exchanging) whoLeft() string {
	if c.r.Context().Err() != nil {
		return schemas.OutcomeClientGone
	}
	return schemas.OutcomeServerGone
}

// back sends the server answers to requests that the client does not get.
func (c *exchanging) back(list [][]byte) {
	for _, line := range list {
		r := c.r.Clone(c.r.Context())
		r.Method = http.MethodPost
		r.Header.Del("Last-Event-ID")
		r.Header.Del("Mcp-Method")
		r.Header.Del("Mcp-Name")
		r.Header.Set("Accept", jsonBody+", "+eventStream)
		var to *url.URL = c.upstream
		if c.h.post != nil {
			to = c.h.post
		}
		if c.h.id != "" && c.h.post == nil {
			r.Header.Set(sessionHeader, c.h.id)
		}
		if answer, err := c.send(r, to, bytes.NewReader(trimLF(line))); err == nil {
			answer.Body.Close()
		}
	}
}

func notOK(status int) int {
	if status/100 == 2 {
		return http.StatusOK
	}
	return status
}

func copyHeaders(to, from http.Header) {
	for _, name := range returned {
		if v := from.Values(name); len(v) > 0 {
			to[name] = v
		}
	}
}

// readBody reads a body up to a limit.
func readBody(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(b) > most {
		err = errBodyTooLong
	}
	return b, err
}
