package main

import (
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/runner-evidence/runner/schemas"
)

// get handles a stream of the server's messages: that of a session, one that goes on after
// Last-Event-ID, or that of the older transport, whose first event is its endpoint.
func (p *httpProxy) get(w http.ResponseWriter, r *http.Request, h *httpSession) {
	answer, err := p.send(r, p.upstream, nil)
	if err != nil {
		http.Error(w, "runner-policy: the server cannot be reached", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	answer.Header.Del(sessionHeader)
	copyHeaders(w.Header(), answer.Header)
	if answer.StatusCode != http.StatusOK || mediaType(answer.Header) != eventStream {
		status := answer.StatusCode
		if status/100 == 2 {
			status = http.StatusBadGateway
		}
		w.WriteHeader(status)
		return
	}
	c := &exchanging{httpProxy: p, w: w, r: r, h: h}
	events := newEventReader(answer.Body, p.o.MaxLine)
	out := streamTo(w)
	if h == nil {
		ev, err := events.next()
		for err == nil && ev.comment {
			out.send(ev)
			ev, err = events.next()
		}
		switch {
		case err != nil:
			return
		case ev.name == "endpoint":
			c.older(out, events, ev)
			return
		}
		if c.h = p.without(); c.h == nil {
			return
		}
		c.x = c.h.begin()
		if c.one(out, ev) {
			c.relayEvents(out, events)
		}
		c.finish()
		return
	}
	c.x = h.begin()
	c.relayEvents(out, events)
}

// older is a session of the HTTP+SSE transport of 2024-11-05: the server says where it wants
// messages, and the client learns our address with a name that nobody can guess instead.
func (c *exchanging) older(out *eventWriter, events *eventReader, ev event) {
	to := endpointURL(c.upstream, ev.data)
	if c.h = c.open(); c.h == nil {
		return
	}
	if to == nil {
		c.h.drop(c.h.begin(), schemas.ReasonNotJSONRPC)
		c.end(c.h, schemas.OutcomeServerGone)
		return
	}
	c.h.post, c.h.stream = to, out
	c.h.active = 1
	c.x = c.h.begin()
	token := newToken()
	if !c.keep(c.h, "older "+token) {
		c.end(c.h, schemas.OutcomeServerGone)
		return
	}
	query := url.Values{sessionQuery: {token}}
	at := url.URL{Path: c.upstream.Path, RawQuery: query.Encode()}
	if out.send(event{name: "endpoint", data: []byte(at.String()), hasData: true}) {
		c.relayEvents(out, events)
	}
	c.forget(c.h, c.whoLeft())
}

// relay forwards the events of an answer. It returns false if the request can still be
// answered on another stream, because this one can be resumed.
func (c *exchanging) relay(out *eventWriter, body io.Reader) bool {
	resumable := c.relayEvents(out, newEventReader(body, c.o.MaxLine))
	return !resumable || c.h.loneOnly || c.own && c.h.id == ""
}

// relayEvents forwards events until one side ends. It reports whether the stream can be
// resumed: an event had an id.
func (c *exchanging) relayEvents(out *eventWriter, events *eventReader) (resumable bool) {
	for {
		ev, err := events.next()
		if err == errEventTooLong {
			c.h.drop(c.x, schemas.ReasonTooLong)
		}
		if err != nil {
			return resumable
		}
		resumable = resumable || ev.hasID && ev.id != ""
		if !c.one(out, ev) {
			return resumable
		}
	}
}

// one forwards one event.
func (c *exchanging) one(out *eventWriter, ev event) bool {
	if len(ev.id) > maxSessionID {
		ev.id, ev.hasID = "", false
	}
	if ev.comment || len(ev.data) == 0 {
		ev.name = ""
		return out.send(ev)
	}
	if ev.name != "" && ev.name != "message" {
		c.h.drop(c.x, schemas.ReasonNotJSONRPC)
		return true
	}
	t := c.h.fromServer(c.x, ev.data)
	c.back(t.toServer)
	for i, line := range t.toClient {
		next := event{name: ev.name, data: trimLF(line), hasData: true}
		if i == 0 {
			next.id, next.hasID, next.retry = ev.id, ev.hasID, ev.retry
		}
		if !out.send(next) {
			return false
		}
	}
	return true
}

// delete ends a session if the server ends it.
func (p *httpProxy) delete(w http.ResponseWriter, r *http.Request, h *httpSession) {
	if h == nil || h.post != nil {
		http.Error(w, "runner-policy: no session", http.StatusBadRequest)
		return
	}
	answer, err := p.send(r, p.upstream, nil)
	if err != nil {
		http.Error(w, "runner-policy: the server cannot be reached", http.StatusBadGateway)
		return
	}
	answer.Body.Close()
	if answer.StatusCode/100 == 2 || answer.StatusCode == http.StatusNotFound {
		p.forget(h, schemas.OutcomeClientGone)
	}
	w.WriteHeader(answer.StatusCode)
}

func mediaType(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind
}
