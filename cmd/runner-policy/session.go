package main

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// engine decides tool calls.
type engine interface {
	Decide(context.Context, *policy.Call) policy.Decision
	DecideRequest(context.Context, *policy.Request) policy.Decision
	DecideRoots(result any) policy.RootsDecision
	Hides(tool string) bool
	Redact(arguments any) (rest any, out []policy.Redacted)
	Denies() (names []string, cut bool)
	CaseSmuggled(arguments any) (key string, bad bool)
}

// session is one run of the proxy. It has two goroutines. One reads the client, decides
// and writes to the server; the other reads the server and writes to the client. Both
// can write to the client.
type session struct {
	o        Options
	rules    *rulings
	deciding sync.Mutex // held while a decision is made and recorded
	by       *ruling    // of the last decision; protected by deciding
	dir      string
	log      *decisionLog
	inFlight *inFlight // requests of the client
	asked    *inFlight // requests of the server
	tasks    tasks     // calls that go on after their answer

	schemas inputSchemas // of the server's tools
	rates   rates

	clientMu sync.Mutex // held while a whole line is written
	client   io.Writer
	cut      atomic.Bool // part of a line was written to the client and the rest will not be
	enderMu  sync.Mutex
	ender    string // who ended the session: the outcome of the calls still in flight

	serverMu       sync.Mutex
	server         io.Writer
	serverEnd      io.Closer
	closing        atomic.Bool
	isClosed       bool
	notReading     atomic.Bool   // the client has stopped reading
	stoppedReading chan struct{} // closed then
	stoppedOnce    sync.Once
	handling       sync.Mutex // held while a message of the client is handled
	over           bool       // protected by handling: no more messages are handled
	rootDirs       []string   // directories that the client offered as roots; protected by handling
	calls          uint64
	deniedIDs      []string // of the last denied calls
}

// endedBy notes who ended the session. Only the first call counts: later ends are
// consequences.
func (s *session) endedBy(outcome string) {
	s.enderMu.Lock()
	defer s.enderMu.Unlock()
	if s.ender == "" {
		s.ender = outcome
	}
}

func (s *session) whoEnded() string {
	s.enderMu.Lock()
	defer s.enderMu.Unlock()
	return s.ender
}

// toClient writes one line. It returns false if the client no longer reads.
func (s *session) toClient(line []byte) bool {
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	return s.writeClient(line)
}

// writeClient writes while clientMu is held.
func (s *session) writeClient(b []byte) bool {
	if s.notReading.Load() || s.cut.Load() {
		return false
	}
	if _, err := s.client.Write(b); err != nil {
		s.endedBy(schemas.OutcomeClientGone)
		s.notReading.Store(true)
		s.stoppedOnce.Do(func() { close(s.stoppedReading) })
		return false
	}
	return true
}

// toServer writes one line.
func (s *session) toServer(line []byte) bool {
	s.serverMu.Lock()
	defer s.serverMu.Unlock()
	if s.isClosed {
		return false
	}
	_, err := s.server.Write(line)
	if s.closing.Load() {
		s.closeLocked()
	}
	return err == nil
}

// closeServer closes the server's input, but not in the middle of a line: toServer does
// it then.
func (s *session) closeServer() {
	s.closing.Store(true)
	if s.serverMu.TryLock() {
		s.closeLocked()
		s.serverMu.Unlock()
	}
}

func (s *session) closeLocked() {
	if !s.isClosed {
		s.isClosed = true
		s.serverEnd.Close()
	}
}

// finish records the end of a request, once: one that was cancelled may still be answered. The caller took the time before the other side got
// the answer. Otherwise the client could begin the next call in the window of this one.
func (s *session) finish(e *entry, end uint64, outcome string) {
	if e.ended.Swap(true) {
		return
	}
	switch {
	case e.call != nil:
		s.log.callFinished(e.call, end, outcome)
	case e.request != nil:
		s.log.requestFinished(e.request, end, outcome)
	}
}

func newSession(o Options, rules *rulings, dir string, to decisions.File) *session {
	return &session{o: o, rules: rules, by: rules.Load(), dir: dir, log: newLog(to), inFlight: newInFlight(), asked: newInFlight(), stoppedReading: make(chan struct{})}
}
