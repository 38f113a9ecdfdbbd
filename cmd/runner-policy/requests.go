package main

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// methodRoots is the request of a server for the directories that it may work in.
const methodRoots = "roots/list"

// judge decides a request that is no tool call and records the decision. The result is
// nil if it must not be forwarded; code is then the reason of a message that is refused,
// or "" for a request that the policy denies.
func (s *session) judge(ctx context.Context, direction string, m jsonrpc.Message, params any) (r *request, d policy.Decision, code string) {
	start := now()
	by, release := s.hold()
	defer release()
	q := &policy.Request{Method: m.Method, Params: params, Dir: s.dir}
	d, would := s.audited(by.engine.DecideRequest(ctx, q))
	d.By = by.digest
	target := q.Target()
	e := schemas.RequestDecision{Direction: direction, Method: m.Method, Target: schemas.Text(target[:min(len(target), maxTargetName)]),
		Decision: schemas.DecisionAllow, ReasonCode: d.Reason, RuleID: d.RuleID, PolicyDigest: by.digest, StartNS: start,
		Targets: d.Targets, TargetsCut: d.TargetsCut, WouldDeny: would}
	if !d.Allow {
		e.Decision, e.EndNS = schemas.DecisionDeny, now()
	}
	number, ok := s.log.RequestDecided(e)
	switch {
	case !ok:
		return nil, d, schemas.ReasonLogFailed
	case !d.Allow:
		return nil, d, ""
	}
	return &request{number, start}, d, ""
}

// audited turns a denial into a decision that only says what the policy would have denied,
// if the session only watches.
func (s *session) audited(d policy.Decision) (_ policy.Decision, would string) {
	if d.Allow || !s.o.Audit {
		return d, ""
	}
	would, d.Allow, d.Reason = d.Reason, true, schemas.ReasonAllowAudit
	return d, would
}

// maxTargetName is how many bytes of a request's target are recorded.
const maxTargetName = 4096

// request handles a request of the client that is no tool call.
func (s *session) request(ctx context.Context, sc *jsonrpc.Scanner, m jsonrpc.Message, line []byte) {
	params, ok := decode(line, sc.Value(jsonrpc.FieldParams))
	if !ok {
		s.refuse(m.ID, schemas.ReasonNotJSONRPC, m.Kind == jsonrpc.Request)
		return
	}
	if !s.roundRoots(sc, m, line) {
		return
	}
	r, d, code := s.judge(ctx, fromClientSide, m, params)
	switch {
	case code != "":
		s.refuse(m.ID, code, m.Kind == jsonrpc.Request)
	case r == nil && m.Kind == jsonrpc.Request:
		s.toClient(s.deniedRequest(m.ID, d))
	case r == nil:
		// nobody waits for an answer
	default:
		s.inFlight.add(&entry{id: m.ID, method: m.Method, request: r, task: taskOf(m.Method, params)})
		s.toServer(line)
	}
}

// ask decides a request of the server; line is nil for one that is too long to be read.
// If it must not be forwarded, the server is told and the result is false.
func (v *serverReader) ask(m jsonrpc.Message, line []byte) bool {
	m.ID = m.ID.Written()
	code := v.asked.room(m)
	var params any
	if code == "" && line != nil {
		params, _ = decode(line, v.sc.Value(jsonrpc.FieldParams)) // texts of the server can have no form in UTF-8
	}
	if code == "" {
		var r *request
		var d policy.Decision
		if r, d, code = v.judge(context.Background(), fromServerSide, m, params); r != nil {
			v.asked.add(&entry{id: m.ID, method: m.Method, request: r})
			return true
		} else if code == "" {
			v.toServer(v.deniedRequest(m.ID, d))
			return false
		}
	}
	v.log.messageRefused(fromServerSide, code)
	v.toServer(refusedAnswer(m.ID, code))
	return false
}

// clientAnswers forwards an answer of the client to a request of the server. Answers to no
// request are refused: a server could take the id for another one.
func (s *session) clientAnswers(sc *jsonrpc.Scanner, m jsonrpc.Message, line []byte) {
	e := s.asked.find(m.ID.Key)
	if e == nil {
		s.refuse(m.ID, schemas.ReasonBadID, false)
		return
	}
	end, outcome := now(), outcomeOf(sc)
	if e.method == methodRoots && sc.Has(jsonrpc.FieldResult) {
		result, _ := decode(line, sc.Value(jsonrpc.FieldResult))
		d, written := s.roots(e.request, result)
		if !written {
			line, outcome = refusedAnswer(e.id, schemas.ReasonLogFailed), schemas.OutcomeError
		} else if !d.Allow {
			line, outcome = deniedRoots(e.id, d), schemas.OutcomeError
		}
	}
	s.asked.answered(m.ID.Key)
	s.finish(e, end, outcome)
	s.toServer(line)
}

// roots decides roots and records the decision. The result is false if that is not in the log.
func (s *session) roots(r *request, result any) (d policy.RootsDecision, written bool) {
	by, release := s.hold()
	defer release()
	d = by.engine.DecideRoots(result)
	d.By = by.digest
	if s.o.Audit {
		d.Allow = true
	}
	if d.Allow {
		s.rootDirs = d.Dirs
	}
	e := schemas.RootsDecision{Request: r.number, KtimeNS: now(), Decision: schemas.DecisionAllow, ReasonCode: d.Reason,
		PolicyDigest: by.digest, Roots: d.Roots, RootsCut: d.Cut}
	switch {
	case !d.Allow:
		e.Decision = schemas.DecisionDeny
	case d.Reason == schemas.ReasonDenyRoots: // audited
		e.ReasonCode, e.WouldDeny = schemas.ReasonAllowAudit, d.Reason
	}
	return d, s.log.RootsDecided(e)
}

// deniedRequest is the line that answers a denied request.
func (s *session) deniedRequest(to jsonrpc.ID, d policy.Decision) []byte {
	return errorLine(to, rpcError{errDenied, d.Reason + ": " + d.Say, &errorData{ReasonCode: d.Reason, RuleID: d.RuleID, PolicyDigest: d.By}})
}

// deniedRoots is the line that the server gets instead of roots that it must not have.
func deniedRoots(to jsonrpc.ID, d policy.RootsDecision) []byte {
	return errorLine(to, rpcError{errDenied, d.Reason + ": " + d.Say, &errorData{ReasonCode: d.Reason, PolicyDigest: d.By}})
}

// roundRoots decides roots that a client gives in the request with which a call goes on
// (modern protocol). If they are denied, the request is answered and must not be forwarded.
func (s *session) roundRoots(sc *jsonrpc.Scanner, m jsonrpc.Message, line []byte) bool {
	answers, _ := decode(line, sc.Value(jsonrpc.FieldInputResponses))
	list, _ := answers.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !policy.HasRoots(list[name]) {
			continue
		}
		ask := jsonrpc.Message{Kind: jsonrpc.Request, Method: methodRoots}
		r, _, code := s.judge(context.Background(), fromServerSide, ask, nil)
		if r == nil {
			s.refuse(m.ID, cmp.Or(code, schemas.ReasonBadCall), m.Kind == jsonrpc.Request)
			return false
		}
		d, ok := s.roots(r, list[name])
		outcome := schemas.OutcomeCompleted
		if !ok || !d.Allow {
			outcome = schemas.OutcomeError
		}
		s.log.requestFinished(r, now(), outcome)
		switch {
		case !ok:
			s.refuse(m.ID, schemas.ReasonLogFailed, m.Kind == jsonrpc.Request)
			return false
		case !d.Allow:
			if m.Kind == jsonrpc.Request {
				s.toClient(deniedRoots(m.ID, d))
			}
			return false
		}
	}
	return true
}

// inputRequests decides what a server asks of the client in an answer (modern protocol).
// The result is the line that the client gets instead if one of them is denied. Roots are
// decided when the client gives them.
func (v *serverReader) inputRequests(e *entry, line []byte) []byte {
	if outcomeOf(v.sc) != schemas.OutcomeInputRequired {
		return nil
	}
	result, ok := decode(line, v.sc.Value(jsonrpc.FieldResult))
	m, _ := result.(map[string]any)
	list, isMap := m["inputRequests"].(map[string]any)
	if !ok || m["inputRequests"] != nil && !isMap {
		return goneAnswer(e.id, "the server asks for input in a form that cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q, _ := list[name].(map[string]any)
		method, _ := q["method"].(string)
		if method == methodRoots {
			continue
		}
		r, d, code := v.judge(context.Background(), fromServerSide, jsonrpc.Message{Kind: jsonrpc.Request, Method: cmp.Or(method, "unknown")}, q["params"])
		switch {
		case code != "":
			return refusedAnswer(e.id, code)
		case r == nil:
			return v.deniedRequest(e.id, d)
		}
		v.log.requestFinished(r, now(), schemas.OutcomeCompleted)
	}
	return nil
}

// asksFreely reports whether a server may ask for anything: then an answer that is too long
// to be read can pass.
func (v *serverReader) asksFreely() bool {
	return v.o.Audit || v.rules.Load().engine.DecideRequest(context.Background(), &policy.Request{Method: "sampling/createMessage"}).Allow
}
