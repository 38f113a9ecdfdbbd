package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

const (
	serverBuffer = 256 << 10 // longer lines are forwarded while they are read
	maxListing   = 8 << 20   // of an answer to tools/list, which is read whole
	maxBehind    = 64 << 10  // bytes behind a message's last brace
)

// errCut says that a line was begun that may not end.
var errCut = errors.New("the server's message was refused when part of it had been passed on")

// serverReader deals with the server's lines.
type serverReader struct {
	*session
	r   io.Reader
	sc  scanner
	buf []byte
	n   int // bytes in buf
	err error
}

// readServer deals with the server's lines until there are no more. The error is
// errCut or nil.
func (s *session) readServer(r io.Reader) error {
	v := &serverReader{session: s, r: r, buf: make([]byte, serverBuffer)}
	v.sc.surrogate = true
	looked := 0
	for {
		from := 0
		for {
			i := bytes.IndexByte(v.buf[looked:v.n], '\n')
			if i < 0 {
				break
			}
			i += looked
			v.line(v.buf[from : i+1])
			from, looked = i+1, i+1
		}
		if from > 0 {
			v.keep(from)
		}
		looked = v.n
		if v.n == 0 && len(v.buf) > serverBuffer {
			v.buf = make([]byte, serverBuffer)
		}
		if v.n == len(v.buf) {
			if v.grow() {
				continue
			}
			if err := v.stream(); err != nil {
				return err
			}
			looked = 0
			continue
		}
		if v.err != nil {
			if v.n > 0 { // the end of input ends no message
				s.log.messageRefused(fromServerSide, badJSON)
			}
			return nil
		}
		v.fill()
	}
}

func (v *serverReader) fill() {
	var n int
	n, v.err = v.r.Read(v.buf[v.n:])
	v.n += n
}

// grow makes room for a line that may have to be read whole.
func (v *serverReader) grow() bool {
	if len(v.buf) >= maxListing || !v.table.listing() {
		return false
	}
	v.buf = append(v.buf, make([]byte, len(v.buf))...)
	return true
}

// line deals with a line that is there whole.
func (v *serverReader) line(line []byte) {
	body := line[:len(line)-1]
	v.sc.listTools = v.table.listing()
	code := v.sc.line(body)
	var m message
	if code == "" {
		m, code = v.sc.message(body)
	}
	if code == "" && m.kind == response && m.id.key != "" {
		code = v.answer(m, line)
	} else if code == "" {
		v.toClient(line)
	}
	if code != "" {
		v.refuseServer(code, body)
	}
}

// answer forwards an answer, without the tools that the policy hides.
func (v *serverReader) answer(m message, line []byte) string {
	e := v.table.find(m.id.key)
	if e == nil {
		return badID // nobody asked
	}
	if e.method == methodList && v.sc.vals[fTools].kind != 0 {
		var code string
		if line, code = v.filter(line); code != "" {
			return code
		}
	}
	v.table.answered(m.id.key)
	v.goesOn(e)
	end := now()
	v.toClient(line)
	v.finished(e, end)
	return ""
}

// goesOn notes that a call goes on in another request, before the client can make it.
func (v *serverReader) goesOn(e *entry) {
	state := &v.sc.vals[fResultState]
	if e.call != nil && v.sc.outcome() == schemas.OutcomeInputRequired && state.kind == '"' && !state.cut {
		v.table.goesOn(state.text, e.call)
	}
}

// finished records the end of a call whose answer was scanned.
func (v *serverReader) finished(e *entry, end uint64) {
	if e.call == nil {
		return
	}
	outcome := v.sc.outcome()
	if v.deaf.Load() {
		outcome = schemas.OutcomeClientGone
	}
	v.finish(e.call, end, outcome)
}

// outcome is how the answer that was scanned ends its call.
func (s *scanner) outcome() string {
	v := &s.vals
	switch k := v[fIsError].kind; {
	case v[fError].kind != 0:
		return schemas.OutcomeError
	case k != 0 && k != 'f' && k != 'n':
		return schemas.OutcomeToolError
	case v[fResultType].kind == '"' && string(v[fResultType].text) == "input_required":
		return schemas.OutcomeInputRequired
	}
	return schemas.OutcomeCompleted
}

// refuseServer records a message of the server that is not forwarded. If it was
// certainly the answer to a request, the client gets an error in its place.
func (v *serverReader) refuseServer(code string, body []byte) {
	v.log.messageRefused(fromServerSide, code)
	if v.sc.code != "" || v.sc.idBad || v.sc.vals[fMethod].kind != 0 {
		return
	}
	to, bad := v.sc.identify(fID, body)
	if bad != "" {
		return
	}
	e := v.table.answered(to.key)
	if e == nil {
		return
	}
	end := now()
	v.toClient(goneAnswer(e.id, "the server's answer was refused: "+code))
	v.finish(e.call, end, schemas.OutcomeError)
}

// filter cuts hidden tools out of an answer to tools/list. All other bytes stay.
func (v *serverReader) filter(line []byte) ([]byte, string) {
	tools := v.sc.tools
	if v.sc.vals[fTools].kind != '[' {
		return nil, notJSONRPC
	}
	kept, from := false, 0
	var out []byte
	for i, t := range tools {
		if !t.ok {
			return nil, notJSONRPC
		}
		if !v.engine.Hides(t.name) {
			kept = true
			continue
		}
		start, end := t.start, t.end
		if kept {
			start = tools[i-1].end // the comma in front goes too
		} else if i+1 < len(tools) {
			end = tools[i+1].start
		}
		out = append(out, line[from:start]...)
		from = end
	}
	if from == 0 {
		return line, ""
	}
	return append(out, line[from:]...), ""
}
