package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

const (
	fromClientSide = schemas.FromClient
	fromServerSide = schemas.FromServer
	maxDeniedIDs   = 256
	protocolKey    = "io.modelcontextprotocol/protocolVersion"
)

// readClient handles the client's lines until its end.
func (s *session) readClient(ctx context.Context, r io.Reader) {
	l := &lineReader{r: r, max: s.o.MaxLine}
	sc := jsonrpc.NewClient()
	for {
		line, long, err := l.next()
		s.handling.Lock()
		if s.over {
			s.handling.Unlock()
			return
		}
		switch {
		case long:
			to := s.own(l.ids())
			s.refuse(to[0], schemas.ReasonTooLong, true)
		case err == io.ErrUnexpectedEOF:
			s.refuse(jsonrpc.NullID, schemas.ReasonBadJSON, false) // a message without its LF is not complete
		case err == nil && blank(line):
			s.refuse(jsonrpc.NullID, schemas.ReasonBadJSON, false)
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
func (s *session) refuse(to jsonrpc.ID, code string, answer bool) {
	s.log.messageRefused(fromClientSide, code)
	if answer {
		s.toClient(refusedAnswer(to, code))
	}
}

// own are the ids under which the client can be told that its message was refused: none of
// a request that it waits for.
func (s *session) own(ids []jsonrpc.ID) []jsonrpc.ID {
	ids = slices.DeleteFunc(ids, func(id jsonrpc.ID) bool { return s.inFlight.find(id.Key) != nil })
	if len(ids) == 0 {
		return []jsonrpc.ID{jsonrpc.NullID}
	}
	return ids
}

// fromClient handles one line.
func (s *session) fromClient(ctx context.Context, sc *jsonrpc.Scanner, line []byte) {
	body := line[:len(line)-1]
	code := sc.Line(body)
	var m jsonrpc.Message
	if code == "" {
		m, code = sc.Message(body)
	}
	if code == "" {
		code = sc.CheckCall(m)
	}
	if code == "" && s.log.Err() != nil {
		code = schemas.ReasonLogFailed
	}
	if code == "" && m.Kind != jsonrpc.Response && (m.Kind == jsonrpc.Request || !isNotice(m.Method)) {
		code = s.inFlight.room(m)
	}
	if code != "" {
		to, answer := sc.Addressee(body)
		ids := []jsonrpc.ID{to}
		if to.Key == "" && answer {
			ids = s.own(jsonrpc.Salvage(body, false))
		}
		s.log.messageRefused(fromClientSide, code)
		for _, id := range ids {
			if answer {
				s.toClient(refusedAnswer(id, code))
			}
		}
		return
	}
	switch {
	case m.Method == jsonrpc.MethodCall:
		s.decide(ctx, sc, m, line)
	case m.Kind == jsonrpc.Request, m.Kind == jsonrpc.Notification && !isNotice(m.Method):
		s.request(ctx, sc, m, line)
	case m.Kind == jsonrpc.Response && m.ID.Key != "":
		s.clientAnswers(sc, m, line)
	case m.Method == jsonrpc.MethodCancelled && s.cancels(sc, body):
		// that call never reached the server
	default:
		s.toServer(line)
	}
}

// isNotice reports whether a method is one that asks for nothing. Others are decided without
// an id too, because some servers do what they ask for.
func isNotice(method string) bool { return strings.HasPrefix(method, "notifications/") }

// cancels ends the request that a cancellation is for: its answer may never come, and what the server
// does from then on is not asked for any more. It reports whether that was a denied call.
func (s *session) cancels(sc *jsonrpc.Scanner, body []byte) (denied bool) {
	of, code := sc.Identify(jsonrpc.FieldRequestID, body)
	if code != "" {
		return false
	}
	if e := s.inFlight.cancel(of.Key); e != nil {
		s.finish(e, now(), schemas.OutcomeCancelled)
		return false
	}
	return slices.Contains(s.deniedIDs, of.Key)
}

// decide asks the policy about a tool call, records the decision, and forwards the
// call or answers it.
func (s *session) decide(ctx context.Context, sc *jsonrpc.Scanner, m jsonrpc.Message, line []byte) {
	start := now()
	arguments, ok := decode(line, sc.Value(jsonrpc.FieldArguments))
	meta, ok2 := decode(line, sc.Value(jsonrpc.FieldMeta))
	if !ok || !ok2 {
		s.refuse(m.ID, schemas.ReasonBadCall, m.Kind == jsonrpc.Request)
		return
	}
	if !s.roundRoots(sc, m, line) {
		return
	}
	by, release := s.hold()
	defer release()
	if _, bad := by.engine.CaseSmuggled(arguments); bad {
		release()
		s.refuse(m.ID, schemas.ReasonCaseKey, m.Kind == jsonrpc.Request)
		return
	}
	c := &call{number: s.calls, attempt: 1, tool: string(sc.Value(jsonrpc.FieldName).Text), startNS: start}
	if state := sc.Value(jsonrpc.FieldParamsState); state.Kind == '"' && !state.Cut {
		c.round, c.attempt = s.inFlight.resumed(state.Text, c.tool)
	}
	if c.round != nil {
		c.number, c.id = c.round.number, c.round.id
	} else {
		s.calls++
		if c.id, ok = findCallID(meta, arguments, s.o.CallIDKeys); !ok {
			c.id = declaredID(s.o.Name, m.ID, c.number)
		}
	}
	digest := policy.Digest(rawValue(line, sc.Value(jsonrpc.FieldArguments)))
	d := by.engine.Decide(ctx, &policy.Call{Digest: digest, Tool: c.tool, Arguments: arguments, Meta: meta, Dir: s.dir, Roots: s.rootDirs, Schema: s.schemas.of(c.tool)})
	d, would := s.audited(s.rates.limit(d, c.tool, time.Now()))
	e := schemas.ToolDecision{
		Call: c.number, Attempt: c.attempt, Tool: c.tool, Decision: schemas.DecisionAllow, ReasonCode: d.Reason, RuleID: d.RuleID,
		ToolCallID: c.id.id, ToolCallIDSource: c.id.source, PolicyDigest: by.digest,
		StartNS: start, Targets: d.Targets, TargetsCut: d.TargetsCut, Checked: d.Checked, WouldDeny: would,
		ArgumentsDigest: digest,
	}
	if _, out := by.engine.Redact(arguments); out != nil {
		e.ArgumentsDigest, e.Redacted = "", commitments(out, s.o.RedactKey) // the digest of a short value can be found by guessing
	}
	if !d.Allow {
		e.Decision, e.Outcome, e.EndNS = schemas.DecisionDeny, schemas.OutcomeDenied, now()
	}
	written := s.log.Decided(e)
	release()
	if !written {
		s.refuse(m.ID, schemas.ReasonLogFailed, m.Kind == jsonrpc.Request)
		return
	}
	if d.Allow {
		s.inFlight.add(&entry{id: m.ID, method: m.Method, call: c, mayBeTask: asksForTask(sc, line)})
		s.toServer(line)
		return
	}
	if m.Kind != jsonrpc.Request {
		return // a notification has no answer
	}
	if s.deniedIDs = append(s.deniedIDs, m.ID.Key); len(s.deniedIDs) > maxDeniedIDs {
		s.deniedIDs = slices.Delete(s.deniedIDs, 0, 1)
	}
	s.toClient(deniedAnswer(m.ID, d.Say, denial{d.Reason, d.RuleID, c.id.id, by.digest}, isModern(meta), s.o.DenyAsError))
}

// rawValue is a value as the line has it; nil for an absent one.
func rawValue(line []byte, v *jsonrpc.Value) []byte {
	if v.Kind == 0 {
		return nil
	}
	return line[v.Start:v.End]
}

// decode decodes a value in the line. The result for an absent one is nil.
func decode(line []byte, v *jsonrpc.Value) (any, bool) {
	if v.Kind == 0 {
		return nil, true
	}
	out, err := policy.Decode(rawValue(line, v))
	return out, err == nil
}

// isModern reports whether a request contains the protocol version, as every request of
// the stateless protocol does.
func isModern(meta any) bool {
	m, _ := meta.(map[string]any)
	_, ok := m[protocolKey].(string)
	return ok
}
