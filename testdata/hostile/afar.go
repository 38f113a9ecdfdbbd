//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fromAfar reach the runner's processes by other ways than kill and ptrace.
var fromAfar = []attack{
	{name: "pidfd signal", what: "SIGSTOP to runner-capture by pidfd_send_signal, acts, SIGCONT", do: pidfdSignal},
	{name: "async signal", what: "runner-capture made the owner of a socket whose news are SIGSTOP (F_SETOWN, F_SETSIG), acts, SIGCONT", do: asyncSignal},
	{name: "kill parent cgroup", what: "cgroup.kill of the cgroup in which runner-exec runs", do: func(w *world) error {
		return write(filepath.Dir(w.scope)+"/cgroup.kill", "1")
	}},
	{name: "freeze parent cgroup", what: "that cgroup frozen", do: func(w *world) error {
		return write(filepath.Dir(w.scope)+"/cgroup.freeze", "1")
	}},
	{name: "perf event", what: "a perf event that samples runner-capture", do: perfEvent},
	{name: "slow down", what: "runner-capture's timer slack, nice value, I/O priority and CPUs set to the worst, then 20,000 opens", do: slowDown},
	{name: "starve", what: "runner-capture bound to one CPU, which a SCHED_FIFO thread without throttling takes for 2 s, and opens on the others", do: starve, rude: true, slow: true},
}

func pidfdSignal(w *world) error {
	fd, err := unix.PidfdOpen(w.stages["runner-capture"], 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0); err != nil {
		return fmt.Errorf("pidfd_send_signal: %w", err)
	}
	act(w.dir, "hidden")
	time.Sleep(100 * time.Millisecond)
	return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
}

func asyncSignal(w *world) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for _, step := range [][2]int{{unix.F_SETOWN, w.stages["runner-capture"]}, {unix.F_SETSIG, int(unix.SIGSTOP)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		if _, err := unix.FcntlInt(uintptr(pair[0]), step[0], step[1]); err != nil {
			return fmt.Errorf("fcntl: %w", err)
		}
	}
	unix.Write(pair[1], []byte("x"))
	act(w.dir, "hidden")
	time.Sleep(100 * time.Millisecond)
	unix.FcntlInt(uintptr(pair[0]), unix.F_SETSIG, int(unix.SIGCONT))
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

func perfEvent(w *world) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: 10000, Sample_type: unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER, Sample_regs_user: 1, Sample_stack_user: 4096}
	fd, err := unix.PerfEventOpen(&attr, w.stages["runner-capture"], -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("perf_event_open: %w", err)
	}
	defer unix.Close(fd)
	act(w.dir, "hidden")
	_, err = unix.Mmap(fd, 0, 9*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	time.Sleep(100 * time.Millisecond)
	return err
}

func slowDown(w *world) error {
	pid := w.stages["runner-capture"]
	one := unix.CPUSet{}
	one.Set(0)
	_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13) // IOPRIO_CLASS_IDLE
	err := errors.Join(unix.SchedSetaffinity(pid, &one), unix.Setpriority(unix.PRIO_PROCESS, pid, 19),
		write(fmt.Sprintf("/proc/%d/timerslack_ns", pid), "10000000000"))
	if e != 0 {
		err = errors.Join(err, e)
	}
	for range 20000 {
		unix.Open(w.dir+"/none", unix.O_RDONLY, 0)
	}
	return err
}

func starve(w *world) error {
	pid := w.stages["runner-capture"]
	one := unix.CPUSet{}
	one.Set(0)
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	err := unix.SchedSetaffinity(pid, &one)
	for _, t := range tasks {
		var tid int
		fmt.Sscan(t.Name(), &tid)
		unix.SchedSetaffinity(tid, &one)
	}
	err = errors.Join(err, write("/proc/sys/kernel/sched_rt_runtime_us", "-1"))
	end := time.Now().Add(2 * time.Second)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		unix.SchedSetaffinity(0, &one)
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}
		e := unix.SchedSetAttr(0, &attr, 0)
		for e == nil && time.Now().Before(end) {
		}
		done <- e
	}()
	for time.Now().Before(end) {
		unix.Open(w.dir+"/none", unix.O_RDONLY, 0)
		act(w.dir, "hidden")
	}
	return errors.Join(err, <-done)
}

// forkAway starts a child in another cgroup.
func forkAway(w *world) error {
	other := cgroupMount() + "/hostile-away"
	os.Mkdir(other, 0o755)
	dir, err := os.Open(other)
	if err != nil {
		return err
	}
	defer dir.Close()
	c := exec.Command("/proc/self/exe", "_late", w.dir, "hidden")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return c.Run()
}
