package main

import (
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/schemas"
)

// decisionLog writes the lines of one session.
type decisionLog struct{ *decisions.Log }

func newLog(to decisions.File) *decisionLog {
	return &decisionLog{decisions.New(to, schemas.LogSource)}
}

func (l *decisionLog) started(name, digest, cwd string, denies []string, cut bool, proxy, server int) bool {
	return l.Started(schemas.SessionStarted{KtimeNS: now(), Name: name, PolicyDigest: digest,
		ProxyPID: uint32(proxy), ServerPID: uint32(server), Cwd: schemas.Text(cwd), Denies: denies, DeniesCut: cut})
}

func (l *decisionLog) messageRefused(direction, code string) bool {
	return l.Refused(schemas.MessageRefused{KtimeNS: now(), Direction: direction, ReasonCode: code})
}

func (l *decisionLog) requestFinished(r *request, end uint64, outcome string) bool {
	return l.RequestFinished(schemas.RequestFinished{Request: r.number, StartNS: r.startNS, EndNS: end, Outcome: outcome})
}

func (l *decisionLog) callFinished(c *call, end uint64, outcome string) bool {
	return l.Finished(schemas.CallFinished{Call: c.number, ToolCallID: c.id.id, StartNS: c.startNS, EndNS: end, Outcome: outcome})
}

func (l *decisionLog) ended(e child.Ending) bool {
	if e.Signal != 0 {
		return l.Ended(now(), nil, &e.Signal)
	}
	code := e.Status()
	return l.Ended(now(), &code, nil)
}

// now is the clock of the kernel events.
func now() uint64 { return clock.Monotonic() }
