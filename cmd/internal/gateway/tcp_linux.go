package gateway

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/schemas"
)

// pass passes the bytes of a connection on, as they are, and records both directions.
func (g *Gateway) pass(c net.Conn, o *origin, rule *allow.Rule) {
	e := g.begin(schemas.NetTCP, o)
	e.line.Decision, e.line.Rule = schemas.NetAllow, rule.ID
	defer g.end(e)
	up, err := g.dial(g.ctx, "tcp", at(o.host, o.to.Port()))
	if err != nil {
		e.line.Failure = schemas.NetUnreachable
		return
	}
	if !g.hold(up) {
		up.Close()
		return
	}
	defer g.release(up)
	sent, got := g.body(), g.body()
	var both sync.WaitGroup
	both.Add(1)
	go func() {
		defer both.Done()
		_, err := io.Copy(io.MultiWriter(up, sent), c)
		closeWrite(up, err)
	}()
	_, err = io.Copy(io.MultiWriter(c, got), up)
	closeWrite(c, err)
	both.Wait()
	e.line.Request = sent.message()
	response := got.message()
	e.line.Response = &response
}

// closeWrite says to the other side that no more comes; after an error nothing of the connection goes on.
func closeWrite(c net.Conn, err error) {
	if t, ok := c.(interface{ CloseWrite() error }); ok && (err == nil || errors.Is(err, io.EOF)) {
		t.CloseWrite()
		return
	}
	c.Close()
}
