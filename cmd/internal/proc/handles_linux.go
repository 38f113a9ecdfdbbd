package proc

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Handle names a process of a pool: the low half is its place and one more, the high half how often the place was used
// before. A low half of 0 is no process, and the high half a code.
type Handle uint32

func noHandle(c Code) Handle { return Handle(c) << 16 }

// ErrHandle means that a handle names no process, or one that was dropped.
var ErrHandle = errors.New("no such handle")

// ErrMode means that a process has no pipes for the caller, or no result.
var ErrMode = errors.New("the process was not started for that")

// Pool are processes that run at the same time.
type Pool struct {
	Runner *Runner

	mu      sync.Mutex
	places  []place
	spawned uint64
	running uint32     // runs without a handle
	freed   *sync.Cond // there may be room for one more; nil: nobody has waited
}

type place struct {
	used uint16
	p    *pooled
}

// pooled is a process of a pool: its result is collected, or its pipes are the caller's.
type pooled struct {
	x       *Process
	o       *Outcome
	piped   bool
	out     [2]unread     // of a piped one: standard output and error
	code    atomic.Uint32 // why a piped one was stopped
	in      chan struct{} // closed when what was written before is written
	settled chan struct{} // closed when it has ended and its outputs were read
}

// Spawn starts a process. Without one, the handle has the code, and the outcome says why.
func (p *Pool) Spawn(request, caps []byte, piped bool) (Handle, *Outcome) {
	o, c := p.Runner.decide(toolOf(piped), request, caps)
	if o.Code != 0 {
		return noHandle(o.Code), o
	}
	p.Runner.groups.keep()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spawned++; p.spawned > p.spawns() || p.live() >= p.most() {
		return noHandle(PolicyDenied), p.Runner.tooMany(o)
	}
	at := slices.IndexFunc(p.places, func(x place) bool { return x.p == nil })
	x := p.Runner.launch(o)
	if x == nil {
		return noHandle(o.Code), o
	}
	if at < 0 {
		p.places, at = append(p.places, place{}), len(p.places)
	}
	k := &pooled{x: x, o: o, piped: piped, in: make(chan struct{}), settled: make(chan struct{})}
	p.places[at].used++
	p.places[at].p = k
	if piped {
		go k.serve(c, k.in)
	} else {
		go func() { p.Runner.collect(x, o, c); close(k.settled) }()
	}
	return Handle(uint32(p.places[at].used)<<16 | uint32(at+1)), o
}

func toolOf(piped bool) string {
	if piped {
		return ToolPiped
	}
	return ToolCapture
}

// tooMany denies what there is no room for.
func (r *Runner) tooMany(o *Outcome) *Outcome {
	o.Verdict = denyLimit("there are too many processes")
	return r.refused(o.fail(PolicyDenied, o.Verdict.Why))
}

// live is how many processes there are. The pool must be locked.
func (p *Pool) live() uint32 {
	n := p.running
	for i := range p.places {
		if p.places[i].p != nil {
			n++
		}
	}
	return n
}

// most is how many processes there may be at one time, spawns how many in all.
func (p *Pool) most() uint32 {
	if q := p.Runner.Policy; q != nil {
		return min(MaxHandles, q.MaxLive)
	}
	return MaxHandles
}

func (p *Pool) spawns() uint64 {
	if q := p.Runner.Policy; q != nil {
		return q.MaxSpawns
	}
	return NoLimit
}

// Run runs a process to its end, when there is room for one more.
func (p *Pool) Run(request, caps []byte) *Outcome {
	o, c := p.Runner.Decide(request, caps)
	if o.Code != 0 {
		return o
	}
	p.Runner.groups.keep()
	p.mu.Lock()
	if p.spawned++; p.spawned > p.spawns() {
		p.mu.Unlock()
		return p.Runner.tooMany(o)
	}
	if p.freed == nil {
		p.freed = sync.NewCond(&p.mu)
	}
	for p.live() >= p.most() {
		p.freed.Wait()
	}
	p.running++
	p.mu.Unlock()
	p.Runner.Run(o, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.freed.Broadcast()
	return o
}

func (p *Pool) find(h Handle) (*pooled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := int(h&0xffff) - 1
	if at < 0 || at >= len(p.places) || p.places[at].p == nil || p.places[at].used != uint16(h>>16) {
		return nil, ErrHandle
	}
	return p.places[at].p, nil
}

func (p *Pool) piped(h Handle) (*pooled, error) {
	k, err := p.find(h)
	if err == nil && !k.piped {
		err = ErrMode
	}
	return k, err
}

// Join waits for the end of a process that was not piped and returns its result, as often as it is asked.
func (p *Pool) Join(h Handle) (*Outcome, error) {
	k, err := p.find(h)
	if err == nil && k.piped {
		err = ErrMode
	}
	if err != nil {
		return nil, err
	}
	<-k.settled
	return k.o, nil
}

// Wait returns the exit code of a process, or the code for which it was stopped. Without block it returns false while the
// process runs.
func (p *Pool) Wait(h Handle, block bool) (exit uint32, code Code, ended bool, err error) {
	k, err := p.find(h)
	if err != nil {
		return 0, 0, false, err
	}
	if !block {
		select {
		case <-k.settled:
		default:
			return 0, 0, false, nil
		}
	}
	<-k.settled
	if code = Code(k.code.Load()); code == 0 {
		code = k.o.Code
	}
	return k.x.ExitCode(), code, true, nil
}

// Kill sends a signal. It reports whether there was a process to get it.
func (p *Pool) Kill(h Handle, sig unix.Signal) (bool, error) {
	k, err := p.find(h)
	if err != nil {
		return false, err
	}
	return k.x.Signal(sig), nil
}

// Drop gives a handle up: a process that still runs is killed, unless the policy leaves it; then the result is false
// and the handle stays.
func (p *Pool) Drop(h Handle) (bool, error) {
	k, err := p.find(h)
	if err != nil {
		return false, err
	}
	select {
	case <-k.settled:
	default:
		if q := p.Runner.Policy; q != nil && !q.KillOnDrop {
			return false, nil
		}
		k.x.endsAs(schemas.OutcomeCancelled)
		k.x.Signal(unix.SIGKILL)
		<-k.settled
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := int(h&0xffff) - 1; p.places[at].p == k {
		p.places[at].p = nil
	}
	if p.freed != nil {
		p.freed.Broadcast()
	}
	return true, nil
}

// Close kills all processes with handles and waits until they have ended. Runs that waited for their places go on.
func (p *Pool) Close() {
	p.mu.Lock()
	list := slices.Clone(p.places)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.places {
			p.places[i].p = nil
		}
		if p.freed != nil {
			p.freed.Broadcast()
		}
	}()
	for _, x := range list {
		if x.p != nil {
			x.p.x.endsAs(schemas.OutcomeClientGone)
			x.p.x.Signal(unix.SIGKILL)
		}
	}
	for _, x := range list {
		if x.p != nil {
			<-x.p.settled
		}
	}
}

// write writes to standard input, and reports whether the process took it all.
func (k *pooled) write(b []byte) bool {
	n, err := k.x.Stdin.Write(b)
	return err == nil && n == len(b)
}

// Queue takes a place in the order in which standard input is written and closed. What it returns waits for its turn and
// writes, or with nil closes.
func (p *Pool) Queue(h Handle) (func(b []byte) bool, error) {
	k, err := p.piped(h)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	before, after := k.in, make(chan struct{})
	k.in = after
	p.mu.Unlock()
	return func(b []byte) bool {
		defer close(after)
		<-before
		if b == nil {
			return k.x.Stdin.Close() == nil
		}
		return k.write(b)
	}, nil
}

// Read takes at most most bytes of what was read of an output (0: standard output, 1: standard error): nothing if there
// is nothing now. ends says that there will be no more.
func (p *Pool) Read(h Handle, which int, most uint32) (b []byte, ends bool, err error) {
	k, err := p.piped(h)
	if err != nil {
		return nil, false, err
	}
	b, ends = k.out[which].take(most)
	return b, ends, nil
}

// unread is what was read of a pipe and not taken.
type unread struct {
	mu   sync.Mutex
	b    []byte
	ends bool
}

func (u *unread) take(most uint32) ([]byte, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(len(u.b), int(most))
	b := append([]byte{}, u.b[:n]...)
	if u.b = u.b[n:]; len(u.b) == 0 {
		u.b = nil
	}
	return b, u.ends && len(u.b) == 0
}

// add keeps what was read, and reports whether it is within the limit.
func (u *unread) add(b []byte, most uint32) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if uint64(len(u.b))+uint64(len(b)) > uint64(most) {
		return false
	}
	u.b = append(u.b, b...)
	return true
}

func (u *unread) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ends = true
}

// fill reads an output to its end.
func (k *pooled) fill(f *os.File, which int, most uint32, stop func(Code)) {
	u, buf := &k.out[which], make([]byte, 64<<10)
	defer u.end()
	for {
		n, err := f.Read(buf)
		if !u.add(buf[:n], most) {
			stop(OutputLimit)
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if rest := readLeft(f, uint64(most)+1); !u.add(rest, most) {
				stop(OutputLimit)
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// serve reads the outputs of a process until it has ended. Its limits are of what was not taken.
func (k *pooled) serve(c *Caps, first chan struct{}) {
	stop := func(code Code) {
		if k.code.CompareAndSwap(0, uint32(code)) {
			k.x.Signal(unix.SIGKILL)
		}
	}
	if t := k.o.Verdict.TimeoutMS; t > 0 {
		defer time.AfterFunc(time.Duration(t)*time.Millisecond, func() { stop(Timeout) }).Stop()
	}
	var all sync.WaitGroup
	all.Go(func() { k.write(k.o.Request.Stdin); close(first) })
	all.Go(func() { k.fill(k.x.Stdout, 0, c.MaxStdout, stop) })
	all.Go(func() { k.fill(k.x.Stderr, 1, c.MaxStderr, stop) })
	<-k.x.Done()
	k.x.Stdin.SetWriteDeadline(time.Now())
	k.x.Stdout.SetReadDeadline(time.Now())
	k.x.Stderr.SetReadDeadline(time.Now())
	all.Wait()
	k.x.Stdin.Close()
	k.x.Stdout.Close()
	k.x.Stderr.Close()
	k.x.finish(Code(k.code.Load()))
	close(k.settled)
}
