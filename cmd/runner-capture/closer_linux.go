package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// closerVerb makes the binary the closer of a run: a process that waits until runner-capture
// has gone. If that did not clean up, the closer ends what is left in the cgroup and removes it.
// Without it, a command would go on unobserved when runner-exec and runner-capture are
// killed together.
const closerVerb = "--closer"

// closerName is the closer's name in a list of processes: who kills the runner by its name
// does not mean the closer.
const closerName = "cgroup-closer"

// closed is what a runner-capture that has cleaned up sends.
const closed = "closed\n"

// closer is runner-capture's end of the connection. A nil one does nothing.
type closer struct {
	started chan error // its start, which goes on in the background
	cmd     *exec.Cmd
	pipe    *os.File
}

// startCloser starts the closer of a cgroup, which exists.
func startCloser(dir string) *closer {
	c := &closer{started: make(chan error, 1)}
	onOwnThread(func() {
		if err := c.launch(dir); err != nil {
			c.started <- fmt.Errorf("starting the process that ends what is left: %w", err)
		}
		close(c.started)
	})
	return c
}

// onOwnThread runs f in the background, on a thread that ends with it. That is not the first one of the process: its capabilities and its working
// directory are those that others see of the process.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f() // and ends locked: so does the thread
			return
		}
		done := make(chan bool)
		go func() { // on another one, for this one is taken
			defer close(done)
			runtime.LockOSThread()
			f()
		}()
		<-done
		runtime.UnlockOSThread()
	}()
}

func (c *closer) launch(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c.cmd = exec.Command("self/exe", closerVerb)
	c.cmd.Args[0] = closerName
	c.cmd.Env = []string{"GOMAXPROCS=1"}
	c.cmd.Stdin, c.cmd.Stderr = r, os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of the terminal's reach
	if err = enterOwnProc(); err == nil {
		err = keepCapabilities(unix.CAP_DAC_OVERRIDE, unix.CAP_KILL)
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err == nil {
		_, err = io.WriteString(w, dir+"\n")
	}
	if err != nil {
		w.Close()
		return err
	}
	c.pipe = w
	return nil
}

// ownProc is /proc, opened before the command starts. The closer finds its program by its
// own name there: a process with capabilities of its file may not look at its parent's.
var ownProc = sync.OnceValues(func() (*os.File, error) {
	return os.OpenFile("/proc", unix.O_PATH|unix.O_DIRECTORY, 0)
})

// enterOwnProc makes ownProc the working directory of the calling thread, of onOwnThread. So the program of this process is found even if the command has mounted over /proc.
func enterOwnProc() error {
	dir, err := ownProc()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	return os.NewSyscallError("fchdir", unix.Fchdir(int(dir.Fd())))
}

// running waits until the closer is there.
func (c *closer) running() error {
	if c == nil {
		return nil
	}
	return <-c.started // nil once it is closed
}

// dismiss ends the closer. If runner-capture could not clean up, the closer tries again.
func (c *closer) dismiss(clean bool) {
	if c == nil {
		return
	}
	for range c.started {
	}
	if c.pipe == nil {
		return
	}
	if clean {
		io.WriteString(c.pipe, closed)
	}
	c.pipe.Close()
	if clean {
		c.cmd.Wait()
	}
}

// closerMain is the closer.
func closerMain() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	os.WriteFile("/proc/self/comm", []byte(closerName), 0)
	os.Chdir("/")
	if err := closeDown(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "runner-capture: error: after it has gone:", err)
		os.Exit(1)
	}
}

// closeDown reads the path of the cgroup, waits for the end of its input, and cleans up if that did
// not say that it is done.
func closeDown(in io.Reader) error {
	r := bufio.NewReader(in)
	dir, err := r.ReadString('\n')
	if err != nil {
		return nil // no command was started yet
	}
	at, held, err := cgroup.Hold(strings.TrimSuffix(dir, "\n"))
	if err != nil {
		return err
	}
	defer held.Close()
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) == closed {
		return err
	}
	err = cgroup.Kill(at, 10*time.Second)
	if err == nil {
		err = cgroup.Remove(at)
	}
	if cgroup.Gone(at, err) {
		return nil // runner-exec did it
	}
	return err
}

// keepCapabilities makes the calling thread give up all capabilities but these, and those that it starts have no more: with
// no_new_privs, neither root nor the capabilities of a file bring them back. The thread ends with its goroutine. To give them up in the closer itself
// would take all of its threads (syscall.AllThreadsSyscall), which wait for each other in a loop: on a busy processor that was seen to take as long as the whole start.
func keepCapabilities(keep ...int) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, want [2]unix.CapUserData
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("reading the capabilities: %w", err)
	}
	for _, c := range keep {
		bit := uint32(1) << (c % 32) & has[c/32].Permitted
		want[c/32].Effective |= bit
		want[c/32].Permitted |= bit
	}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Capset(&head, &want[0])
	}
	if err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return nil
}
