package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/schemas"
)

// Header that the gateway's own answers have. Its value is the decision, or the failure.
const ownHeader = "X-Runner-Net"

// entry is an exchange that goes on.
type entry struct {
	line    *schemas.NetExchange
	arrival int
}

// begin begins an exchange.
func (g *Gateway) begin(scheme string, o *origin) *entry {
	e := &entry{line: &schemas.NetExchange{Schema: schemas.SchemaNetExchange, RunID: g.c.RunID, Scheme: scheme, Host: schemas.Text(o.host), Port: o.to.Port(), Address: o.to.Addr().Unmap().String()}}
	g.mu.Lock()
	defer g.mu.Unlock()
	e.arrival = len(g.exchanges)
	g.exchanges = append(g.exchanges, nil) // equal requests keep the order in which they began
	return e
}

// end adds an exchange to the record.
func (g *Gateway) end(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.exchanges[e.arrival] = e.line
}

// request is a request that the server got.
type request struct {
	g    *Gateway
	w    http.ResponseWriter
	r    *http.Request
	o    *origin
	e    *entry
	sent *body
	host string // where it goes
}

// serve handles one request.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		panic(http.ErrAbortHandler)
	}
	defer g.handlers.Done()
	q := &request{g: g, w: w, r: r, o: r.Context().Value(originKey{}).(*origin), sent: g.body()}
	q.o.read.Add(1)
	q.o.busy.Store(true)
	q.o.two.Store(r.ProtoMajor == 2)
	scheme := schemas.NetHTTP
	if q.o.tls {
		scheme = schemas.NetHTTPS
	}
	q.host = hostOf(r, q.o)
	q.e = g.begin(scheme, &origin{to: q.o.to, host: q.host})
	defer g.end(q.e)
	line := q.e.line
	path, clear := pathOf(r)
	line.Method, line.Path, line.Query = schemas.Text(r.Method), schemas.Text(path), g.query(r.URL.RawQuery)
	line.Request.Headers = g.requestHeaders(r.Header)
	if !fits(line) {
		q.tooLong()
		return
	}
	rule := g.c.Rules.Decide(allow.Request{Host: q.host, Port: q.o.to.Port(), Method: r.Method, Path: path})
	switch {
	case g.c.Replay != nil:
		q.replay()
	case upgrades(r):
		line.Failure = schemas.NetUpgrade
		q.own()
	case !clear:
		line.Failure = schemas.NetNotHTTP
		q.own()
	case rule == nil:
		q.own()
	default:
		line.Decision, line.Rule = schemas.NetAllow, rule.ID
		q.forward()
	}
}

// pathOf is the path that a request asks for, in the form in which it is passed on. False: it asks for something that is no path
// (GET http:x), of which servers make different ones.
func pathOf(r *http.Request) (path string, clear bool) {
	switch path = r.URL.EscapedPath(); {
	case r.URL.Opaque != "":
		return r.URL.Opaque, false
	case path == "" && r.Method == http.MethodConnect:
		return "*", true
	case path == "": // GET http://host
		return "/", true
	}
	return path, true
}

// hostOf is the host that a request is for: what it says itself, and else where its connection went.
func hostOf(r *http.Request, o *origin) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = lower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	if host == "" {
		return o.host
	}
	return host
}

// upgrades reports whether a request asks for another protocol.
func upgrades(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return true
	}
	for _, v := range r.Header.Values("Connection") {
		for word := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "upgrade") {
				return !strings.EqualFold(r.Header.Get("Upgrade"), "h2c") // which is only offered
			}
		}
	}
	return false
}

// own answers in place of the server. All that the client has to send is read, and recorded.
func (q *request) own() {
	line := q.e.line
	line.Decision = schemas.NetDeny
	if _, err := io.Copy(q.sent, q.r.Body); err != nil && line.Failure == "" {
		line.Failure = schemas.NetClientCut
	}
	line.Request = q.sentMessage()
	line.Status = schemas.NetOwnStatus(line.Decision, line.Failure)
	header, text := ownAnswer(line)
	q.say(header, text)
}

// tooLong answers a request that no line of the record has room for. The record has it as one that cannot be read.
func (q *request) tooLong() {
	line := q.e.line
	line.Decision, line.Failure, line.Host = schemas.NetDeny, schemas.NetNotHTTP, schemas.Text(q.o.host)
	line.Method, line.Path, line.Query, line.Request = "", "", "", schemas.NetMessage{}
	q.w.Header().Set(ownHeader, line.Failure)
	http.Error(q.w, "runner-net: the request is longer than can be recorded", http.StatusRequestHeaderFieldsTooLarge)
}

// ownAnswer is what the gateway itself answers to an exchange: the header that says so, and a text.
func ownAnswer(e *schemas.NetExchange) (header, text string) {
	switch {
	case e.Failure == schemas.NetUpgrade:
		return e.Failure, "runner-net: no other protocol is passed on"
	case e.Failure == schemas.NetNotHTTP:
		return e.Failure, "runner-net: the request asks for no path"
	case e.Failure != "":
		return e.Failure, "runner-net: the server did not answer: " + e.Failure
	}
	return schemas.NetDeny, fmt.Sprintf("runner-net: no rule allows %s %s", e.Method, exchange.URL(e))
}

// say writes an answer of the gateway's own. It has no date: it is the same each time.
func (q *request) say(header, text string) {
	h := q.w.Header()
	h.Set(ownHeader, header)
	h["Date"] = nil
	http.Error(q.w, text, int(q.e.line.Status))
}

// hop are headers of one connection only.
var hop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// ends returns a header without what is about one connection.
func ends(h http.Header) http.Header {
	out := h.Clone()
	for _, v := range h.Values("Connection") {
		for word := range strings.SplitSeq(v, ",") {
			out.Del(strings.TrimSpace(word))
		}
	}
	for _, name := range hop {
		out.Del(name)
	}
	return out
}

// forward passes a request on, and its answer back.
func (q *request) forward() {
	line := q.e.line
	r := q.r.Clone(q.r.Context())
	r.RequestURI, r.Header = "", ends(q.r.Header)
	r.URL.Scheme, r.URL.Host, r.Host = line.Scheme, at(q.host, q.o.to.Port()), q.r.Host
	if strings.EqualFold(q.r.Header.Get("Te"), "trailers") {
		r.Header.Set("Te", "trailers")
	}
	if _, there := r.Header["User-Agent"]; !there {
		r.Header["User-Agent"] = nil // without one of Go's own
	}
	upload := &teed{r: q.r.Body, to: q.sent}
	if r.Body = upload; q.r.ContentLength == 0 {
		r.Body = http.NoBody
	}
	answer, err := q.g.transport.RoundTrip(r)
	if err == nil && (answer.StatusCode < schemas.NetMinStatus || answer.StatusCode > schemas.NetMaxStatus) {
		answer.Body.Close()
		err = fmt.Errorf("status %d", answer.StatusCode) // which is none that could be passed on
	}
	var m schemas.NetMessage
	if err == nil {
		if m.Headers = q.g.responseHeaders(answer.Header); !fits(&m) {
			answer.Body.Close()
			err = errLong
		}
	}
	if err != nil {
		_, failed := upload.stop()
		line.Request = q.sentMessage()
		q.broken(err, failed)
		return
	}
	defer answer.Body.Close()
	got := q.g.body()
	q.answer(answer, got)
	if whole, _ := upload.stop(); !whole && q.r.ContentLength != 0 && line.Failure == "" {
		line.Failure = schemas.NetRequestCut
	}
	line.Request = q.sentMessage()
	body := got.message()
	m.Bytes, m.SHA256 = body.Bytes, body.SHA256
	if !q.g.trailers(&m, answer.Trailer) {
		line.Failure = schemas.NetServerCut
	}
	if line.Response = &m; line.Failure == schemas.NetServerCut {
		http.NewResponseController(q.w).Flush()
		panic(http.ErrAbortHandler) // the client must not take the answer for a whole one
	}
}

// sentMessage is what the client sent.
func (q *request) sentMessage() schemas.NetMessage {
	line := q.e.line
	m := q.sent.message()
	m.Headers = line.Request.Headers
	if !q.g.trailers(&m, q.r.Trailer) && line.Failure == "" {
		line.Failure = schemas.NetClientCut
	}
	return m
}

// broken answers where the server did not.
func (q *request) broken(err, upload error) {
	line := q.e.line
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	switch {
	case upload != nil || q.r.Context().Err() != nil:
		line.Failure = schemas.NetClientCut
	case errors.As(err, &unknown), errors.As(err, &verify):
		line.Failure = schemas.NetUntrusted
	case isDial(err):
		line.Failure = schemas.NetUnreachable
	default:
		line.Failure = schemas.NetServerCut
	}
	line.Status = schemas.NetOwnStatus(line.Decision, line.Failure)
	header, text := ownAnswer(line)
	q.say(header, text)
}

func isDial(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var addr *url.Error
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || errors.As(err, &addr)
}

// answer passes an answer back as it comes.
func (q *request) answer(answer *http.Response, got *body) {
	line := q.e.line
	line.Status = uint16(answer.StatusCode)
	h := q.w.Header()
	for name, values := range ends(answer.Header) {
		h[name] = values
	}
	if _, there := answer.Header["Date"]; !there {
		h["Date"] = nil
	}
	if _, there := answer.Header["Content-Type"]; !there {
		h["Content-Type"] = nil // without a guess
	}
	announced := map[string]bool{}
	for name := range answer.Trailer {
		announced[name] = true
		h.Add("Trailer", name)
	}
	q.w.WriteHeader(answer.StatusCode)
	flush := http.NewResponseController(q.w)
	streams := answer.ContentLength < 0
	if streams {
		flush.Flush()
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := answer.Body.Read(buf)
		got.Write(buf[:n])
		if n > 0 {
			if _, werr := q.w.Write(buf[:n]); werr != nil {
				line.Failure = schemas.NetClientCut
				return
			}
			if streams {
				flush.Flush()
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			line.Failure = schemas.NetServerCut
			if q.r.Context().Err() != nil {
				line.Failure = schemas.NetClientCut
			}
			return
		}
	}
	for name, values := range answer.Trailer {
		if !announced[name] { // the header did not name it
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// teed is a body that is recorded while it is sent. The transport can go on reading it after the answer has come.
type teed struct {
	r  io.ReadCloser
	to io.Writer

	mu    sync.Mutex
	whole bool  // it was read to its end
	over  bool  // nothing more is recorded
	err   error // of reading it
}

// Read reads the next bytes. None come after stop.
func (t *teed) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return 0, http.ErrBodyReadAfterClose
	}
	t.to.Write(b[:n])
	if err == io.EOF {
		t.whole = true
	} else if err != nil {
		t.err = err
	}
	return n, err
}

// stop ends the recording, and says whether it has all of the body, and why reading it failed.
func (t *teed) stop() (whole bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return t.whole, t.err
}

// Close closes the body.
func (t *teed) Close() error { return t.r.Close() }
