package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// start starts the program. With a cgroup, clone3 puts the child there (Linux 5.7), so it
// is never outside, and no helper process has to wait in the cgroup. Between clone and
// execve the child opens nothing, so the first event in the cgroup is the program's own.
func start(o Options) (*os.Process, error) {
	attr := &os.ProcAttr{Files: o.Files, Env: o.Env, Sys: &syscall.SysProcAttr{Setpgid: o.OwnGroup, Credential: o.User.credential()}}
	if o.DieWithUs {
		runtime.LockOSThread()
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if o.Cgroup != "" {
		dir, err := os.Open(o.Cgroup)
		if err != nil {
			return nil, &Failure{o.Name, tool.ExitOwn, fmt.Errorf("opening the cgroup: %w", err)}
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	}
	if o.Around == nil {
		return startOrShell(o, attr)
	}
	var p *os.Process
	err := o.Around(func() (err error) {
		p, err = startOrShell(o, attr)
		return err
	})
	return p, err
}

// Environ is our environment, unchanged. os.Environ keeps only the first of several
// entries with the same name.
func Environ() []string {
	b, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return os.Environ()
	}
	env := strings.Split(string(b), "\x00")
	return env[:len(env)-1]
}

// AwaitExit returns when the process has ended. It is not reaped yet, so its process id,
// which is also that of its group, is not used again.
func (p *Process) AwaitExit() {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, p.process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// pipeRoom is the largest size that an unprivileged user may set, in bytes.
const pipeRoom = 1 << 20

// WidenPipe makes a pipe hold 1 MiB, so that its writer and its reader take turns less
// often. A refusal costs only speed.
func WidenPipe(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(WidenPipeFD)
	}
}

// WidenPipeFD is WidenPipe for a descriptor.
func WidenPipeFD(fd uintptr) {
	if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && n < pipeRoom {
		unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeRoom)
	}
}
