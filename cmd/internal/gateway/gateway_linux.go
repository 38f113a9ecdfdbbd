package gateway

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/schemas"
)

// Config is how a gateway works.
type Config struct {
	Rules    *allow.Rules        // what may leave; nil: nothing
	Replay   *exchange.Recording // answers all requests if it is not nil
	Upstream map[string]string   // HOST:PORT to another HOST:PORT
	Roots    *x509.CertPool      // whom the gateway trusts; nil: whom the system trusts
	Redact   Redaction
	Match    []string // names of headers that are part of the key of a request
	Blobs    *record.Blobs
	RunID    string
	Mode     string   // one of schemas.NetModes
	Ports    []uint16 // that are listened on
}

// Gateway takes the connections of one program.
type Gateway struct {
	c         Config
	ca        *authority
	names     *names
	transport *http.Transport
	server    *http.Server
	funnel    *funnel
	open      sync.WaitGroup // connections that were not handed to the server yet, and accepting loops
	handlers  sync.WaitGroup // connections that the server has, and requests that it handles
	once      sync.Once      // of Close
	ctx       context.Context
	stop      context.CancelFunc

	mu        sync.Mutex
	exchanges []*schemas.NetExchange
	conns     map[net.Conn]bool
	closed    bool
	fault     error // the record cannot be whole
	redacted  uint64
	waiting   map[string][]*schemas.NetExchange // in replay: the recorded answers of each key, the next one first
	unused    uint64                            // of them
}

// New makes a gateway.
func New(c Config) (*Gateway, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	g := &Gateway{c: c, ca: ca, names: newNames(), funnel: newFunnel(), conns: map[net.Conn]bool{}}
	if c.Replay != nil {
		g.prepare(c.Replay)
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.transport = &http.Transport{
		DialContext: g.dial, Proxy: g.proxy, TLSClientConfig: &tls.Config{RootCAs: c.Roots}, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 30 * time.Second,
	}
	g.server = &http.Server{
		Handler: http.HandlerFunc(g.serve), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 5 * time.Minute, MaxHeaderBytes: 1 << 20,
		DisableGeneralOptionsHandler: true, // OPTIONS * is a request like any other
		BaseContext:                  func(net.Listener) context.Context { return g.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, originKey{}, originOf(c))
		},
		ConnState: g.follow,
		Protocols: new(http.Protocols),
	}
	g.server.Protocols.SetHTTP1(true)
	g.server.Protocols.SetHTTP2(true)
	g.server.Protocols.SetUnencryptedHTTP2(true)
	go g.server.Serve(g.funnel)
	return g, nil
}

// Certificate is that of the authority that the program must trust, as PEM.
func (g *Gateway) Certificate() []byte { return g.ca.pem() }

// fail notes that the record cannot be whole.
func (g *Gateway) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault == nil {
		g.fault = err
	}
}

// Serve takes connections until the listener is closed.
func (g *Gateway) Serve(l net.Listener) {
	g.open.Add(1)
	defer g.open.Done()
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || g.ctx.Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond) // no descriptors, or the like
			continue
		}
		g.open.Add(1)
		go func() {
			defer g.open.Done()
			g.take(c)
		}()
	}
}

// patience is how long a client may say nothing.
const patience = 30 * time.Second

// take finds out what a connection is, and handles it or hands it to the server.
func (g *Gateway) take(c net.Conn) {
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		g.fail(fmt.Errorf("a connection without an address: %w", err))
		c.Close()
		return
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if !g.hold(c) {
		if to.Port() != 53 { // questions about names are no exchanges
			g.denied(schemas.NetTCP, &origin{to: to, host: g.names.host(to.Addr())}, schemas.NetClientCut)
		}
		c.Close()
		return
	}
	if to.Port() == 53 {
		g.namesOverTCP(c)
		g.release(c)
		return
	}
	o := &origin{to: to, host: g.names.host(to.Addr())}
	if rule := g.c.Rules.TCP(o.host, to.Port()); rule != nil && g.c.Replay == nil {
		g.pass(c, o, rule)
		g.release(c)
		return
	}
	r := bufio.NewReaderSize(c, 16<<10)
	k := &conn{Conn: c, r: r, o: o}
	c.SetReadDeadline(time.Now().Add(patience))
	first, err := r.Peek(1)
	c.SetReadDeadline(time.Time{})
	switch {
	case to.Addr().IsLoopback(): // meant for a server of the program's own, and there is none
		g.refuse(k, schemas.NetNobody)
	case err != nil:
		g.refuse(k, schemas.NetSilent)
	case first[0] == 0x16:
		g.takeTLS(k)
	case first[0] >= 'A' && first[0] <= 'Z':
		g.hand(k, k)
	default:
		g.refuse(k, schemas.NetNotHTTP)
	}
}

// refuse ends a connection, and records why.
func (g *Gateway) refuse(k *conn, failure string) {
	g.denied(schemas.NetTCP, k.o, failure)
	if t, ok := k.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	g.release(k.Conn)
}

// denied records a connection that came to nothing.
func (g *Gateway) denied(scheme string, o *origin, failure string) {
	e := g.begin(scheme, o)
	e.line.Decision, e.line.Failure = schemas.NetDeny, failure
	g.end(e)
}

// takeTLS makes the handshake as the server that the client wants.
func (g *Gateway) takeTLS(k *conn) {
	k.o.tls = true
	c := tls.Server(k, &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name := lower(strings.TrimSuffix(hello.ServerName, ".")); name != "" {
				k.o.host = name
			}
			return g.ca.certificate(k.o.host)
		},
	})
	ctx, cancel := context.WithTimeout(g.ctx, patience)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		g.denied(schemas.NetHTTPS, k.o, schemas.NetClientTLS)
		g.release(k.Conn)
		return
	}
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		g.hand(k, c) // of this type, or the server does not see that
	} else {
		g.hand(k, &conn{Conn: c, r: c, o: k.o})
	}
}

// hand gives a connection to the server.
func (g *Gateway) hand(k *conn, c net.Conn) {
	g.handlers.Add(1)
	if !g.funnel.push(c) {
		g.denied(schemas.NetTCP, k.o, schemas.NetClientCut)
		g.release(k.Conn)
		g.handlers.Done()
	}
}

func (g *Gateway) hold(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.conns[c] = true
	return true
}

func (g *Gateway) forget(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

func (g *Gateway) release(c net.Conn) {
	g.forget(c)
	c.Close()
}

// linger is how long what the program left under way may go on after its end.
const linger = 5 * time.Second

// Close ends what is still open, and returns when all is recorded. The listeners must be closed. Its error says that the
// record is not whole.
func (g *Gateway) Close() error {
	g.once.Do(g.close)
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.exchanges, nil) && g.fault == nil {
		g.fault = errors.New("an exchange was not recorded")
	}
	return g.fault
}

func (g *Gateway) close() {
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		g.open.Wait()
	}()
	select {
	case <-taken: // each is with the server now, or ended
	case <-ctx.Done():
	}
	g.server.Shutdown(ctx) // the program has ended: what is under way ends by itself
	g.stop()
	g.mu.Lock()
	for c := range g.conns {
		c.Close()
	}
	g.mu.Unlock()
	<-taken
	g.server.Close()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.handlers.Wait()
	g.transport.CloseIdleConnections()
}

// enter begins the handling of a request. Without it the request comes too late for the record.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.fault = cmp.Or(g.fault, errors.New("a request came after the end of the record"))
		return false
	}
	g.handlers.Add(1)
	return true
}

// dial opens a connection to a server, or to what stands for it.
func (g *Gateway) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if to := g.c.Upstream[address]; to != "" {
		address = to
	}
	d := net.Dialer{Timeout: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// proxy is the one that this machine needs to reach the network.
func (g *Gateway) proxy(r *http.Request) (*url.URL, error) {
	if g.c.Upstream[r.URL.Host] != "" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// at is host and port.
func at(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// funnel is a listener of connections that others accepted.
type funnel struct {
	c    chan net.Conn
	done chan struct{}
	once sync.Once
}

func newFunnel() *funnel { return &funnel{c: make(chan net.Conn), done: make(chan struct{})} }

func (f *funnel) push(c net.Conn) bool {
	select {
	case f.c <- c:
		return true
	case <-f.done:
		return false
	}
}

// Accept returns the next connection.
func (f *funnel) Accept() (net.Conn, error) {
	select {
	case c := <-f.c:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (f *funnel) Close() error {
	f.once.Do(func() { close(f.done) })
	return nil
}

// Addr is no address.
func (f *funnel) Addr() net.Addr { return &net.TCPAddr{} }

// Redaction says which values of headers are kept in the record, and how the others are.
type Redaction struct {
	Keep []string // names of headers that are kept too
	Take []string // names of headers that are taken out too
	Key  arguments.Key
}
