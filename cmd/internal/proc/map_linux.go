package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Map gives jobs to workers, each a process of the same request, and returns their results in the order of the jobs. Job
// i goes to worker i modulo their number. Any failure is one of the whole.
func (r *Runner) Map(request, caps []byte, workers int, jobs [][]byte) ([][]byte, error) {
	results := make([][]byte, len(jobs))
	workers = min(workers, len(jobs))
	if p := r.Policy; p != nil && (workers > int(p.MaxLive) || uint64(workers) > p.MaxSpawns) {
		return nil, fmt.Errorf("%s: %d workers", PolicyDenied, workers)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && err != nil {
			failed = err
			go r.Stop()
		}
	}
	for n := range workers {
		o, c := r.decide(ToolPool, request, caps)
		var x *Process
		if o.Code == 0 {
			x = r.launch(o)
		}
		if x == nil {
			fail(fmt.Errorf("%s: %s", o.Code, o.Why))
			break
		}
		all.Go(func() { fail(r.worker(x, o, c, n, workers, jobs, results)) })
	}
	all.Wait()
	return results, failed
}

// worker lets one process do its jobs.
func (r *Runner) worker(x *Process, o *Outcome, c *Caps, n, workers int, jobs, results [][]byte) error {
	var stopped atomic.Pointer[over]
	stop := func(code Code, why string) {
		if stopped.CompareAndSwap(nil, &over{code, why}) {
			x.Signal(unix.SIGKILL)
		}
	}
	if t := o.Verdict.TimeoutMS; t > 0 {
		defer time.AfterFunc(time.Duration(t)*time.Millisecond, func() { stop(Timeout, c.overTime(t)) }).Stop()
	}
	var writes sync.WaitGroup
	writes.Go(func() {
		defer x.Stdin.Close()
		x.Stdin.Write(o.Request.Stdin)
		for i := n; i < len(jobs); i += workers {
			if writeJob(x.Stdin, i+1, jobs[i]) != nil {
				return // it has ended, which its answers show
			}
		}
	})
	writes.Go(func() {
		if _, err := io.CopyN(io.Discard, x.Stderr, int64(c.MaxStderr)+1); err == nil {
			stop(OutputLimit, stderrLimit.over(uint64(c.MaxStderr)))
		}
	})
	err := answers(x.Stdout, n, workers, results)
	x.Signal(unix.SIGKILL) // nothing more is asked of it
	<-x.Done()
	for _, f := range []*os.File{x.Stdin, x.Stderr} {
		f.SetDeadline(time.Now())
	}
	writes.Wait()
	x.Stdout.Close()
	x.Stderr.Close()
	var code Code
	why := stopped.Load()
	switch {
	case why != nil:
		code = why.code
	case err != nil:
		code = Timeout // any: it did not do its work
	}
	x.finish(code)
	switch {
	case err != nil && why != nil:
		return fmt.Errorf("worker %d: %s: %s", n+1, code, why.why)
	case err != nil:
		return fmt.Errorf("worker %d: %w", n+1, err)
	}
	return nil
}

// answers reads the answers to the jobs of a worker, in any order.
func answers(f io.Reader, n, workers int, results [][]byte) error {
	in := bufio.NewReaderSize(f, 64<<10)
	for i := n; i < len(results); i += workers {
		number, b, err := readJob(in)
		if err != nil {
			return fmt.Errorf("it ended before its answers: %w", err)
		}
		at := int(number) - 1
		if at < 0 || at >= len(results) || at%workers != n || results[at] != nil {
			return errAnswer
		}
		results[at] = b
	}
	return nil
}
