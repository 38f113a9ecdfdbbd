package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

const (
	serverBuffer = 256 << 10 // bytes; longer lines are forwarded while they are read
	maxListing   = 8 << 20   // bytes of an answer to tools/list, which is read whole
	maxTail      = 64 << 10  // bytes after a message's last brace
)

// errCut means that a part of a line was forwarded and the rest must not be.
var errCut = errors.New("the server's message was refused after part of it had been forwarded")

// serverReader handles the server's lines.
type serverReader struct {
	*session
	r   io.Reader
	sc  *jsonrpc.Scanner
	buf []byte
	n   int // bytes in buf
	err error
}

// readServer handles the server's lines until its end. The error is
// errCut or nil.
func (s *session) readServer(r io.Reader) error {
	v := &serverReader{session: s, r: r, sc: jsonrpc.NewServer(), buf: make([]byte, serverBuffer)}
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
			if v.n > 0 { // a message without its LF is not complete
				s.log.messageRefused(fromServerSide, schemas.ReasonBadJSON)
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
	if len(v.buf) >= maxListing || !v.inFlight.listing() {
		return false
	}
	v.buf = append(v.buf, make([]byte, len(v.buf))...)
	return true
}

// line handles a whole line.
func (v *serverReader) line(line []byte) {
	body := line[:len(line)-1]
	v.sc.ListTools(v.inFlight.listing())
	code := v.sc.Line(body)
	var m jsonrpc.Message
	if code == "" {
		m, code = v.sc.Message(body)
	}
	if code == "" && m.Kind == jsonrpc.Response && m.ID.Key != "" {
		code = v.answer(m, line)
	} else if code == "" && (m.Kind != jsonrpc.Request || v.ask(m, line)) {
		v.taskNotified(m, line)
		v.toClient(line)
	}
	if code != "" {
		v.refuseServer(code, body)
	}
}

// answer forwards an answer, without the tools that the policy hides. The result is the
// reason code of an answer that is refused, or "".
func (v *serverReader) answer(m jsonrpc.Message, line []byte) string {
	e := v.inFlight.find(m.ID.Key)
	if e == nil {
		return schemas.ReasonBadID // there is no such request
	}
	if e.method == jsonrpc.MethodList && v.sc.Has(jsonrpc.FieldTools) {
		var code string
		if line, code = v.filter(line); code != "" {
			return code
		}
	}
	if denied := v.inputRequests(e, line); denied != nil {
		v.inFlight.answered(m.ID.Key)
		end := now()
		v.toClient(denied)
		v.finish(e, end, schemas.OutcomeError)
		return ""
	}
	v.inFlight.answered(m.ID.Key)
	v.resumable(e)
	goesOn := v.taskBegins(e, line)
	end := now()
	v.toClient(line)
	if !goesOn {
		v.finished(e, line, end)
	}
	return ""
}

// resumable notes that a call can continue in another request. This must happen before
// the client can send that request.
func (v *serverReader) resumable(e *entry) {
	state := v.sc.Value(jsonrpc.FieldResultState)
	if e.call != nil && outcomeOf(v.sc) == schemas.OutcomeInputRequired && state.Kind == '"' && !state.Cut {
		v.inFlight.resumable(state.Text, e.call)
	}
}

// finished records the end of a call whose answer was scanned; line is nil for one that is too long to be read.
func (v *serverReader) finished(e *entry, line []byte, end uint64) {
	v.taskAnswered(e, line, end)
	outcome := outcomeOf(v.sc)
	if v.notReading.Load() {
		outcome = schemas.OutcomeClientGone
	}
	v.finish(e, end, outcome)
}

// outcomeOf is the outcome of the call whose answer was scanned.
func outcomeOf(sc *jsonrpc.Scanner) string {
	kind := sc.Value(jsonrpc.FieldResultType)
	switch k := sc.Value(jsonrpc.FieldIsError).Kind; {
	case sc.Failed():
		return schemas.OutcomeError
	case k != 0 && k != 'f' && k != 'n':
		return schemas.OutcomeToolError
	case kind.Kind == '"' && string(kind.Text) == "input_required":
		return schemas.OutcomeInputRequired
	}
	return schemas.OutcomeCompleted
}

// refuseServer records a message of the server that is not forwarded. If it clearly
// answers a request, the client gets an error instead.
func (v *serverReader) refuseServer(code string, body []byte) {
	v.log.messageRefused(fromServerSide, code)
	ids := jsonrpc.Salvage(body, true)
	if to, ok := v.sc.AnswerOf(body); ok {
		ids = []jsonrpc.ID{to}
	}
	for _, id := range ids {
		e := v.inFlight.answered(id.Key)
		if e == nil {
			e = v.inFlight.answered(id.Twin().Key) // 1 for "1", or the other way round
		}
		if e == nil {
			continue
		}
		end := now()
		v.toClient(goneAnswer(e.id, "the server's answer was refused: "+code))
		v.finish(e, end, schemas.OutcomeError)
	}
}

// filter removes hidden tools from an answer to tools/list. All other bytes stay. The
// second result is the reason code of an answer that is refused, or "".
func (v *serverReader) filter(line []byte) ([]byte, string) {
	tools := v.sc.Tools()
	if v.sc.Value(jsonrpc.FieldTools).Kind != '[' {
		return nil, schemas.ReasonNotJSONRPC
	}
	kept, from := false, 0
	var out []byte
	for i, t := range tools {
		if !t.OK {
			return nil, schemas.ReasonNotJSONRPC
		}
		v.schemas.learn(t.Name, line[t.Start:t.End])
		if v.o.Audit || !v.rules.Load().engine.Hides(t.Name) {
			kept = true
			continue
		}
		start, end := t.Start, t.End
		if kept {
			start = tools[i-1].End // the comma before it goes too
		} else if i+1 < len(tools) {
			end = tools[i+1].Start
		}
		out = append(out, line[from:start]...)
		from = end
	}
	if from == 0 {
		return line, ""
	}
	return append(out, line[from:]...), ""
}
