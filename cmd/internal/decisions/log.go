// Package decisions writes decision logs (schemas/POLICY.md, "Decision log").
package decisions

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/pidspace"
	"github.com/runner-evidence/runner/schemas"
)

// Log writes the lines of one session, each with one write. After the first line that could not be
// written completely it writes nothing more. Any number of goroutines may use it.
type Log struct {
	mu      sync.Mutex
	to      File
	source  string
	session string
	seq     uint64
	err     error
	counts  Counts
}

// Counts are the lines of a session, by type.
type Counts struct{ Decisions, Denied, Finished, Refused, Requests uint64 }

// File is the destination of the lines. Each call of WriteLine makes one write.
type File interface {
	WriteLine(b []byte) (int, error)
	Close() error
}

// errOther is a file that is no decision log.
var errOther = errors.New("it is kept as it is, because it is no decision log")

// checkBegin refuses a file that is something else: a line that is appended to it would damage it.
func checkBegin(f io.ReaderAt) error {
	head := make([]byte, schemas.MaxLogLine+1)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil // it cannot be read, only written
	}
	policy, _ := schemas.LayerOf(schemas.LayerPolicy)
	if why := policy.Begins(head[:n]); why != nil {
		return fmt.Errorf("%w: %w", errOther, why)
	}
	return nil
}

// Shared is a file that several sessions of one process write.
func Shared(f File) File { return &shared{File: f} }

type shared struct {
	mu sync.Mutex
	File
}

// WriteLine writes one line, alone.
func (l *shared) WriteLine(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.File.WriteLine(b)
}

// New returns the log of a new session. The source is one of schemas.LogSources.
func New(to File, source string) *Log {
	var b [8]byte
	rand.Read(b[:])
	return &Log{to: to, source: source, session: hex.EncodeToString(b[:])}
}

// Session is the random name of the session.
func (l *Log) Session() string { return l.session }

// put writes one line. It returns false if the line is not in the log.
func put[D any](l *Log, kind string, data func(schemas.LogHead, *Counts) D) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	counts := l.counts
	b, err := schemas.Marshal(schemas.LogEntry[D]{
		SpecVersion: schemas.LogSpecVersion, ID: l.session + "-" + strconv.FormatUint(l.seq, 10), Type: kind, Source: l.source,
		Data: data(schemas.LogHead{Session: l.session, Seq: l.seq}, &counts),
	})
	if err == nil {
		_, err = l.to.WriteLine(append(b, '\n'))
	}
	if err != nil {
		l.err = err
		return false
	}
	l.seq, l.counts = l.seq+1, counts
	return true
}

// Err is the error that ended the log early, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Counts are those of the lines that were written.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Started writes the first line, with the pid namespace that we are in. Like all methods below it returns false if the
// line is not in the log.
func (l *Log) Started(d schemas.SessionStarted) bool {
	d.PIDNS = pidspace.Own()
	return put(l, schemas.LogSessionStarted, func(h schemas.LogHead, _ *Counts) schemas.SessionStarted { d.LogHead = h; return d })
}

// Reloaded writes that another reading of the policy decides from here on.
func (l *Log) Reloaded(d schemas.PolicyReloaded) bool {
	return put(l, schemas.LogPolicyReloaded, func(h schemas.LogHead, _ *Counts) schemas.PolicyReloaded { d.LogHead = h; return d })
}

// Refused writes that a message was refused.
func (l *Log) Refused(d schemas.MessageRefused) bool {
	return put(l, schemas.LogMessageRefused, func(h schemas.LogHead, n *Counts) schemas.MessageRefused {
		n.Refused++
		d.LogHead = h
		return d
	})
}

// Decided writes a decision.
func (l *Log) Decided(d schemas.ToolDecision) bool {
	return put(l, schemas.LogDecision, func(h schemas.LogHead, n *Counts) schemas.ToolDecision {
		if n.Decisions++; d.Decision == schemas.DecisionDeny {
			n.Denied++
		}
		d.LogHead = h
		return d
	})
}

// Finished writes the end of a call.
func (l *Log) Finished(d schemas.CallFinished) bool {
	return put(l, schemas.LogCallFinished, func(h schemas.LogHead, n *Counts) schemas.CallFinished {
		n.Finished++
		d.LogHead = h
		return d
	})
}

// RequestDecided writes the decision about a request that is no tool call, and gives it its number.
func (l *Log) RequestDecided(d schemas.RequestDecision) (number uint64, ok bool) {
	ok = put(l, schemas.LogRequestDecided, func(h schemas.LogHead, n *Counts) schemas.RequestDecision {
		d.LogHead, d.Request, number = h, n.Requests, n.Requests
		n.Requests++
		return d
	})
	return number, ok
}

// RequestFinished writes the end of such a request.
func (l *Log) RequestFinished(d schemas.RequestFinished) bool {
	return put(l, schemas.LogRequestFinished, func(h schemas.LogHead, _ *Counts) schemas.RequestFinished { d.LogHead = h; return d })
}

// RootsDecided writes the decision about a client's roots.
func (l *Log) RootsDecided(d schemas.RootsDecision) bool {
	return put(l, schemas.LogRootsDecided, func(h schemas.LogHead, _ *Counts) schemas.RootsDecision { d.LogHead = h; return d })
}

// Ended writes the last line. exit and signal say how the server ended; nil is unknown.
func (l *Log) Ended(ktime uint64, exit, signal *int) bool {
	return put(l, schemas.LogSessionFinished, func(h schemas.LogHead, n *Counts) schemas.SessionFinished {
		return schemas.SessionFinished{LogHead: h, KtimeNS: ktime, Decisions: n.Decisions, Finished: n.Finished,
			Unfinished: n.Decisions - n.Denied - n.Finished, Refused: n.Refused, ServerExit: exit, ServerSignal: signal}
	})
}
