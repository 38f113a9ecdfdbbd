package main

import (
	"context"
	"io"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

const (
	fromClientSide = "client"
	fromServerSide = "server"
	maxDeniedIDs   = 256
	protocolKey    = "io.modelcontextprotocol/protocolVersion"
)

// readClient deals with the client's lines until there are no more.
func (s *session) readClient(ctx context.Context, r io.Reader) {
	l := &lineReader{r: r, max: s.o.MaxLine}
	sc := &scanner{allKeys: true}
	for {
		line, long, err := l.next()
		s.handling.Lock()
		if s.over {
			s.handling.Unlock()
			return
		}
		switch {
		case long:
			s.refuse(nullID, tooLong, true)
		case err == io.ErrUnexpectedEOF:
			s.refuse(nullID, badJSON, false) // the end of input ends no message
		case err == nil && blank(line):
			s.refuse(nullID, badJSON, false)
		case err == nil:
			s.fromClient(ctx, sc, line)
		}
		s.handling.Unlock()
		if err != nil {
			return
		}
	}
}

// refuse records a message of the client that is not forwarded, and answers it.
func (s *session) refuse(to id, code string, answer bool) {
	s.log.messageRefused(fromClientSide, code)
	if answer {
		s.toClient(refusedAnswer(to, code))
	}
}

// fromClient deals with one line.
func (s *session) fromClient(ctx context.Context, sc *scanner, line []byte) {
	body := line[:len(line)-1]
	code := sc.line(body)
	var m message
	if code == "" {
		m, code = sc.message(body)
	}
	if code == "" {
		code = sc.call(m)
	}
	if code == "" && s.log.failure() != nil {
		code = logFailed
	}
	if code == "" && m.kind != response && (m.kind == request || m.method == methodCall) {
		code = s.table.room(m)
	}
	if code != "" {
		to, answer := sc.addressee(body)
		s.refuse(to, code, answer)
		return
	}
	switch {
	case m.method == methodCall:
		s.decide(ctx, sc, m, line)
	case m.kind == request:
		s.table.add(&entry{id: m.id, method: m.method})
		s.toServer(line)
	case m.method == methodCancelled && s.cancelsDenied(sc, body):
		// the server never heard of that call
	default:
		s.toServer(line)
	}
}

// cancelsDenied looks what a cancellation is about.
func (s *session) cancelsDenied(sc *scanner, body []byte) bool {
	of, code := sc.identify(fRequestID, body)
	return code == "" && !s.table.cancel(of.key) && slices.Contains(s.deniedIDs, of.key)
}

// decide asks the policy about a tool call, records what it said, and forwards the
// call or answers it.
func (s *session) decide(ctx context.Context, sc *scanner, m message, line []byte) {
	start := now()
	v := &sc.vals
	arguments, ok := decode(line, v[fArguments])
	meta, ok2 := decode(line, v[fMeta])
	if !ok || !ok2 {
		s.refuse(m.id, badCall, m.kind == request)
		return
	}
	if _, bad := s.engine.CaseSmuggled(arguments); bad {
		s.refuse(m.id, caseKey, m.kind == request)
		return
	}
	c := &call{number: s.calls, attempt: 1, tool: string(v[fName].text), startNS: start}
	if v[fParamsState].kind == '"' && !v[fParamsState].cut {
		c.round, c.attempt = s.table.goneOn(v[fParamsState].text, c.tool)
	}
	if c.round != nil {
		c.number, c.id = c.round.number, c.round.id
	} else {
		s.calls++
		if c.id, ok = findCallID(meta, arguments, s.o.CallIDKeys); !ok {
			c.id = declaredID(s.o.Name, m.id, c.number)
		}
	}
	d := s.engine.Decide(ctx, &policy.Call{Tool: c.tool, Arguments: arguments, Meta: meta, Dir: s.dir})
	e := schemas.ToolDecision{
		Call: c.number, Attempt: c.attempt, Tool: c.tool, Decision: schemas.DecisionAllow, ReasonCode: d.Reason, RuleID: d.RuleID,
		ToolCallID: c.id.id, ToolCallIDSource: c.id.source, PolicyDigest: s.digest,
		StartNS: start, Targets: d.Targets, TargetsCut: d.TargetsCut,
	}
	if !d.Allow {
		e.Decision, e.Outcome, e.EndNS = schemas.DecisionDeny, schemas.OutcomeDenied, now()
	}
	if !s.log.decided(e) {
		s.refuse(m.id, logFailed, m.kind == request)
		return
	}
	if d.Allow {
		s.table.add(&entry{id: m.id, method: m.method, call: c})
		s.toServer(line)
		return
	}
	if m.kind != request {
		return // nobody waits for an answer
	}
	if s.deniedIDs = append(s.deniedIDs, m.id.key); len(s.deniedIDs) > maxDeniedIDs {
		s.deniedIDs = slices.Delete(s.deniedIDs, 0, 1)
	}
	s.toClient(deniedAnswer(m.id, d.Say, denial{d.Reason, d.RuleID, c.id.id, s.digest}, isModern(meta), s.o.DenyAsError))
}

// decode makes values of an object in the line; nothing is nil.
func decode(line []byte, v value) (any, bool) {
	if v.kind == 0 {
		return nil, true
	}
	out, err := policy.Decode(line[v.start:v.end])
	return out, err == nil
}

// isModern reports whether a request says itself which protocol it speaks, as the
// stateless ones do.
func isModern(meta any) bool {
	m, _ := meta.(map[string]any)
	_, ok := m[protocolKey].(string)
	return ok
}
