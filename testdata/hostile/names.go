//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onNames let the observer see another name than the kernel uses.
var onNames = []attack{
	{name: "stalled open", what: "a seccomp filter asks about each openat; while the kernel waits, the path's text becomes another one", do: stalledOpen},
	{name: "stalled copy", what: "the path's text is in memory that a userfaultfd fills, differently each time it is read", do: stalledCopy},
	{name: "swapped text", what: "the text of a removed file's path changed before the call returns: the file is large, and takes long to free", do: swappedText, blind: "what another thread made of their text during the call"},
	{name: "nested namespaces", what: "user, pid and mount namespaces in such namespaces, each with its own /proc, from which a daemon acts on", do: nested},
}

// last are attacks after which nothing more can be measured on this machine.
var last = []attack{
	{name: "lockdown", what: "the kernel locked down (confidentiality): its memory cannot be read any more", do: func(*world) error {
		const dir = "/sys/kernel/security"
		if _, err := os.Stat(dir + "/lockdown"); err != nil {
			if err := mount("securityfs", dir, "securityfs", 0, ""); err != nil {
				return err
			}
		}
		return write(dir+"/lockdown", "confidentiality")
	}, rude: true},
}

// text is a path that the kernel reads from memory that another thread can change.
func text(path string) []byte { return append([]byte(path), make([]byte, 64)...) }

func createAt(path *byte) (int, error) {
	cwd := unix.AT_FDCWD
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(path)), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}

// askOpens lets a filter ask about each openat of the calling thread.
func askOpens() (int, error) {
	code := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: unix.SYS_OPENAT, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	return int(fd), nil
}

func stalledOpen(w *world) error {
	path := text(w.dir + "/decoy")
	listener, opened := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // this thread ends with its filter
		fd, err := askOpens()
		if listener <- fd; err != nil {
			opened <- err
			return
		}
		got, err := createAt(&path[0])
		unix.Close(got)
		opened <- err
	}()
	if fd := <-listener; fd >= 0 {
		var question [80]byte
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&question[0]))); e != 0 {
			return e
		}
		copy(path, text(w.dir+"/open-hidden"))
		answer := [24]byte{20: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		copy(answer[:8], question[:8])
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer[0]))); e != 0 {
			return e
		}
	}
	err := <-opened
	act(w.dir, "hidden")
	return err
}

const (
	uffdAPI, uffdRegister, uffdCopy = 0xc018aa3f, 0xc020aa00, 0xc028aa03
	uffdMissing                     = 1
)

// stalledCopy gives the kernel one text when it copies the path, and takes the page away,
// so that whoever reads it again waits, or gets another.
func stalledCopy(w *world) error {
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if e != 0 {
		return fmt.Errorf("userfaultfd: %w", e)
	}
	defer unix.Close(int(fd))
	api := [3]uint64{0xaa}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, uffdAPI, uintptr(unsafe.Pointer(&api[0]))); e != 0 {
		return fmt.Errorf("userfaultfd: %w", e)
	}
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	region := [4]uint64{at, uint64(page), uffdMissing}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, uffdRegister, uintptr(unsafe.Pointer(&region[0]))); e != 0 {
		return fmt.Errorf("userfaultfd: %w", e)
	}
	done := make(chan error, 1)
	go func() {
		got, err := createAt(&b[0])
		unix.Close(got)
		done <- err
	}()
	for _, name := range []string{"/open-hidden", "/decoy", "/decoy"} {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 500); n == 0 {
			break
		}
		var msg [32]byte
		unix.Read(int(fd), msg[:])
		full := make([]byte, page)
		copy(full, w.dir+name)
		fill := [5]uint64{at, uint64(uintptr(unsafe.Pointer(&full[0]))), uint64(page)}
		unix.Syscall(unix.SYS_IOCTL, fd, uffdCopy, uintptr(unsafe.Pointer(&fill[0])))
		runtime.KeepAlive(full)
		unix.Madvise(b, unix.MADV_DONTNEED)
	}
	err = <-done
	act(w.dir, "hidden")
	return err
}

func swappedText(w *world) error {
	real, other := w.dir+"/gone-hidden", text(w.dir+"/decoy")
	f, err := os.Create(real)
	if err != nil {
		return err
	}
	defer os.Create(w.dir + "/open-hidden")
	chunk := make([]byte, 1<<20)
	for range 256 {
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	f.Close()
	path := text(real)
	done := make(chan unix.Errno, 1)
	go func() {
		cwd := unix.AT_FDCWD
		_, _, e := unix.Syscall(unix.SYS_UNLINKAT, uintptr(cwd), uintptr(unsafe.Pointer(&path[0])), 0)
		done <- e
	}()
	var st unix.Stat_t
	for unix.Stat(real, &st) == nil {
	}
	copy(path, other)
	if e := <-done; e != 0 {
		return e
	}
	return nil
}

// nested is the first of three levels; each starts the next.
func nested(w *world) error {
	return below(w.dir, 3)
}

func below(dir string, levels int) error {
	if levels == 0 {
		act(dir, "hidden")
		late(&world{dir: dir})
		return nil
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	script := "mount -t proc proc /proc; exec \"$@\""
	c := exec.Command("/bin/sh", "-c", script, "sh", self, "_below", dir, strings.Repeat("x", levels-1))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}}}
	return c.Run()
}

// remountCgroups makes the hierarchy of the cgroups read-only; a process stays longer than
// the runner waits.
func remountCgroups(w *world) error {
	self, _ := os.Readlink("/proc/self/exe")
	c := exec.Command(self, "_stay", w.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Start()
	return mount("", cgroupMount(), "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// tracingOff turns off what tracefs and sysctls can turn off.
func tracingOff(*world) error {
	const dir = "/sys/kernel/tracing"
	if _, err := os.Stat(dir + "/tracing_on"); err != nil {
		if err := mount("tracefs", dir, "tracefs", 0, ""); err != nil {
			return err
		}
	}
	err := errors.Join(write(dir+"/tracing_on", "0"), write(dir+"/events/enable", "0"))
	files, _ := filepath.Glob(dir + "/events/{raw_syscalls,sched,cgroup}/enable")
	for _, f := range files {
		err = errors.Join(err, write(f, "0"))
	}
	if e := write("/proc/sys/kernel/ftrace_enabled", "0"); err == nil {
		err = e
	}
	time.Sleep(50 * time.Millisecond)
	write("/proc/sys/kernel/ftrace_enabled", "1")
	write(dir+"/tracing_on", "1")
	return err
}
