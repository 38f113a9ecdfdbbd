package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Runner starts processes.
type Runner struct {
	Policy *Policy // nil: everything is allowed

	calls  *calls // records decisions; nil: nobody does
	groups *groups
	spawn  chan func() // served by one thread, which lives as long as the program

	mu      sync.Mutex
	live    map[*Process]bool
	stopped bool // nothing more is started
}

// NewRunner returns a runner. Processes whose parents have ended become children of the caller, so that it can end
// them (prctl(2), PR_SET_CHILD_SUBREAPER).
func NewRunner(p *Policy) *Runner {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	r := &Runner{Policy: p, spawn: make(chan func()), live: map[*Process]bool{}}
	go func() {
		// A process is killed when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		for f := range r.spawn {
			f()
		}
	}()
	r.groups = &groups{off: !r.killTree()}
	return r
}

// killTree reports whether descendants end with a process.
func (r *Runner) killTree() bool { return r.Policy == nil || r.Policy.KillTree }

// inThread runs f in the thread that starts processes.
func (r *Runner) inThread(f func()) {
	done := make(chan struct{})
	r.spawn <- func() {
		defer close(done)
		f()
	}
	<-done
}

// errStopped means that the runner starts nothing more.
var errStopped = errors.New("it is ending")

// Stop kills all processes. Nothing is started after it.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	list := slices.Collect(maps.Keys(r.live))
	r.mu.Unlock()
	for _, x := range list {
		x.Signal(unix.SIGKILL)
	}
}

func (r *Runner) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// Process is one process with its pipes.
type Process struct {
	Stdin          *os.File // nil after it was closed
	Stdout, Stderr *os.File
	Verdict        *Verdict
	PID            int

	r     *Runner
	p     started
	call  *call  // its record; nil is none
	group *group // its cgroup
	tree  bool   // its descendants end with it

	outcome atomic.Value // a string; "" if it follows from the result

	mu    sync.Mutex
	ended bool
	done  chan struct{}
	exit  uint32 // valid after done
}

// started is a process that was started, here or by a helper.
type started interface {
	wait() (exit uint32)     // for its end, once
	signal(unix.Signal) bool // also to its group where descendants end with it
	sweep()                  // ends what became of its descendants; after its end
}

// launch is what is started.
type launch struct {
	program *program
	argv    []string
	env     []string
	dir     string
	pipes   *pipes
	group   *group
	tree    bool
}

// newProcess starts what a verdict allows. Its error is errDenied, or why nothing runs.
func (r *Runner) newProcess(o *Outcome) (_ *Process, err error) {
	q, v := o.Request, &o.Verdict
	l := &launch{program: &program{path: string(q.Argv[0])}, dir: string(q.Cwd), tree: r.killTree()}
	if r.Policy != nil {
		if l.program, v, err = open(l.dir, v); err != nil {
			return nil, err
		}
	}
	defer l.program.close()
	for _, a := range q.Argv {
		l.argv = append(l.argv, string(a))
	}
	for _, e := range q.Env {
		l.env = append(l.env, string(e.Key)+"="+string(e.Value))
	}
	if l.pipes, err = newPipes(); err != nil {
		return nil, err
	}
	defer l.pipes.closeTheirs()
	x := &Process{r: r, Verdict: v, done: make(chan struct{}), tree: l.tree, group: r.groups.take()}
	x.outcome.Store("")
	l.group = x.group
	if err = r.start(x, l, o); err != nil {
		l.pipes.closeOurs()
		x.group.release()
		return nil, err
	}
	x.Stdin, x.Stdout, x.Stderr = l.pipes.in, l.pipes.out, l.pipes.err
	go x.await()
	return x, nil
}

// start starts a process here, or records the decision and has a helper start it.
func (r *Runner) start(x *Process, l *launch, o *Outcome) (err error) {
	if r.calls != nil {
		if x.call, err = r.calls.allow(o, x.Verdict); err != nil {
			return err
		}
	}
	if x.call != nil {
		if x.p, x.PID, err = x.call.start(l); err != nil {
			if x.call.h.gone { // it may have started it
				x.group.kill()
				x.call.sweep()
			}
			x.finish(SpawnFailed)
		} else if !r.add(x) {
			x.p.signal(unix.SIGKILL) // its end is waited for as that of others
		}
		return err
	}
	r.inThread(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err = errStopped; !r.stopped {
			x.p, x.PID, err = startHere(l)
		}
		if err == nil {
			r.live[x] = true
		}
	})
	return err
}

// add keeps a process that was started. It returns false if all are to end.
func (r *Runner) add(x *Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[x] = true
	return !r.stopped
}

// here is a child of this process.
type here struct {
	p    *os.Process
	tree bool
}

// startHere starts a child, with its arguments as they are.
func startHere(l *launch) (started, int, error) {
	a := &os.ProcAttr{Dir: l.dir, Env: append([]string{}, l.env...), Files: l.pipes.theirs(), Sys: &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}}
	path := l.program.path
	if l.program.file != nil {
		path = fmt.Sprintf("/proc/self/fd/%d", l.program.file.Fd())
	}
	if l.program.script { // its interpreter opens it by this number
		a.Files = append(a.Files, l.program.file)
		path = fmt.Sprintf("/proc/self/fd/%d", len(a.Files)-1)
	}
	l.group.join(a.Sys)
	p, err := os.StartProcess(path, l.argv, a)
	if l.group != nil && noClone(err) { // its group and its parents are what is left to find its descendants by
		a.Sys.UseCgroupFD = false
		p, err = os.StartProcess(path, l.argv, a)
	}
	if err != nil {
		return nil, 0, err
	}
	return &here{p, l.tree}, p.Pid, nil
}

// noClone reports whether nothing can be started in a cgroup here: seccomp filters of containers know no clone3, and a
// cgroup can be of a kind that takes no processes (clone(2), CLONE_INTO_CGROUP).
func noClone(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EBUSY)
}

func (h *here) wait() uint32 {
	state, err := h.p.Wait()
	if err != nil {
		return 0
	}
	if h.tree {
		unix.Kill(-h.p.Pid, unix.SIGKILL)
	}
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + uint32(ws.Signal())
	}
	return uint32(ws.ExitStatus())
}

func (h *here) signal(sig unix.Signal) bool {
	if h.tree {
		return unix.Kill(-h.p.Pid, sig) == nil
	}
	return h.p.Signal(sig) == nil
}

// sweep is the runner's: others may be waited for.
func (h *here) sweep() {}

// await waits for the end, and ends what the process leaves behind.
func (x *Process) await() {
	exit := x.p.wait()
	x.mu.Lock()
	x.ended, x.exit = true, exit
	x.mu.Unlock()
	x.group.kill()
	x.group.release()
	if x.tree {
		x.p.sweep()
	}
	x.r.mu.Lock()
	if delete(x.r.live, x); len(x.r.live) == 0 && x.tree && x.r.calls == nil {
		sweep()
	}
	x.r.mu.Unlock()
	close(x.done)
}

// Done is closed when the process has ended, and with it its descendants.
func (x *Process) Done() <-chan struct{} { return x.done }

// ExitCode is the exit code, or 128 and the number of the signal. It is valid after Done.
func (x *Process) ExitCode() uint32 { return x.exit }

// Signal sends a signal to the process, or to its group where descendants end with it. It reports whether there was
// one to get it.
func (x *Process) Signal(sig unix.Signal) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended { // its number may be another's
		return false
	}
	ok := x.p.signal(sig)
	if sig == unix.SIGKILL {
		x.group.kill()
	}
	return ok
}

// endsAs is the outcome that is recorded if nobody waits for the result of a process any more. The first one counts.
func (x *Process) endsAs(outcome string) { x.outcome.CompareAndSwap("", outcome) }

// finish records the end of a process, whose result has a code or not.
func (x *Process) finish(c Code) {
	if x.call == nil {
		return
	}
	if x.r.isStopped() {
		x.endsAs(schemas.OutcomeClientGone)
	}
	outcome, _ := x.outcome.Load().(string)
	x.call.finish(c, outcome)
}
