package main

import (
	"bytes"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

// stream handles a line that does not fit into the buffer. Bytes are forwarded as soon as
// they were scanned, but the message's last brace and LF only after the whole line was
// checked: until then the client has no complete message.
func (v *serverReader) stream() error {
	v.sc.Begin()
	v.sc.ListTools(false)
	v.clientMu.Lock()
	defer v.clientMu.Unlock()
	var tail []byte // the last brace and the bytes after it
	discard, passed := false, false
	for {
		part := v.buf[:v.n]
		lf := bytes.IndexByte(part, '\n')
		if lf >= 0 {
			part = part[:lf]
		}
		base := v.sc.Offset()
		if !v.sc.Feed(part) {
			return v.cutOff(v.sc.Broken(), passed, lf)
		}
		if !passed && v.inFlight.listing() && v.sc.Has(jsonrpc.FieldTools) {
			discard = true // probably a list of tools that is too long to be filtered
		}
		if v.sc.Closed() >= 0 {
			n := max(0, v.sc.Closed()-base)
			tail = append(tail, part[n:]...)
			part = part[:n]
		}
		if len(tail) > maxTail {
			return v.cutOff(schemas.ReasonTooLong, passed, lf)
		}
		if !discard && len(part) > 0 {
			v.writeClient(part)
			passed = true
		}
		if lf >= 0 {
			v.keep(lf + 1)
			return v.endStream(append(tail, '\n'), discard, passed)
		}
		v.n = 0
		if len(v.buf) > serverBuffer {
			v.buf = make([]byte, serverBuffer)
		}
		if v.err != nil {
			return v.cutOff(schemas.ReasonBadJSON, passed, -1)
		}
		v.fill()
	}
}

// endStream forwards the end of the line if the whole line is valid.
func (v *serverReader) endStream(tail []byte, discard, passed bool) error {
	code := v.sc.Finish()
	var m jsonrpc.Message
	if code == "" {
		m, code = v.sc.Message(nil)
	}
	var e *entry
	if code == "" && m.Kind == jsonrpc.Response && m.ID.Key != "" {
		e = v.inFlight.find(m.ID.Key)
		switch {
		case e == nil:
			code = schemas.ReasonBadID
		case e.method == jsonrpc.MethodList && v.sc.Has(jsonrpc.FieldTools):
			code = schemas.ReasonTooLong
		}
	}
	if code == "" && discard {
		code = schemas.ReasonTooLong
	}
	if code == "" && e != nil && outcomeOf(v.sc) == schemas.OutcomeInputRequired && !v.asksFreely() {
		code = schemas.ReasonTooLong // what it asks for cannot be decided
	}
	if code != "" {
		return v.refuseStream(code, passed)
	}
	if e != nil {
		v.inFlight.answered(m.ID.Key)
		v.resumable(e)
	}
	if m.Kind == jsonrpc.Request && code == "" && !v.ask(m, nil) {
		if !passed {
			return nil
		}
		v.session.cut.Store(true)
		return errCut
	}
	end := now()
	v.writeClient(tail)
	if e != nil {
		v.finished(e, nil, end)
	}
	return nil
}

// keep drops the first bytes of the buffer.
func (v *serverReader) keep(from int) { v.n = copy(v.buf, v.buf[from:v.n]) }

// cutOff refuses a line whose LF is at lf in the buffer, or has not arrived.
func (v *serverReader) cutOff(code string, passed bool, lf int) error {
	if err := v.refuseStream(code, passed); err != nil {
		return err
	}
	for ; lf < 0; lf = bytes.IndexByte(v.buf[:v.n], '\n') {
		v.n = 0
		if v.err != nil {
			return nil
		}
		v.fill()
	}
	v.keep(lf + 1)
	return nil
}

// refuseStream refuses a line. If part of it was forwarded, nothing more can be sent to
// the client.
func (v *serverReader) refuseStream(code string, passed bool) error {
	if passed {
		v.log.messageRefused(fromServerSide, code)
		v.session.cut.Store(true)
		return errCut
	}
	v.clientMu.Unlock()
	defer v.clientMu.Lock()
	v.refuseServer(code, nil)
	return nil
}
