package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// patience bounds every wait for something that was killed or asked to end.
const patience = 10 * time.Second

// supervisor is one run from the first stage to the sealed archive.
type supervisor struct {
	opt     Options
	env     *tool.Env
	program string
	out     *outputs
	signals *child.Signals
	scope   *scope // nil without a kernel layer
	logs    *logs  // nil if no log is collected
	pipe    *pipeline
	cmd     *child.Process
	cmdEnd  chan child.Ending
	end     *child.Ending // once the command has ended
	wrapped bool          // the command begins with a wrapper
	report  *os.File      // where the last wrapper reports the command's end
	records *records      // nil if nothing is recorded beside the layers
	chain   []string      // the wrappers, once the command has ended
	behind  []string      // the command behind them
}

func (s *supervisor) run() error {
	begin := time.Now()
	if err := s.awaitReady(); err != nil {
		return s.giveUp(err)
	}
	defer s.opt.Confine.Close() // all have ended that may wait for runner-capture's answer
	if err := s.opt.Confine.Require(&s.pipe.needs); err != nil {
		return s.giveUp(err)
	}
	if s.wrapped && s.opt.Confine.Any() {
		return s.giveUp(errWrappedConfined())
	}
	if s.scope != nil {
		s.scope.taken()
	}
	s.env.Infof("ready after %v", time.Since(begin).Round(time.Millisecond))
	s.signals.All()
	if err := s.pipe.rec.started(s.opt); err != nil {
		return s.giveUp(err)
	}
	if err := s.startCommand(); err != nil {
		return s.giveUp(err)
	}
	if err := s.watchCommand(); err != nil {
		return s.giveUp(err)
	}
	s.logs.mark()
	s.env.Infof("command %s", s.end)
	s.finishLogs()
	if err := s.pipe.rec.finished(*s.end); err != nil {
		return s.giveUp(err)
	}
	s.pipe.hurry()
	if err := s.records.finish(s); err != nil {
		return s.giveUp(err)
	}
	if err := s.drain(); err != nil {
		return s.giveUp(err)
	}
	s.pipe.pumps.Wait()
	if err := s.pipe.failure(); err != nil {
		return s.giveUp(err)
	}
	s.pipe.printMessages(s.env.Stderr)
	err := s.out.commit()
	if s.scope != nil {
		// Usually runner-capture has removed it. A cgroup that remains would block the
		// next run with this name.
		if err := s.scope.remove(patience); err != nil {
			s.env.Warnf("%v", err)
		}
	}
	if err != nil {
		return err
	}
	if code := s.end.Status(); code != 0 {
		return tool.Status(code)
	}
	return nil
}

// errStage means that a stage ended early; giveUp finds out which.
var errStage = errors.New("a stage ended early")

// awaitReady waits until the hooks are attached and the first canary was seen.
func (s *supervisor) awaitReady() error {
	for {
		select {
		case err := <-s.pipe.ready:
			if err == nil {
				return nil
			}
			s.pipe.ready = nil // runner-capture ends next, and its status explains more
			if s.pipe.running() == len(s.pipe.stages) {
				select {
				case st := <-s.pipe.ended:
					s.pipe.note(st)
				case <-time.After(patience):
					return err
				}
			}
			return errStage
		case st := <-s.pipe.ended:
			s.pipe.note(st)
			st.early = true
			return errStage
		case sig := <-s.signals.C:
			if n := child.AsksToEnd(sig); n != 0 {
				s.env.Warnf("%v before the command was started: nothing was run", sig)
				return tool.Status(128 + n)
			}
		}
	}
}

func (s *supervisor) startCommand() error {
	stdout := stdoutOf(s.env)
	if s.opt.Stdouts() > 0 {
		stdout = stderrOf(s.env) // the record goes to stdout
	}
	files := []*os.File{stdinOf(s.env), stdout, stderrOf(s.env)}
	o := child.Options{Name: s.opt.Command[0], Program: s.program, Args: s.opt.Command,
		Env: s.opt.User.Environment(s.logs.environment(child.Environ())), Files: files,
		User: s.opt.User.Credential()}
	if s.scope != nil {
		o.Cgroup = s.scope.at
	}
	if s.opt.Confine.Any() {
		o.Around = s.opt.Confine.Start
	}
	start := child.Start
	if s.wrapped {
		start = s.startWrapped
	}
	var err error
	if o.Files, err = s.records.files(files); err != nil {
		return err
	}
	p, err := start(o)
	s.records.started()
	if err != nil && s.scope != nil && !s.scope.exists() {
		return s.scopeGone(err)
	}
	if err != nil {
		return s.opt.notStarted(err, s.program)
	}
	s.cmd, s.cmdEnd = p, make(chan child.Ending, 1)
	go func() { s.cmdEnd <- p.Wait() }()
	return nil
}

// watchCommand passes signals on until the command has ended.
func (s *supervisor) watchCommand() error {
	var timeout, kill <-chan time.Time
	killed := false
	if s.opt.Timeout > 0 {
		timeout = time.After(s.opt.Timeout)
	}
	for {
		select {
		case e := <-s.cmdEnd:
			s.end = &e
			if !s.wrapped {
				return nil
			}
			var err error
			*s.end, err = s.wrappedEnd(e)
			return err
		case st := <-s.pipe.ended:
			s.pipe.note(st)
			st.early = true
			return errStage
		case err := <-s.logs.brokenLog():
			s.pipe.fail(err)
			return err
		case sig := <-s.signals.C:
			if !child.FromTerminal(sig) {
				s.cmd.Signal(sig)
			}
		case <-timeout:
			s.env.Warnf("the command has run for %v: sending it SIGTERM", s.opt.Timeout)
			s.cmd.Terminate()
			kill = time.After(s.opt.Grace)
		case <-kill:
			s.env.Warnf("the command is still running %v after SIGTERM: killing it", s.opt.Grace)
			if s.wrapped && s.scope != nil && !killed { // a wrapper that is killed leaves no record
				killed, kill = true, time.After(patience)
				if err := s.scope.killAll(); err != nil {
					s.env.Warnf("%v", err)
				}
				continue
			}
			s.killAll()
		}
	}
}

// killAll ends the command and, where there is a cgroup, all its descendants.
func (s *supervisor) killAll() {
	if s.scope != nil {
		if err := s.scope.killAll(); err != nil {
			s.env.Warnf("%v", err)
		}
	}
	if s.cmd != nil && s.end == nil {
		s.cmd.Kill()
	}
}

// finishLogs completes the collected logs while the stages finish the record.
func (s *supervisor) finishLogs() {
	var empty func() error
	if s.scope != nil {
		empty = s.scope.empty // after it returns, no process of the run can write any more
	}
	s.logs.finish(s.pipe, empty, s.opt.Grace)
}

// clearLogs removes the FIFOs and their directory.
func (s *supervisor) clearLogs() {
	if err := s.logs.close(); err != nil {
		s.env.Warnf("%v", err)
	}
}

// drain waits for the stages to finish the record.
func (s *supervisor) drain() error {
	asked := 0
	written := s.logs.written()
	for s.pipe.running() > 0 || written != nil {
		select {
		case <-written:
			written = nil
		case st := <-s.pipe.ended:
			s.pipe.note(st)
			if st.end.Status() != 0 {
				return errStage
			}
		case sig := <-s.signals.C:
			if child.AsksToEnd(sig) == 0 {
				continue
			}
			switch asked++; asked {
			case 1:
				s.env.Sayf("%v: the command has ended and the record is being finished; send it again to kill the processes still running", sig)
			case 2:
				s.killAll()
				if s.scope == nil {
					s.logs.stopWaiting() // without a cgroup, the writers that remain cannot be killed: only stop waiting
				}
			default:
				return tool.Failf(tool.ExitOwn, "%v: gave up the record, nothing was written", sig)
			}
		}
	}
	return nil
}

// giveUp cleans up after a failure: it ends the command and the stages, and removes
// the cgroup and all files. The result explains the failure, once.
func (s *supervisor) giveUp(cause error) error {
	s.killAll()
	s.logs.abandon()
	if s.pipe != nil {
		s.pipe.stop(patience / 2)
	}
	running := s.cmd != nil && s.end == nil
	if running {
		select {
		case <-s.cmdEnd:
		case <-time.After(patience):
			s.env.Warnf("process %d was killed but has not ended", s.cmd.PID())
		}
	}
	if s.scope != nil {
		if err := s.scope.remove(patience); err != nil {
			s.env.Warnf("%v", err)
		}
	}
	s.out.discard()
	return s.explain(cause, running)
}

func (s *supervisor) explain(cause error, running bool) error {
	if s.pipe != nil {
		if err := s.pipe.failure(); err != nil {
			return tool.Failf(tool.ExitOwn, "%w; %s", err, s.aftermath(running))
		}
	}
	var coded *tool.Error
	if errors.As(cause, &coded) {
		return cause
	}
	if s.pipe == nil {
		return ownFailure(cause)
	}
	st := s.pipe.culprit()
	if st == nil {
		return tool.Failf(tool.ExitOwn, "%w; %s", cause, s.aftermath(running))
	}
	if st.said != nil {
		s.env.Stderr.Write(st.said.Bytes())
	}
	if s.cmd == nil && st.name == "runner-capture" && st.end.Status() == tool.ExitCannot {
		return tool.Status(tool.ExitCannot) // it has printed what is missing
	}
	var hints []string
	if st.end.Status() == tool.ExitIO && st.name != "runner-capture" {
		hints = append(hints, "with --spool-dir DIR the recording outlives such a failure")
	}
	return tool.Fail(tool.ExitOwn, fmt.Errorf("%s %s before the record was complete; %s",
		st.name, st.end, s.aftermath(running)), hints...)
}

func (s *supervisor) aftermath(running bool) string {
	switch {
	case s.cmd == nil:
		return "the command was not run"
	case running:
		return "the command was killed, nothing was written"
	}
	return fmt.Sprintf("the command %s, nothing was written", s.end)
}
