//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var stageNames = []string{"runner-exec", "runner-capture", "runner-normalize", "runner-correlate", "runner-pack"}

var onProcesses = func() (list []attack) {
	for _, name := range stageNames {
		list = append(list, attack{name: "kill " + name, what: "SIGKILL to " + name, do: signals(unix.SIGKILL, name)})
	}
	list = append(list,
		attack{name: "kill two", what: "SIGKILL to runner-exec and runner-capture", do: signals(unix.SIGKILL, "runner-exec", "runner-capture")},
		attack{name: "kill stages", what: "SIGKILL to all stages", do: signals(unix.SIGKILL, stageNames[1:]...)},
		attack{name: "kill all", what: "one kill(-1, SIGKILL)", do: func(*world) error { return unix.Kill(-1, unix.SIGKILL) }})
	for _, name := range stageNames {
		list = append(list, attack{name: "stop " + name, what: "SIGSTOP to " + name + ", acts, SIGCONT", do: stopped(name)})
	}
	return append(list,
		attack{name: "stop and leave", what: "SIGSTOP to runner-capture, and no SIGCONT", do: signals(unix.SIGSTOP, "runner-capture")},
		attack{name: "signal runner-capture", what: "SIGTERM to runner-capture", do: signals(unix.SIGTERM, "runner-capture")},
		attack{name: "abort runner-exec", what: "SIGABRT to runner-exec", do: signals(unix.SIGABRT, "runner-exec")},
		attack{name: "limit memory", what: "prlimit of runner-capture's address space to what it has", do: limit("runner-capture", unix.RLIMIT_AS, 1)},
		attack{name: "limit files", what: "prlimit of runner-capture's descriptors to none", do: limit("runner-capture", unix.RLIMIT_NOFILE, 0)},
		attack{name: "limit size", what: "prlimit of runner-pack's file size to 0", do: limit("runner-pack", unix.RLIMIT_FSIZE, 0)},
		attack{name: "idle", what: "SCHED_IDLE for runner-capture, then 20,000 opens", do: idle},
		attack{name: "pid reuse", what: "writes ns_last_pid so that 300 children have the same process id, each opens a file", do: reuse},
	)
}()

func signals(sig syscall.Signal, names ...string) func(*world) error {
	return func(w *world) (err error) {
		for _, n := range names {
			if w.stages[n] == 0 {
				return errors.New(n + " is not visible")
			}
			if e := unix.Kill(w.stages[n], sig); e != nil {
				err = fmt.Errorf("kill: %w", e)
			}
		}
		time.Sleep(100 * time.Millisecond)
		return err
	}
}

func stopped(name string) func(*world) error {
	return func(w *world) error {
		if w.stages[name] == 0 {
			return errors.New(name + " is not visible")
		}
		if err := unix.Kill(w.stages[name], unix.SIGSTOP); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		act(w.dir, "hidden")
		time.Sleep(300 * time.Millisecond)
		return unix.Kill(w.stages[name], unix.SIGCONT)
	}
}

func limit(name string, what int, to uint64) func(*world) error {
	return func(w *world) error {
		if what == unix.RLIMIT_AS {
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(w.stages[name]) + "/statm")
			pages, _ := strconv.ParseUint(strings.Fields(string(b) + " 0")[0], 10, 64)
			to = pages * uint64(os.Getpagesize())
		}
		l := unix.Rlimit{Cur: to, Max: to}
		if err := unix.Prlimit(w.stages[name], what, &l, nil); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
		return nil
	}
}

func idle(w *world) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	err := unix.SchedSetAttr(w.stages["runner-capture"], &attr, 0)
	for range 20000 {
		unix.Open(w.dir+"/none", unix.O_RDONLY, 0)
	}
	return err
}

func reuse(w *world) error {
	for i := range 300 {
		if err := write("/proc/sys/kernel/ns_last_pid", "30000"); err != nil {
			return err
		}
		c := exec.Command("/proc/self/exe", "_act", w.dir)
		if err := c.Run(); err != nil {
			return fmt.Errorf("child %d: %w", i, err)
		}
	}
	return nil
}

var onMemory = []attack{
	{name: "ptrace runner-exec", what: "PTRACE_SEIZE of runner-exec, then detached", do: traced("runner-exec")},
	{name: "ptrace runner-capture", what: "the same with runner-capture", do: traced("runner-capture")},
	{name: "ptrace thread", what: "the same with one further thread of runner-capture", do: tracedThread},
	{name: "poke", what: "PTRACE_ATTACH to runner-capture, and its memory written", do: poke},
	{name: "proc mem", what: "/proc/PID/mem of runner-capture opened for writing and written", do: procMem},
	{name: "vm_writev", what: "process_vm_writev into runner-capture", do: vmWritev},
	{name: "pidfd_getfd", what: "runner-capture's descriptors taken by pidfd_getfd, its maps written", do: takeDescriptors},
	{name: "write the stream", what: "/proc/PID/fd/1 of runner-capture opened, a line written into the stream", do: intoPipe},
	{name: "read the stream", what: "/proc/PID/fd/0 of runner-normalize opened, part of the stream read away", do: fromPipe},
	{name: "write the control line", what: "/proc/PID/fd/0 of runner-capture opened, a line that ends the run written", do: control},
	{name: "write temporary files", what: "all regular files among the descriptors of the stages opened by /proc and overwritten", do: scribble},
	{name: "write spilled lines", what: "the same after so many opens that runner-normalize has a scratch file", do: func(w *world) error {
		long := w.dir + "/" + strings.Repeat("n", 200)
		for range 120000 {
			unix.Open(long, unix.O_RDONLY, 0)
		}
		time.Sleep(time.Second)
		return scribble(w)
	}},
	{name: "oom_score_adj", what: "runner-capture made the first victim of the OOM killer", do: func(w *world) error {
		return write(fmt.Sprintf("/proc/%d/oom_score_adj", w.stages["runner-capture"]), "1000")
	}},
}

func ptrace(request, pid int, addr, data uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), addr, data, 0, 0)
	if e != 0 {
		return fmt.Errorf("ptrace: %w", e)
	}
	return nil
}

func seize(w *world, pid int) error {
	runtime.LockOSThread()
	if err := ptrace(unix.PTRACE_SEIZE, pid, 0, 0); err != nil {
		return err
	}
	act(w.dir, "hidden")
	ptrace(unix.PTRACE_INTERRUPT, pid, 0, 0)
	var ws unix.WaitStatus
	unix.Wait4(pid, &ws, unix.WALL, nil)
	return ptrace(unix.PTRACE_DETACH, pid, 0, 0)
}

func traced(name string) func(*world) error {
	return func(w *world) error { return seize(w, w.stages[name]) }
}

func tracedThread(w *world) error {
	pid := w.stages["runner-capture"]
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	tid, _ := strconv.Atoi(tasks[len(tasks)-1].Name())
	return seize(w, tid)
}

// heap is a writable address of the process.
func heap(pid int) (uintptr, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 1 && strings.HasPrefix(f[1], "rw") {
			a, _, _ := strings.Cut(f[0], "-")
			n, err := strconv.ParseUint(a, 16, 64)
			return uintptr(n), err
		}
	}
	return 0, errors.New("no writable memory")
}

func poke(w *world) error {
	runtime.LockOSThread()
	pid := w.stages["runner-capture"]
	at, err := heap(pid)
	if err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_ATTACH, pid, 0, 0); err != nil {
		return err
	}
	var ws unix.WaitStatus
	unix.Wait4(pid, &ws, unix.WALL, nil)
	var word uintptr
	ptrace(unix.PTRACE_PEEKDATA, pid, at, uintptr(unsafe.Pointer(&word)))
	err = ptrace(unix.PTRACE_POKEDATA, pid, at, word)
	act(w.dir, "hidden")
	ptrace(unix.PTRACE_DETACH, pid, 0, 0)
	return err
}

func procMem(w *world) error {
	pid := w.stages["runner-capture"]
	at, err := heap(pid)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 8)
	if _, err := f.ReadAt(b, int64(at)); err != nil {
		return err
	}
	_, err = f.WriteAt(b, int64(at))
	return err
}

func vmWritev(w *world) error {
	pid := w.stages["runner-capture"]
	at, err := heap(pid)
	if err != nil {
		return err
	}
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: at, Len: 8}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	if _, err = unix.ProcessVMWritev(pid, local, remote, 0); err != nil {
		return fmt.Errorf("process_vm_writev: %w", err)
	}
	return nil
}

func takeDescriptors(w *world) error {
	pidfd, err := unix.PidfdOpen(w.stages["runner-capture"], 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	last := errors.New("no descriptor")
	for fd := range 64 {
		got, err := unix.PidfdGetfd(pidfd, fd, 0)
		if err != nil {
			if err != unix.EBADF {
				last = fmt.Errorf("pidfd_getfd: %w", err)
			}
			continue
		}
		last = nil
		clearMap(got)
	}
	return last
}

func procFD(w *world, name string, fd, flags int) (int, error) {
	p := fmt.Sprintf("/proc/%d/fd/%d", w.stages[name], fd)
	got, err := unix.Open(p, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", p, err)
	}
	return got, nil
}

func intoPipe(w *world) error {
	fd, err := procFD(w, "runner-capture", 1, unix.O_WRONLY)
	if err == nil {
		_, err = unix.Write(fd, []byte("{\"schema\":\"runner.raw_event.v0\"}\n"))
	}
	return err
}

func fromPipe(w *world) error {
	fd, err := procFD(w, "runner-normalize", 0, unix.O_RDONLY)
	if err != nil {
		return err
	}
	b := make([]byte, 64)
	for range 200 {
		if n, _ := unix.Read(fd, b); n > 0 {
			return nil
		}
		act(w.dir, "hidden")
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("nothing came")
}

func control(w *world) error {
	fd, err := procFD(w, "runner-capture", 0, unix.O_WRONLY)
	if err == nil {
		_, err = unix.Write(fd, []byte("{\"schema\":\"runner.control.v0\",\"op\":\"finished\",\"exit_code\":0}\n"))
	}
	return err
}

func scribble(w *world) error {
	n, last := 0, error(nil)
	for _, name := range stageNames {
		for fd := range 32 {
			var st unix.Stat_t
			if unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", w.stages[name], fd), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			n++
			if got, err := procFD(w, name, fd, unix.O_RDWR); err == nil {
				unix.Pwrite(got, []byte("hostile"), 0)
			} else {
				last = err
			}
		}
	}
	if n == 0 {
		return errors.New("there is none")
	}
	return last
}
