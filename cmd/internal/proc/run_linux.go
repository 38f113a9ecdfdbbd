package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Run runs what Decide allowed, and waits for its end.
func (r *Runner) Run(o *Outcome, c *Caps) *Outcome {
	if x := r.launch(o); x != nil {
		r.collect(x, o, c)
	}
	return o
}

// launch starts what Decide allowed. If it returns nil, the outcome has a code.
func (r *Runner) launch(o *Outcome) *Process {
	x, err := r.newProcess(o)
	switch {
	case errors.Is(err, errDenied):
		r.refused(o.fail(PolicyDenied, "the file is not the one that the policy allows"))
		return nil
	case errors.Is(err, errStuck):
		o.fail(Timeout, err.Error())
		return nil
	case err != nil:
		o.fail(SpawnFailed, err.Error())
		return nil
	}
	o.PID, o.Verdict = x.PID, *x.Verdict
	return x
}

// collect gives a process its input, reads its outputs and waits for its end.
func (r *Runner) collect(x *Process, o *Outcome, c *Caps) {
	g := &capture{x: x, c: c, left: int64(c.Total())}
	if o.Verdict.TimeoutMS > 0 {
		timer := time.AfterFunc(time.Duration(o.Verdict.TimeoutMS)*time.Millisecond, func() { g.stop(Timeout, c.overTime(o.Verdict.TimeoutMS)) })
		defer timer.Stop()
	}
	var writes, reads sync.WaitGroup
	if len(o.Request.Stdin) == 0 {
		x.Stdin.Close()
	} else {
		writes.Go(func() { g.feed(o.Request.Stdin) })
	}
	reads.Go(func() { o.Stdout = g.read(x.Stdout, stdoutLimit, uint64(c.MaxStdout)) })
	reads.Go(func() { o.Stderr = g.read(x.Stderr, stderrLimit, uint64(c.MaxStderr)) })
	<-x.Done()
	if len(o.Request.Stdin) > 0 {
		x.Stdin.SetWriteDeadline(time.Now())
	}
	x.Stdout.SetReadDeadline(time.Now())
	x.Stderr.SetReadDeadline(time.Now())
	reads.Wait()
	writes.Wait()
	x.Stdout.Close()
	x.Stderr.Close()
	if over := g.over.Load(); over != nil {
		o.Stdout, o.Stderr = nil, nil
		o.fail(over.code, over.why)
		x.finish(over.code)
		return
	}
	o.ExitCode = x.ExitCode()
	x.finish(0)
}

// capture is what is read of one process, within its limits.
type capture struct {
	x    *Process
	c    *Caps
	left int64                // bytes of both outputs that there may still be; changed atomically
	over atomic.Pointer[over] // why it was stopped
}

// over is the limit that ended a process.
type over struct {
	code Code
	why  string
}

// stop ends the process, for the first reason that there is.
func (g *capture) stop(c Code, why string) {
	if g.over.CompareAndSwap(nil, &over{c, why}) {
		g.x.Signal(unix.SIGKILL)
	}
}

// feed writes standard input. A process that does not read it all is no failure.
func (g *capture) feed(b []byte) {
	if len(b) > 64<<10 {
		widen(g.x.Stdin)
	}
	g.x.Stdin.Write(b)
	g.x.Stdin.Close()
}

// take counts what was read, and reports whether it is within the limits.
func (g *capture) take(n int, all []byte, l limit, most uint64) bool {
	switch {
	case uint64(len(all)) > most:
		g.stop(OutputLimit, l.over(most))
	case atomic.AddInt64(&g.left, -int64(n)) < 0:
		g.stop(OutputLimit, totalLimit.over(g.c.Total()))
	default:
		return true
	}
	return false
}

// larger is a buffer with more room for up to most bytes and one more. It grows fast, since what was read is copied.
func larger(buf []byte, most uint64) []byte {
	size := 64 << 10
	if len(buf) >= size {
		size = max(4*len(buf), 16<<20+1)
	}
	b := make([]byte, 0, min(uint64(size), most+1))
	Huge(b)
	return append(b, buf...)
}

// read reads one output to its end. When the process has ended, what the pipe holds then is its end.
func (g *capture) read(f *os.File, l limit, most uint64) (all []byte) {
	if most > 64<<10 {
		widen(f)
	}
	buf := make([]byte, 0, min(most, 4<<10)+1)
	for {
		if len(buf) == cap(buf) {
			buf = larger(buf, most)
		}
		n, err := f.Read(buf[len(buf):min(cap(buf), int(most)+1)])
		buf = buf[:len(buf)+n]
		if !g.take(n, buf, l, most) {
			return nil
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			rest := readLeft(f, most+1-uint64(len(buf)))
			if buf = append(buf, rest...); !g.take(len(rest), buf, l, most) {
				return nil
			}
			return buf
		case errors.Is(err, io.EOF):
			return buf
		default:
			return buf
		}
	}
}
