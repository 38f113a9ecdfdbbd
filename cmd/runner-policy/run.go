package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// run starts the server and forwards messages until both sides have ended. Its error
// carries the server's exit status.
func (s *session) run(ctx context.Context, env *tool.Env, again reloader) error {
	environment := serverEnvironment() // before hide: after it, we could not read all of it
	hide()
	signals := child.WatchEnding()
	defer signals.Stop()
	srv, err := startServer(s.o, environment)
	if err != nil {
		return err
	}
	denies, cut := s.by.engine.Denies()
	if !s.log.started(s.o.Name, s.by.digest, s.dir, denies, cut, os.Getpid(), srv.PID()) {
		srv.Reap()
		return tool.Failf(tool.ExitOwn, "%s: writing the decision log: %w", s.o.Log.Name, s.log.Err())
	}
	s.client, s.server, s.serverEnd = writerOf(env.Stdout), writerOf(srv.in), srv.in
	if f, ok := env.Stdout.(*os.File); ok {
		child.WidenPipe(f)
	}
	clientDone, exited, serverDone := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { s.readClient(ctx, readerOf(env.Stdin)); close(clientDone) }()
	go func() { serverDone <- s.readServer(readerOf(srv.out)) }()
	go func() { srv.AwaitExit(); close(exited) }()
	err = s.watch(srv, watched{clientDone, exited, s.stoppedReading, serverDone, signals.C, again.on(s.rules)})
	e := srv.Reap()
	if end := s.end(e, errors.Is(err, errStuck)); end != nil {
		return tool.Failf(tool.ExitOwn, "%s: %w", s.o.Log.Name, end)
	}
	srv.out.Close()
	return s.verdict(env, e, err)
}

// watched are the events that end a session.
type watched struct {
	clientDone, exited, stoppedReading <-chan struct{}
	serverDone                         <-chan error
	signals                            <-chan os.Signal
	again                              func(os.Signal) bool
}

// errStuck means that the client no longer reads.
var errStuck = errors.New("the client did not read what the server had written")

// How far ending the session has got.
const (
	running = iota
	inputClosed
	terminated
	killed
	givenUp
)

// watch waits until the server has ended and all of its output was forwarded. When one
// side ends, the session ends: the server's input is closed. If the server does not end
// then, its process group gets TERM and later KILL.
func (s *session) watch(srv *server, w watched) (result error) {
	var timer <-chan time.Time
	stage := running
	advance := func(to int) {
		if stage >= to {
			return
		}
		stage, timer = to, time.After(s.o.Grace)
		s.closeServer()
		switch to {
		case terminated:
			srv.Terminate()
		case killed:
			srv.Kill()
			timer = time.After(time.Second)
		}
	}
	for w.exited != nil || w.serverDone != nil {
		select {
		case <-w.clientDone:
			w.clientDone = nil
			s.endedBy(schemas.OutcomeClientGone)
			advance(inputClosed)
		case <-w.stoppedReading:
			w.stoppedReading = nil
			advance(inputClosed)
		case result = <-w.serverDone:
			w.serverDone = nil
			s.endedBy(schemas.OutcomeServerGone)
			advance(inputClosed)
			if result != nil {
				advance(terminated)
			}
		case <-w.exited:
			w.exited = nil
			s.endedBy(schemas.OutcomeServerGone)
			advance(inputClosed)
		case sig := <-w.signals:
			if w.again(sig) {
				break
			}
			s.endedBy(schemas.OutcomeClientGone)
			advance(min(max(stage+1, terminated), killed))
		case <-timer:
			if stage+1 == givenUp {
				if w.exited == nil {
					return errStuck
				}
				stage = terminated // the process has not ended in spite of KILL: try again
			}
			advance(stage + 1)
		}
	}
	return result
}

// errNoEnd means that the last lines of the log could not be written.
var errNoEnd = errors.New("the decision log accepts no more lines, so the end of the session is missing in it")

// end answers the requests that are still in flight and writes the last lines of the log.
// A client or a log that nobody reads cannot block it.
func (s *session) end(e child.Ending, stuck bool) error {
	if !s.stop() {
		stuck = true // a write is blocked because nobody reads
	}
	outcome, end := s.whoEnded(), now()
	left, asked := s.inFlight.drain(), s.asked.drain()
	within := func(f func()) bool {
		done := make(chan struct{})
		go func() { f(); close(done) }()
		select {
		case <-done:
			return true
		case <-time.After(max(s.o.Grace, time.Second)):
			return false
		}
	}
	within(func() {
		for _, p := range left {
			if outcome == schemas.OutcomeServerGone && p.id.Key != "" && !p.cancelled && !stuck {
				s.toClient(goneAnswer(p.id, "the server has ended"))
			}
		}
	})
	written := within(func() {
		for _, p := range slices.Concat(left, asked, s.tasks.drain()) {
			s.finish(p, end, outcome)
		}
		s.log.ended(e)
	})
	if !written {
		return errNoEnd
	}
	return nil
}

// stop ends the handling of the client's messages. It returns false if the current one
// takes too long.
func (s *session) stop() bool {
	for range 100 {
		if s.handling.TryLock() {
			s.over = true
			s.handling.Unlock()
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// verdict is the exit status: the server's own, unless the proxy failed.
func (s *session) verdict(env *tool.Env, e child.Ending, err error) error {
	if why := s.log.Err(); why != nil {
		return tool.Failf(tool.ExitOwn, "%s: writing the decision log: %w", s.o.Log.Name, why)
	}
	if errors.Is(err, errCut) {
		return tool.Fail(tool.ExitOwn, err)
	}
	n := s.log.Counts()
	env.Infof("%d decisions, %d calls finished, %d messages refused", n.Decisions, n.Finished, n.Refused)
	if e.Status() == 0 {
		return nil
	}
	env.Infof("the server %s", e)
	return tool.Status(e.Status())
}
