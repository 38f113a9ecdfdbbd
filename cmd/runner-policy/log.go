package main

import (
	"crypto/rand"
	"encoding/hex"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/schemas"
)

// decisionLog writes the lines of one session, each with one write. After the first
// line that could not be written completely it writes nothing more.
type decisionLog struct {
	mu      sync.Mutex
	to      logFile
	session string
	seq     uint64
	err     error

	decisions, denied, finished, refused, requests uint64
}

// logFile is the destination of the lines. Each call makes one write.
type logFile interface {
	writeLine(b []byte) (int, error)
	Close() error
}

func newLog(to logFile) *decisionLog {
	var b [8]byte
	rand.Read(b[:])
	return &decisionLog{to: to, session: hex.EncodeToString(b[:])}
}

// put writes one line. It returns false if the line is not in the log.
func put[D any](l *decisionLog, kind string, data func(schemas.LogHead) D) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	head := schemas.LogHead{Session: l.session, Seq: l.seq}
	b, err := schemas.Marshal(schemas.LogEntry[D]{
		SpecVersion: schemas.LogSpecVersion, ID: l.session + "-" + utoa(l.seq), Type: kind, Source: schemas.LogSource, Data: data(head),
	})
	if err == nil {
		_, err = l.to.writeLine(append(b, '\n'))
	}
	if err != nil {
		l.err = err
		return false
	}
	l.seq++
	switch kind {
	case schemas.LogDecision:
		l.decisions++
	case schemas.LogCallFinished:
		l.finished++
	case schemas.LogMessageRefused:
		l.refused++
	}
	return true
}

// failure is the error that ended the log early, or nil.
func (l *decisionLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *decisionLog) started(name, digest, cwd string, denies []string, cut bool, proxy, server int) bool {
	return put(l, schemas.LogSessionStarted, func(h schemas.LogHead) schemas.SessionStarted {
		return schemas.SessionStarted{LogHead: h, KtimeNS: now(), Name: name, PolicyDigest: digest,
			ProxyPID: uint32(proxy), ServerPID: uint32(server), Cwd: schemas.Text(cwd), Denies: denies, DeniesCut: cut}
	})
}

func (l *decisionLog) reloaded(digest string, denies []string, cut bool) bool {
	return put(l, schemas.LogPolicyReloaded, func(h schemas.LogHead) schemas.PolicyReloaded {
		return schemas.PolicyReloaded{LogHead: h, KtimeNS: now(), PolicyDigest: digest, Denies: denies, DeniesCut: cut}
	})
}

func (l *decisionLog) messageRefused(direction, code string) bool {
	return put(l, schemas.LogMessageRefused, func(h schemas.LogHead) schemas.MessageRefused {
		return schemas.MessageRefused{LogHead: h, KtimeNS: now(), Direction: direction, ReasonCode: code}
	})
}

func (l *decisionLog) decided(d schemas.ToolDecision) bool {
	return put(l, schemas.LogDecision, func(h schemas.LogHead) schemas.ToolDecision {
		if d.Decision == schemas.DecisionDeny {
			l.denied++
		}
		d.LogHead = h
		return d
	})
}

// requestDecided gives the request its number.
func (l *decisionLog) requestDecided(d schemas.RequestDecision) (number uint64, ok bool) {
	ok = put(l, schemas.LogRequestDecided, func(h schemas.LogHead) schemas.RequestDecision {
		d.LogHead, d.Request = h, l.requests
		number = l.requests
		l.requests++
		return d
	})
	return number, ok
}

func (l *decisionLog) requestFinished(r *request, end uint64, outcome string) bool {
	return put(l, schemas.LogRequestFinished, func(h schemas.LogHead) schemas.RequestFinished {
		return schemas.RequestFinished{LogHead: h, Request: r.number, StartNS: r.startNS, EndNS: end, Outcome: outcome}
	})
}

func (l *decisionLog) rootsDecided(d schemas.RootsDecision) bool {
	return put(l, schemas.LogRootsDecided, func(h schemas.LogHead) schemas.RootsDecision {
		d.LogHead, d.KtimeNS = h, now()
		return d
	})
}

func (l *decisionLog) callFinished(c *call, end uint64, outcome string) bool {
	return put(l, schemas.LogCallFinished, func(h schemas.LogHead) schemas.CallFinished {
		return schemas.CallFinished{LogHead: h, Call: c.number, ToolCallID: c.id.id, StartNS: c.startNS, EndNS: end, Outcome: outcome}
	})
}

func (l *decisionLog) ended(e child.Ending) bool {
	return put(l, schemas.LogSessionFinished, func(h schemas.LogHead) schemas.SessionFinished {
		f := schemas.SessionFinished{LogHead: h, KtimeNS: now(), Decisions: l.decisions, Finished: l.finished,
			Unfinished: l.decisions - l.denied - l.finished, Refused: l.refused}
		if e.Signal != 0 {
			f.ServerSignal = &e.Signal
		} else {
			code := e.Status()
			f.ServerExit = &code
		}
		return f
	})
}

// now is the clock of the kernel events.
func now() uint64 { return clock.Monotonic() }
