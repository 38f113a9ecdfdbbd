package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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
}

// Gateway takes the connections of one program.
type Gateway struct {
	c         Config
	ca        *authority
	names     *names
	transport *http.Transport
	server    *http.Server
	funnel    *funnel
	open      sync.WaitGroup // connections and accepting loops
	ctx       context.Context
	stop      context.CancelFunc

	mu        sync.Mutex
	exchanges []*schemas.NetExchange
	conns     map[net.Conn]bool
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
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, originKey{}, originOf(c))
		},
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

// origin is where a connection was meant to go.
type origin struct {
	to   netip.AddrPort
	host string // the name that the address was told for, or the name in the handshake, or the address
	tls  bool
}

type originKey struct{}

// conn is a connection of which the first bytes were looked at.
type conn struct {
	net.Conn
	r *bufio.Reader
	o *origin
}

func (c *conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// originOf finds the origin of a connection that the server got.
func originOf(c net.Conn) *origin {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn).o
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
	if !g.hold(c) {
		c.Close()
		return
	}
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		g.release(c)
		return
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
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
	k := &conn{Conn: c, r: bufio.NewReaderSize(c, 16<<10), o: o}
	c.SetReadDeadline(time.Now().Add(patience))
	first, err := k.r.Peek(1)
	c.SetReadDeadline(time.Time{})
	switch {
	case to.Addr().IsLoopback(): // meant for a server of the program's own, and there is none
		g.refuse(k, "")
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
	if failure != "" {
		e := g.begin(schemas.NetTCP, k.o)
		e.line.Decision, e.line.Failure = schemas.NetDeny, failure
		g.end(e)
	}
	if t, ok := k.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	g.release(k.Conn)
}

// takeTLS makes the handshake as the server that the client wants.
func (g *Gateway) takeTLS(k *conn) {
	k.o.tls = true
	c := tls.Server(k, &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name := strings.ToLower(strings.TrimSuffix(hello.ServerName, ".")); name != "" {
				k.o.host = name
			}
			return g.ca.certificate(k.o.host)
		},
	})
	ctx, cancel := context.WithTimeout(g.ctx, patience)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		e := g.begin(schemas.NetHTTPS, k.o)
		e.line.Decision, e.line.Failure = schemas.NetDeny, schemas.NetClientTLS
		g.end(e)
		g.release(k.Conn)
		return
	}
	g.hand(k, c)
}

// hand gives a connection to the server.
func (g *Gateway) hand(k *conn, c net.Conn) {
	if !g.funnel.push(c) {
		c.Close()
	}
	g.forget(k.Conn) // the server closes it
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

// Close ends what is still open, and returns when all is recorded. The listeners must be closed. Its error says that the
// record is not whole.
func (g *Gateway) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	g.server.Shutdown(ctx) // the program has ended: what is under way ends by itself
	g.stop()
	g.server.Close()
	g.mu.Lock()
	for c := range g.conns {
		c.Close()
	}
	g.mu.Unlock()
	g.open.Wait()
	g.transport.CloseIdleConnections()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
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
