package gateway

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/runner-evidence/runner/schemas"
)

// origin is where a connection was meant to go.
type origin struct {
	to   netip.AddrPort
	host string // the name that the address was told for, or the name in the handshake, or the address
	tls  bool

	// How many requests of the connection began, and how many of them the server could read.
	begun, read atomic.Int32
	two         atomic.Bool // it has HTTP/2, where requests begin without a change of the connection's state
	busy        atomic.Bool // a request is being answered
	odd         atomic.Bool // the server answered to what was no request
}

type originKey struct{}

// conn is a connection that the server gets, or one below TLS. Its first bytes may have been looked at.
type conn struct {
	net.Conn
	r io.Reader
	o *origin
}

// Read reads the next bytes, first those that were looked at.
func (c *conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// Write writes. What the server writes while it answers no request is its error about something that is none.
func (c *conn) Write(b []byte) (int, error) {
	if !c.o.busy.Load() && bytes.HasPrefix(b, []byte("HTTP/1.1 ")) {
		c.o.odd.Store(true)
	}
	return c.Conn.Write(b)
}

// originOf finds the origin of a connection that the server got.
func originOf(c net.Conn) *origin { return seen(c).o }

// raw is the connection as it was accepted.
func raw(c net.Conn) net.Conn {
	c = seen(c).Conn
	if _, ok := c.(*tls.Conn); ok {
		return seen(c).Conn
	}
	return c
}

func seen(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}

// follow records what a connection of the server had beside requests that could be read.
func (g *Gateway) follow(c net.Conn, state http.ConnState) {
	o := originOf(c)
	switch state {
	case http.StateActive:
		o.begun.Add(1)
	case http.StateIdle:
		o.busy.Store(false)
	case http.StateClosed:
		defer g.handlers.Done()
		defer g.forget(raw(c))
		scheme := schemas.NetHTTP
		if o.tls {
			scheme = schemas.NetHTTPS
		}
		switch begun, read := o.begun.Load(), o.read.Load(); {
		case begun == 0:
			g.denied(scheme, o, schemas.NetSilent)
		case read == 0 && multiplexed(c):
			g.denied(scheme, o, schemas.NetSilent)
		case read < begun && !o.two.Load(), read == 0, o.odd.Load():
			g.denied(scheme, o, schemas.NetNotHTTP)
		}
	}
}

// multiplexed reports whether a connection of TLS has HTTP/2.
func multiplexed(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
