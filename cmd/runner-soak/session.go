package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// session is one call that runs or judges.
type session struct {
	env      *tool.Env
	opt      *Options
	program  string // runner-exec
	judge    *judge
	folder   *folder // nil of --target
	deadline time.Time
	progress *progress

	mu      sync.Mutex
	queue   []job
	faults  []*series
	running map[*child.Process]bool
	killed  bool
	fatal   error // ends the soak: there is no report
	signal  int   // that ended it
	over    bool  // the time budget is used up
	refused map[int]refusal
	begun   int // runs that were started by this call
}

// series is all runs under one fault.
type series struct {
	Fault
	runs     []Run
	seen     seen
	failures int
	how      map[int]string // of runs that did not pass: why, for people
}

// job is one run to make, or one archive to judge.
type job struct {
	series *series
	index  int
	target string
}

// soak makes or judges all runs, and writes what they add up to.
func soak(ctx context.Context, env *tool.Env, opt Options) (err error) {
	if opt.Plan.Packs, err = packs(opt.Packs); err != nil {
		return err
	}
	s := &session{env: env, opt: &opt, running: map[*child.Process]bool{}, refused: map[int]refusal{}, deadline: time.Now().Add(opt.Budget)}
	if s.judge, err = newJudge(env, &opt); err != nil {
		return err
	}
	if opt.Targets == nil {
		if s.program, err = child.Sibling("runner-exec"); err != nil {
			return tool.Fail(tool.ExitIO, err)
		}
		if s.folder, err = openFolder(&opt); err != nil {
			return err
		}
	}
	s.plan()
	if err := s.startable(); err != nil {
		s.folder.undo()
		return child.Refusal(err, "nothing was run, nothing was written")
	}
	s.progress = newProgress(env, len(s.queue))
	s.work(ctx)
	s.progress.end()
	return s.finish()
}

// plan makes the list of what is to be done: iteration by iteration, each under all faults, so that
// what changes in the course of time changes for all faults.
func (s *session) plan() {
	if s.opt.Targets != nil {
		s.faults = []*series{{Fault: Fault{Name: noFault, Wrapper: []string{}}, how: map[int]string{}}}
	}
	for _, f := range s.opt.Faults {
		if s.opt.Targets == nil {
			s.faults = append(s.faults, &series{Fault: f, how: map[int]string{}})
		}
	}
	for i := 1; i <= s.opt.Plan.Iterations; i++ {
		if !s.opt.Plan.Shard.has(i) {
			continue
		}
		for _, f := range s.faults {
			j := job{series: f, index: i}
			if s.opt.Targets != nil {
				j.target = s.opt.Targets[i-1]
			}
			s.queue = append(s.queue, j)
		}
	}
}

// startable looks for the command of each fault that has a run to make. Runs that were made before are judged without it.
func (s *session) startable() error {
	looked := map[*series]bool{}
	for _, j := range s.queue {
		if j.target != "" || looked[j.series] {
			continue
		}
		if rec, err := s.folder.kept(j.series.Name, j.index); rec != nil || err != nil { // an error is said when it is its turn
			continue
		}
		looked[j.series] = true
		if _, err := child.Look(append(slices.Clone(j.series.Wrapper), s.opt.Command...)[0]); err != nil {
			return err
		}
	}
	return nil
}

// work does all jobs, several at once. A run is judged while the next one runs, unless the judgement
// decides whether there is a next one.
func (s *session) work(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := child.WatchEnding()
	defer signals.Stop()
	done := make(chan struct{})
	go s.listen(signals, cancel, done)

	var workers, judging sync.WaitGroup
	judges := make(chan struct{}, s.opt.Jobs)
	for range s.opt.Jobs {
		workers.Go(func() {
			for {
				j, ok := s.next()
				if !ok {
					return
				}
				made := s.make(j)
				if s.opt.Plan.Policy.waits() || j.target != "" {
					s.conclude(ctx, j, made)
					continue
				}
				judges <- struct{}{}
				judging.Go(func() {
					s.conclude(ctx, j, made)
					<-judges
				})
			}
		})
	}
	workers.Wait()
	judging.Wait()
	close(done)
}

// next takes the next job, unless there is a reason to stop.
func (s *session) next() (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.fatal == nil && s.signal == 0 {
		if time.Now().After(s.deadline) {
			s.over = true
			return job{}, false
		}
		j := s.queue[0]
		s.queue = s.queue[1:]
		if s.opt.Plan.Policy.stops(j.series.failures) {
			s.progress.skip()
			continue
		}
		return j, true
	}
	return job{}, false
}

// grace is what runs have to end after a signal: runner-exec passes it on to the command.
const grace = 10 * time.Second

// listen ends the soak at the first signal: what runs is asked to end, and killed after a while or at
// the second signal.
func (s *session) listen(signals *child.Signals, cancel func(), done chan struct{}) {
	var kill <-chan time.Time
	for {
		select {
		case <-done:
			return
		case sig := <-signals.C:
			n := child.AsksToEnd(sig)
			if n == 0 {
				continue
			}
			cancel()
			if s.interrupt(n, sig) {
				kill = time.After(grace)
				continue
			}
			s.kill()
		case <-kill:
			s.kill()
		}
	}
}

// interrupt asks the runs to end, and reports whether this was the first time.
func (s *session) interrupt(n int, sig os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal != 0 {
		return false
	}
	s.signal = n
	s.progress.say("%v: ending what runs; again kills it", sig)
	for p := range s.running {
		p.Signal(terminate)
	}
	return true
}

func (s *session) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for p := range s.running {
		s.env.Warnf("killing process %d and its group", p.PID())
		p.Kill()
	}
}

// started notes a process that a signal must reach.
func (s *session) started(p *child.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	s.running[p] = true
	if s.signal != 0 || s.fatal != nil {
		p.Signal(terminate)
	}
	if s.killed {
		p.Kill()
	}
}

func (s *session) ended(p *child.Process) (interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
	return s.signal != 0 || s.fatal != nil
}

// fail ends the soak without a report.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal != nil || s.signal != 0 {
		return
	}
	s.fatal = err
	for p := range s.running {
		p.Signal(terminate)
	}
}
