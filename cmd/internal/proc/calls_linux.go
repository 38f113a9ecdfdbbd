package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// calls records decisions (schemas/PROC.md, "Decision log"). Each helper has a session of its own.
type calls struct {
	r      *Runner
	to     decisions.File
	digest string // of the policy file
	dir    string

	mu   sync.Mutex
	all  []*helper
	idle []*helper    // the last one is used first
	pids map[int]bool // of the helpers

	patience time.Duration // for the start of a program
	err      error         // the first one
}

// ErrLog means that a decision could not be recorded. Nothing runs then.
var ErrLog = errors.New("writing the decision log")

// Record makes the runner write its decisions. It starts the first helper.
func (r *Runner) Record(to decisions.File) error {
	dir, _ := os.Getwd()
	c := &calls{r: r, patience: 30 * time.Second, pids: map[int]bool{}, to: decisions.Shared(to), digest: noPolicy, dir: dir}
	if r.Policy != nil {
		c.digest = r.Policy.Digest
	}
	h, err := c.newHelper()
	if err != nil {
		return err
	}
	c.idle = append(c.idle, h)
	r.calls = c
	return nil
}

// LogError says why decisions are missing in the log, nil if none are.
func (r *Runner) LogError() error {
	if r.calls == nil {
		return nil
	}
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	return r.calls.err
}

// Close ends the helpers, and with them their sessions, and removes the cgroups that serve no process.
func (r *Runner) Close() {
	defer r.groups.close()
	if r.calls == nil {
		return
	}
	r.calls.mu.Lock()
	list := r.calls.all
	r.calls.all, r.calls.idle = nil, nil
	r.calls.mu.Unlock()
	for _, h := range list {
		r.calls.failed(h.end())
	}
}

// failed keeps the first error.
func (c *calls) failed(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// helper is a process that starts programs for one session.
type helper struct {
	calls *calls
	log   *decisions.Log
	p     *os.Process
	conn  *net.UnixConn
	mu    sync.Mutex // held while an order is sent
	n     uint64     // calls of the session
	gone  bool       // it does not answer any more
}

func (c *calls) newHelper() (*helper, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	defer theirs.Close()
	h := &helper{calls: c, log: decisions.New(c.to, schemas.LogSourceProc)}
	if h.conn, err = connOf(os.NewFile(uintptr(fds[0]), "socket")); err != nil {
		return nil, err
	}
	own, err := os.Executable()
	if err == nil {
		c.r.inThread(func() {
			h.p, err = os.StartProcess(own, []string{helperName}, &os.ProcAttr{Env: []string{}, Files: []*os.File{theirs, os.Stderr, os.Stderr},
				Sys: &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}})
			if err == nil {
				c.mu.Lock()
				c.pids[h.p.Pid] = true
				c.mu.Unlock()
			}
		})
	}
	if err == nil {
		_, err = receive(h.conn, &report{})
	}
	if err != nil {
		h.conn.Close()
		return nil, fmt.Errorf("starting a helper: %w", err)
	}
	c.mu.Lock()
	c.all = append(c.all, h)
	c.mu.Unlock()
	if !h.log.Started(schemas.SessionStarted{KtimeNS: clock.Monotonic(), Name: schemas.LogSourceProc, PolicyDigest: c.digest,
		ProxyPID: uint32(os.Getpid()), ServerPID: uint32(h.p.Pid), Cwd: schemas.Text(c.dir)}) {
		return nil, fmt.Errorf("%w: %w", ErrLog, h.log.Err())
	}
	return h, nil
}

// end ends a helper and its session.
func (h *helper) end() error {
	h.conn.Close()
	var exit, signal *int // as far as they are known
	if state, err := h.p.Wait(); err == nil {
		code := state.ExitCode()
		if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
			code = int(ws.Signal())
			signal = &code
		} else {
			exit = &code
		}
	}
	h.log.Ended(clock.Monotonic(), exit, signal)
	if err := h.log.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}

// take returns a helper that does nothing.
func (c *calls) take() (*helper, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return h, nil
	}
	c.mu.Unlock()
	return c.newHelper()
}

func (c *calls) free(h *helper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.gone && slices.Contains(c.all, h) {
		c.idle = append(c.idle, h)
	}
}

// retire ends a helper after its call: what it started may go on, and is not of another call.
func (c *calls) retire(h *helper) {
	c.mu.Lock()
	at := slices.Index(c.all, h)
	if at >= 0 {
		c.all = slices.Delete(c.all, at, at+1)
	}
	c.mu.Unlock()
	if at >= 0 {
		c.failed(h.end())
	}
}

// refused records an outcome without a process: a denial, or a request that is not valid.
func (r *Runner) refused(o *Outcome) *Outcome {
	c := r.calls
	if c == nil || o.Code != PolicyDenied && o.Code != InvalidRequest {
		return o
	}
	c.mu.Lock()
	var h *helper
	if len(c.all) > 0 {
		h = c.all[0]
	}
	if n := len(c.idle); n > 0 {
		h = c.idle[n-1]
	}
	c.mu.Unlock()
	if h == nil {
		var err error
		if h, err = c.newHelper(); err != nil { // the last one has retired
			c.failed(err)
			return o
		}
		defer c.free(h)
	}
	if o.Code == InvalidRequest {
		h.log.Refused(schemas.MessageRefused{KtimeNS: clock.Monotonic(), Direction: schemas.FromClient, ReasonCode: schemas.ReasonBadProcess})
	} else {
		d := h.decision(o, schemas.DecisionDeny)
		if d.ReasonCode = schemas.ReasonDenyDefault; o.Verdict.Limit {
			d.ReasonCode = schemas.ReasonDenyLimit
		}
		d.Targets, d.TargetsCut = named(o.Request, c.dir)
		d.EndNS, d.Outcome = clock.Monotonic(), schemas.OutcomeDenied
		h.log.Decided(d)
	}
	if err := h.log.Err(); err != nil {
		c.failed(fmt.Errorf("%w: %w", ErrLog, err))
	}
	return o
}

// named is what a request names: its program, and its arguments as they read.
func named(q *Request, dir string) (targets []string, cut bool) {
	if len(q.Cwd) > 0 {
		if dir = path.Join(dir, string(q.Cwd)); q.Cwd[0] == '/' {
			dir = path.Clean(string(q.Cwd))
		}
	}
	texts := []string{}
	for i, a := range q.Argv {
		s := string(a)
		if i == 0 && !strings.HasPrefix(s, "/") {
			s = path.Join(dir, s)
		}
		texts = append(texts, s)
	}
	return policy.Names(texts, dir)
}

// decision is the line of a new call of the helper's session.
func (h *helper) decision(o *Outcome, decision string) schemas.ToolDecision {
	h.mu.Lock()
	n := h.n
	h.n++
	h.mu.Unlock()
	return schemas.ToolDecision{Call: n, Attempt: 1, Tool: o.Tool, Decision: decision, ToolCallID: schemas.ProcessCallID(h.log.Session(), n),
		ToolCallIDSource: schemas.CallIDProcess, PolicyDigest: h.calls.digest, StartNS: o.start, Targets: []string{}}
}

// call is an allowed request on its way.
type call struct {
	h    *helper
	tree bool // descendants end with the program
	d    schemas.ToolDecision
	done sync.Once

	ended atomic.Bool // the program has ended
}

// allow records that a request is allowed, before anything of it happens.
func (c *calls) allow(o *Outcome, v *Verdict) (*call, error) {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h, err := c.take()
	if err != nil {
		c.failed(err)
		return nil, err
	}
	o.start = clock.Monotonic() // what the start of a helper does is not of the call
	d := h.decision(o, schemas.DecisionAllow)
	if d.ReasonCode = schemas.ReasonAllowDefault; v.RuleID != "" {
		d.ReasonCode, d.RuleID = schemas.ReasonAllowRule, schemas.Text(v.RuleID)
	}
	if !h.log.Decided(d) {
		err := fmt.Errorf("%w: %w", ErrLog, h.log.Err())
		c.failed(err)
		return nil, err
	}
	return &call{h: h, d: d, tree: c.r.killTree()}, nil
}

// start has the helper start a program.
func (c *call) start(l *launch) (started, int, error) {
	o, files := l.order()
	var r report
	stuck := time.AfterFunc(c.h.calls.patience, func() { c.h.p.Kill() }) // the program may have stopped it already
	err := c.h.ask(o, files...)
	if err == nil {
		_, err = receive(c.h.conn, &r)
	}
	switch late := !stuck.Stop(); {
	case err != nil:
		c.h.gone = true
		if late {
			err = errStuck
		}
		return nil, 0, fmt.Errorf("the helper has ended: %w", err)
	case r.Err != "":
		return nil, 0, errors.New(r.Err)
	}
	return c, r.PID, nil
}

func (h *helper) ask(o order, files ...int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return send(h.conn, o, files...)
}

// exitLost is the exit code of a program whose helper was killed, which kills it too.
const exitLost = 128 + uint32(unix.SIGKILL)

func (c *call) wait() uint32 {
	defer c.ended.Store(true)
	var r report
	if _, err := receive(c.h.conn, &r); err != nil {
		c.h.gone = true
		return exitLost
	}
	return r.Exit
}

// errStuck means that a helper did not say whether it started a program. It may have run.
var errStuck = errors.New("it did not answer")

// helperStuck is how long a helper may take to tell of the end of a program that was killed. A program can stop it.
const helperStuck = 5 * time.Second

func (c *call) signal(sig unix.Signal) bool {
	if sig == unix.SIGKILL {
		time.AfterFunc(helperStuck, func() {
			if !c.ended.Load() {
				c.h.p.Kill()
			}
		})
	}
	return c.h.ask(order{Op: orderSignal, Signal: int(sig)}) == nil
}

func (c *call) sweep() {
	if !c.h.gone && c.h.ask(order{Op: orderSweep}) == nil {
		receive(c.h.conn, &report{})
	}
	if c.h.gone { // what it would have ended is ours as soon as it is dead
		for unix.Waitid(unix.P_PID, c.h.p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		c.h.calls.r.inThread(func() { sweepBut(c.h.calls.isHelper) })
	}
}

func (c *calls) isHelper(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pids[pid]
}

// finish records the end of the call, whose result has a code or not. An outcome replaces the one that follows.
func (c *call) finish(code Code, outcome string) {
	c.done.Do(func() {
		switch {
		case c.h.gone:
			outcome = schemas.OutcomeServerGone
		case outcome != "":
		case code == SpawnFailed:
			outcome = schemas.OutcomeError
		case code != 0:
			outcome = schemas.OutcomeToolError
		default:
			outcome = schemas.OutcomeCompleted
		}
		c.h.log.Finished(schemas.CallFinished{Call: c.d.Call, ToolCallID: c.d.ToolCallID, StartNS: c.d.StartNS, EndNS: clock.Monotonic(), Outcome: outcome})
		if err := c.h.log.Err(); err != nil {
			c.h.calls.failed(fmt.Errorf("%w: %w", ErrLog, err))
		}
		if c.tree {
			c.h.calls.free(c.h)
		} else {
			c.h.calls.retire(c.h)
		}
	})
}
