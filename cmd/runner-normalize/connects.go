package main

import "github.com/runner-evidence/runner/schemas"

// A TCP connect that does not wait returns EINPROGRESS, and the kernel reports its result as a record
// of its own: before the record of the call, or any time after it. The address hook comes before both,
// and begins an attempt of its socket. The call's record has that of the hook that ran in it, and the result
// that of its socket: so each line gets its own result, whichever comes first.

const (
	maxAttempts = 1 << 16 // connects whose end is awaited at once; of more, the result is left out
	maxResults  = 1 << 22 // lines with a result; likewise
	noResult    = 1       // is no result: those are 0 or the number of an error, below 0
)

// attempt is one connect of one socket, from what the hook saw on.
type attempt struct {
	line   int   // number of its line's result, -1 as long as it has none
	result int16 // noResult as long as there is none
}

// connects are the attempts whose end is awaited, and the results of pending lines.
type connects struct {
	awaited map[uint64]*attempt // by socket
	results []int16             // by number
}

// begin is what the hook saw of a connect: nil if its end cannot be told. An earlier attempt of the
// socket is over.
func (c *connects) begin(e *schemas.RawEvent) *attempt {
	if e.Op != schemas.OpConnect || e.Socket == 0 {
		return nil
	}
	delete(c.awaited, e.Socket)
	if e.Marks&schemas.MarkIOUring != 0 || len(c.awaited) == maxAttempts {
		return nil
	}
	if c.awaited == nil {
		c.awaited = map[uint64]*attempt{}
	}
	a := &attempt{line: -1, result: noResult}
	c.awaited[e.Socket] = a
	return a
}

// returned is the end of the call whose hook record is h. It gives back the attempt if that goes on.
func (c *connects) returned(e *schemas.RawEvent, h *heldHook) *attempt {
	if h.attempt == nil {
		return nil
	}
	if e.Has&schemas.HasRet != 0 && (e.Ret == eInProgress || e.Marks&schemas.MarkDeferred != 0) && e.Marks&schemas.MarkUnproven == 0 && (e.Socket == 0 || e.Socket == h.socket) {
		return h.attempt
	}
	if c.awaited[h.socket] == h.attempt {
		delete(c.awaited, h.socket)
	}
	return nil
}

// ended is a result. Without one the program itself has ended the connect.
func (c *connects) ended(e *schemas.RawEvent) {
	a := c.awaited[e.Socket]
	if a == nil {
		return
	}
	delete(c.awaited, e.Socket)
	if e.Has&schemas.HasRet == 0 || e.Ret > 0 || e.Ret < -schemas.MaxErrno {
		return
	}
	if a.result = int16(e.Ret); a.line >= 0 {
		c.results[a.line] = a.result
	}
}

// number is that of the result of an attempt's line; false if there is no room for more.
func (c *connects) number(a *attempt) (int, bool) {
	if len(c.results) == maxResults {
		return 0, false
	}
	a.line = len(c.results)
	c.results = append(c.results, a.result)
	return a.line, true
}
