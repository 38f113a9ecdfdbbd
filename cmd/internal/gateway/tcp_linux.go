package gateway

import (
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
	var upward, downward error
	var both sync.WaitGroup
	both.Go(func() {
		_, upward = io.Copy(io.MultiWriter(sent, up), c)
		closeWrite(up, upward)
	})
	_, downward = io.Copy(io.MultiWriter(got, c), up)
	closeWrite(c, downward)
	both.Wait()
	e.line.Request = sent.message()
	response := got.message()
	e.line.Response = &response
	switch {
	case g.ctx.Err() != nil: // the program had ended, and we ended it
		e.line.Failure = schemas.NetClientCut
	case downward != nil:
		e.line.Failure = schemas.NetServerCut
	case upward != nil:
		e.line.Failure = schemas.NetClientCut
	}
}

// closeWrite says to the other side that no more comes; after an error nothing of the connection goes on.
func closeWrite(c net.Conn, err error) {
	if t, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
		t.CloseWrite()
		return
	}
	c.Close()
}
