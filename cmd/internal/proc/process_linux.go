package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// pipeSize is what is asked for, so that large inputs and outputs take few switches between processes.
const pipeSize = 1 << 20

// Runner starts processes.
type Runner struct {
	Policy *Policy // nil: everything is allowed

	groups string // cgroup in which each process gets one of its own; "" if that is not possible here

	spawn chan func() // served by one thread, which lives as long as the program

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
	if own, err := cgroup.Own(); err == nil {
		if dir, err := cgroup.MakeBelow(own, "proc-"); err == nil {
			r.groups = own
			cgroup.Remove(dir)
		}
	}
	return r
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

// Process is one process with its pipes.
type Process struct {
	Stdin          *os.File // nil after it was closed
	Stdout, Stderr *os.File
	Verdict        *Verdict
	PID            int

	r     *Runner
	p     *os.Process
	group string // its cgroup, or ""
	tree  bool   // its descendants end with it

	mu    sync.Mutex
	ended bool
	done  chan struct{}
	exit  uint32 // valid after done
}

// Start starts what a verdict allows. Its error is errDenied, or why nothing runs.
func (r *Runner) Start(q *Request, v *Verdict) (_ *Process, err error) {
	prog, held := &program{path: string(q.Argv[0])}, v
	if r.Policy != nil {
		if prog, held, err = open(string(q.Cwd), v); err != nil {
			return nil, err
		}
	}
	defer prog.close()
	x := &Process{r: r, Verdict: held, done: make(chan struct{}), tree: r.Policy == nil || r.Policy.KillTree}
	pipes, err := newPipes()
	if err != nil {
		return nil, err
	}
	defer pipes.closeTheirs()
	attr := &os.ProcAttr{Dir: string(q.Cwd), Env: []string{}, Files: pipes.theirs(), Sys: &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}}
	for _, e := range q.Env {
		attr.Env = append(attr.Env, string(e.Key)+"="+string(e.Value))
	}
	if prog.script { // its interpreter opens it by this number
		attr.Files = append(attr.Files, prog.file)
		prog.path = fmt.Sprintf("/proc/self/fd/%d", len(attr.Files)-1)
	}
	var group *os.File
	if r.groups != "" {
		if x.group, err = cgroup.MakeBelow(r.groups, "proc-"); err == nil {
			if group, err = cgroup.Open(x.group); err == nil {
				defer group.Close()
				attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(group.Fd())
			}
		}
	}
	argv := make([]string, len(q.Argv))
	for i, a := range q.Argv {
		argv[i] = string(a)
	}
	started := make(chan struct{})
	r.spawn <- func() {
		defer close(started)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err = errStopped; !r.stopped {
			x.p, err = os.StartProcess(prog.path, argv, attr)
		}
		if err == nil {
			x.PID, r.live[x] = x.p.Pid, true
		}
	}
	<-started
	if err != nil {
		pipes.closeOurs()
		x.removeGroup()
		return nil, err
	}
	x.Stdin, x.Stdout, x.Stderr = pipes.in, pipes.out, pipes.err
	go x.wait()
	return x, nil
}

// wait waits for the end, and ends what the process leaves behind.
func (x *Process) wait() {
	state, err := x.p.Wait()
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	if err == nil {
		ws := state.Sys().(syscall.WaitStatus)
		if x.exit = uint32(ws.ExitStatus()); ws.Signaled() {
			x.exit = 128 + uint32(ws.Signal())
		}
	}
	if x.tree {
		x.killTree()
	}
	x.removeGroup()
	x.r.mu.Lock()
	if delete(x.r.live, x); len(x.r.live) == 0 {
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
	if x.tree && sig == unix.SIGKILL {
		x.killTree()
	} else if x.tree {
		return unix.Kill(-x.PID, sig) == nil
	}
	return x.p.Signal(sig) == nil
}

// killTree kills the group and the cgroup of the process.
func (x *Process) killTree() {
	unix.Kill(-x.PID, unix.SIGKILL)
	if x.group != "" {
		cgroup.Kill(x.group, 2*time.Second)
	}
}

func (x *Process) removeGroup() {
	if x.group != "" {
		cgroup.Remove(x.group)
	}
}

// pipes are the three pipes of a process: our ends do not block.
type pipes struct {
	in, out, err                *os.File
	childIn, childOut, childErr *os.File
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	for _, x := range []struct {
		ours, theirs **os.File
		read         bool
	}{{&p.in, &p.childIn, false}, {&p.out, &p.childOut, true}, {&p.err, &p.childErr, true}} {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, err
		}
		if *x.ours, *x.theirs = w, r; x.read {
			*x.ours, *x.theirs = r, w
		}
	}
	return p, nil
}

// widen asks for larger pipes; the system may have none to give.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}

func (p *pipes) theirs() []*os.File { return []*os.File{p.childIn, p.childOut, p.childErr} }

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs() {
		if f != nil {
			f.Close()
		}
	}
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
}

// readLeft reads what a pipe holds at this moment, also if a process keeps it open. It returns at most most bytes.
func readLeft(f *os.File, most uint64) []byte {
	f.SetReadDeadline(time.Time{})
	c, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for uint64(len(all)) < most {
		n := 0
		if c.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), buf); return true }) != nil {
			break
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		all = append(all, buf[:min(uint64(n), most-uint64(len(all)))]...)
	}
	return all
}
