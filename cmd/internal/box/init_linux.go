package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// IsInit reports whether this program was started as process 1 of a box.
func IsInit() bool { return len(os.Args) == 3 && os.Args[0] == initName && os.Getpid() == 1 }

// inside is process 1 at work.
type inside struct {
	conf      Config
	conn      *os.File
	in        *json.Decoder
	out       *json.Encoder
	record    int // descriptor of the directory, or -1
	place     *place
	before    *described
	killed    int        // processes that outlived the grace
	inherited uint64     // descriptors that the program was given beside the standard ones
	confined  []string   // what the program is started without
	next      wrap.State // of the next wrapper or the program
	last      bool       // the program is started here
}

// Init is all that process 1 does. When it returns, the box ends.
func Init() {
	i := &inside{record: -1}
	fds := [2]int{-1, -1}
	for n := range fds {
		var err error
		if fds[n], err = strconv.Atoi(os.Args[n+1]); err == nil && fds[n] >= 0 {
			unix.CloseOnExec(fds[n])
		}
	}
	i.conn, i.record = os.NewFile(uintptr(fds[0]), "connection"), fds[1]
	i.in, i.out = json.NewDecoder(i.conn), json.NewEncoder(i.conn)
	if i.in.Decode(&i.conf) != nil {
		os.Exit(tool.ExitOwn)
	}
	if err := i.run(); err != nil {
		i.out.Encode(failed(err))
	}
}

func (i *inside) run() error {
	// What the program sends to all of its group comes here too, and is not meant for us.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf)
	go func() {
		for range deaf {
		}
	}()
	// The program can run as the same user: without this it could read our memory and our descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing process 1 of the box: %w", err)
	}
	var err error
	if i.place, err = build(i.conf); err != nil {
		return err
	}
	if i.before, err = i.describeBase(); err != nil {
		return err
	}
	if err := i.place.enter(i.conf.Workdir); err != nil {
		return err
	}
	if len(i.conf.Command) == 0 { // only whether it can be done was asked
		return i.out.Encode(report{Done: true})
	}
	n, err := child.Inherited()
	if err != nil {
		return err
	}
	i.inherited = n - i.conf.State.Descriptors()
	pid, err := i.start()
	if err != nil {
		return err
	}
	i.out.Encode(report{Started: true})
	end, err := i.attend(pid)
	if err != nil {
		return err
	}
	if i.last {
		i.next.Report(end, i.conf.Command)
	}
	i.out.Encode(report{Ended: true, Exit: end.Code, Signal: end.Signal})
	changes, err := i.describeEnd()
	if err != nil {
		return err
	}
	return i.out.Encode(report{Done: true, Changes: changes})
}

// start starts the program without the rights of process 1.
func (i *inside) start() (int, error) {
	command := i.conf.Command
	for _, e := range i.conf.Env { // child.Look reads ours
		if name, value, ok := strings.Cut(e, "="); ok && name == "PATH" {
			os.Setenv(name, value)
		}
	}
	program, err := child.Look(command[0])
	if err != nil {
		return 0, child.Refusal(err, nothingDone)
	}
	i.next, i.last = i.conf.State, !wrap.Is(program, i.conf.Tools)
	i.next.Boxed = true
	c := i.next.Confinement()
	if err := c.Check(); err != nil {
		return 0, err
	}
	i.confined = c.InForce()
	o := child.Options{Name: command[0], Program: program, Args: command, Env: i.environment(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	p, err := i.next.Begin(o, i.conf.Tools, i.pin)
	if err != nil {
		return 0, child.Refusal(err, nothingDone)
	}
	return p.PID(), nil
}

// nothingDone completes the error of a program that was not started.
const nothingDone = "nothing was run, nothing was written"

// environment is the program's. PWD outside is no directory of the box.
func (i *inside) environment() []string {
	env := make([]string, 0, len(i.conf.Env)+1)
	for _, e := range i.conf.Env {
		if !strings.HasPrefix(e, "PWD=") && !strings.HasPrefix(e, "OLDPWD=") {
			env = append(env, e)
		}
	}
	return append(env, "PWD="+i.conf.Workdir)
}

// pin lets the calling thread, and what it starts, run on one processor.
func (i *inside) pin() error {
	if i.conf.CPU == nil {
		return nil
	}
	var set unix.CPUSet
	set.Set(*i.conf.CPU)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return tool.Failf(tool.ExitOwn, "running on processor %d only: %w", *i.conf.CPU, err)
	}
	return nil
}

// attend passes signals on until the program has ended, and gives what it left running the grace time. When it returns,
// no process but this one is in the box.
func (i *inside) attend(pid int) (child.Ending, error) {
	var mu sync.Mutex
	running := true
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var o order
			if i.in.Decode(&o) != nil {
				return // nobody is outside any more
			}
			mu.Lock() // while it runs, its number is its own
			if running {
				unix.Kill(pid, unix.Signal(o.Signal))
			}
			mu.Unlock()
		}
	}()
	ended := make(chan child.Ending, 1)
	empty := make(chan struct{})
	go func() {
		defer close(empty)
		for {
			var info unix.Siginfo
			if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); errors.Is(err, unix.EINTR) {
				continue
			}
			var ws unix.WaitStatus
			mu.Lock()
			n, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if n == pid {
				running = false
			}
			mu.Unlock()
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if n == pid {
				ended <- endingOf(ws)
			}
		}
	}()
	select {
	case end := <-ended:
		return end, i.clear(empty, gone)
	case <-gone:
		os.Exit(tool.ExitOwn) // and the kernel ends the box
	}
	return child.Ending{}, nil
}

// clear waits until the box is empty, and after the grace time makes it so.
func (i *inside) clear(empty, gone chan struct{}) (err error) {
	select {
	case <-empty:
		return nil
	case <-gone:
		os.Exit(tool.ExitOwn)
	case <-time.After(i.conf.Grace):
	}
	if i.killed, err = processes(); err != nil {
		return err
	}
	for { // one that is just being made can be missed
		unix.Kill(-1, unix.SIGKILL)
		select {
		case <-empty:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// processes counts those of the box but this one.
func processes() (n int, err error) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("counting the processes that are left: %w", err)
	}
	for _, d := range list {
		if pid, err := strconv.Atoi(d.Name()); err == nil && pid > 1 {
			n++
		}
	}
	return n, nil
}

func endingOf(ws unix.WaitStatus) child.Ending {
	if ws.Signaled() {
		return child.Ending{Signal: int(ws.Signal())}
	}
	return child.Ending{Code: ws.ExitStatus()}
}
