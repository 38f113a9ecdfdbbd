package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/runner-evidence/runner/schemas"
)

const (
	maxSessions  = 1024
	maxExchanges = 1024 // HTTP requests at one time
	bodyLimit    = time.Minute
)

// httpProxy forwards messages between clients and one server over HTTP.
type httpProxy struct {
	o          Options
	upstream   *url.URL
	host, port string
	client     *http.Client
	core       func() *session
	over       context.Context
	stop       context.CancelFunc

	mu        sync.Mutex
	sessions  map[string]*httpSession
	lone      *httpSession // of clients without a session
	exchanges int
	err       error // of the log
}

func newHTTPProxy(o Options, host string, at net.Addr, core func() *session) *httpProxy {
	p := &httpProxy{o: o, upstream: o.HTTP.Upstream, host: host, core: core, client: upstreamClient(), sessions: map[string]*httpSession{}}
	_, p.port, _ = net.SplitHostPort(at.String())
	p.over, p.stop = context.WithCancel(context.Background())
	return p
}

func (p *httpProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, why := p.guard(r); status != 0 {
		http.Error(w, "runner-policy: "+why, status)
		return
	}
	if !p.enter() {
		http.Error(w, "runner-policy: too many requests at one time", http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.over, cancel)()
	r = r.WithContext(ctx)
	h, status := p.find(r)
	if status != 0 {
		http.Error(w, "runner-policy: no such session", status)
		return
	}
	if h != nil {
		defer p.release(h)
	}
	switch r.Method {
	case http.MethodPost:
		p.post(w, r, h)
	case http.MethodGet:
		p.get(w, r, h)
	default:
		p.delete(w, r, h)
	}
}

func (p *httpProxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exchanges >= maxExchanges {
		return false
	}
	p.exchanges++
	return true
}

func (p *httpProxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges--
}

// find returns the session that a request names, or nil. Its caller releases it.
func (p *httpProxy) find(r *http.Request) (*httpSession, int) {
	key := r.Header.Get(sessionHeader)
	if token := r.URL.Query().Get(sessionQuery); token != "" && r.Method == http.MethodPost {
		key = "older " + token // no session id has a blank
	}
	if key == "" {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.sessions[key]
	if h == nil {
		return nil, http.StatusNotFound
	}
	h.active++
	return h, 0
}

func (p *httpProxy) release(h *httpSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.active--
	h.used = time.Now()
}

// open begins the log of a new session; nil if the log takes no line.
func (p *httpProxy) open() *httpSession {
	h := newHTTPSession(p.core())
	if !h.start() {
		p.failed(h)
		return nil
	}
	return h
}

func (p *httpProxy) failed(h *httpSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = h.core.log.Err()
	}
}

func (p *httpProxy) logError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// without is the session of clients that have none.
func (p *httpProxy) without() *httpSession {
	p.mu.Lock()
	h := p.lone
	p.mu.Unlock()
	if h != nil {
		return h
	}
	if h = p.open(); h == nil {
		return nil
	}
	h.loneOnly = true
	p.mu.Lock()
	other := p.lone
	if other == nil {
		p.lone = h
	}
	p.mu.Unlock()
	if other != nil {
		p.end(h, schemas.OutcomeClientGone)
		return other
	}
	return h
}

// keep gives a session its name. It returns false if the server gave another client the
// same one, or if there are too many that are in use.
func (p *httpProxy) keep(h *httpSession, id string) bool {
	p.mu.Lock()
	if p.sessions[id] != nil {
		p.mu.Unlock()
		return false
	}
	var idle *httpSession
	if len(p.sessions) >= maxSessions {
		for _, s := range p.sessions {
			if s.active == 0 && (idle == nil || s.used.Before(idle.used)) {
				idle = s
			}
		}
		if idle == nil {
			p.mu.Unlock()
			return false
		}
		delete(p.sessions, idle.id)
	}
	h.id, p.sessions[id] = id, h
	p.mu.Unlock()
	if idle != nil {
		p.end(idle, schemas.OutcomeClientGone)
	}
	return true
}

// forget ends a session.
func (p *httpProxy) forget(h *httpSession, outcome string) {
	p.mu.Lock()
	if p.sessions[h.id] == h {
		delete(p.sessions, h.id)
	}
	p.mu.Unlock()
	p.end(h, outcome)
}

func (p *httpProxy) end(h *httpSession, outcome string) {
	h.end(outcome)
	if h.core.log.Err() != nil {
		p.failed(h)
	}
}

// endAll ends what the end of the proxy ends.
func (p *httpProxy) endAll() {
	p.mu.Lock()
	var all []*httpSession
	for _, h := range p.sessions {
		all = append(all, h)
	}
	if p.lone != nil {
		all = append(all, p.lone)
	}
	clear(p.sessions)
	p.mu.Unlock()
	for _, h := range all {
		p.end(h, schemas.OutcomeClientGone)
	}
}

// send makes a request of the upstream with the client's headers.
func (p *httpProxy) send(r *http.Request, to *url.URL, body io.Reader) (*http.Response, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, to.String(), body)
	if err != nil {
		return nil, err
	}
	for _, name := range forwarded {
		out.Header[name] = r.Header.Values(name)
		if len(out.Header[name]) == 0 {
			delete(out.Header, name)
		}
	}
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Set("User-Agent", "runner-policy")
	if body != nil {
		out.Header.Set("Content-Type", jsonBody)
	}
	answer, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	if code := answer.Header.Get("Content-Encoding"); answer.StatusCode/100 == 3 || code != "" && code != "identity" {
		answer.Body.Close()
		return nil, errors.New("the upstream redirects or encodes, which is not followed")
	}
	return answer, nil
}

func newToken() string { return rand.Text() }
