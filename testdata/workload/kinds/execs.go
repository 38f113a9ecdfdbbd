//go:build linux

package main

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// stage is what a child of this program does. Its parent prints for it.
func stage(name string, args []string) {
	switch name {
	case "_nop":
	case "_execveat":
		fd := made.Must("open", made.Call(unix.SYS_OPENAT, fdArg(cwd), made.Str(args[0]), unix.O_PATH|unix.O_CLOEXEC, 0))
		execveat(int(fd))
	case "_memfd":
		execveat(selfInMemory(args[0]))
	default:
		os.Exit(2)
	}
}

func execveat(fd int) {
	argv, _ := syscall.SlicePtrFromStrings([]string{"nop", "_nop"})
	envp, _ := syscall.SlicePtrFromStrings(nil)
	r := made.Call(unix.SYS_EXECVEAT, uintptr(fd), made.Str(""), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH)
	made.Must("execveat", r)
}

func selfInMemory(self string) int {
	fd, err := unix.MemfdCreate("M-memfd-exec", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	made.Must("memfd_create", made.Ret(err))
	src := made.Must("openat", made.Call(unix.SYS_OPENAT, fdArg(cwd), made.Str(self), unix.O_RDONLY|unix.O_CLOEXEC, 0))
	if _, err := io.Copy(os.NewFile(uintptr(fd), "memfd"), os.NewFile(uintptr(src), self)); err != nil {
		os.Exit(1)
	}
	// As container engines do. In one that is not sealed others could write: what the program names there is in doubt until it is read.
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	made.Must("fcntl", made.Ret(err))
	return fd
}

// spawn forks and executes; it returns the child's pid, or the errno.
func spawn(path string, argv ...string) (int, int64) {
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: dir, Env: []string{}, Files: []uintptr{0, 2, 2}})
	if err != nil {
		return 0, made.Ret(err)
	}
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if ws.ExitStatus() != 0 {
		made.Must("child "+argv[len(argv)-1], -int64(unix.ECHILD))
	}
	return pid, 0
}

func execs() {
	self, err := os.Readlink("/proc/self/exe")
	made.Must("readlink", made.Ret(err))

	pid, _ := spawn(self, "kinds", "_nop")
	made.Line("exec", 4, self, 0, made.By(pid))
	symlink(self, "M-exec-link")
	pid, _ = spawn("./M-exec-link", "kinds", "_nop")
	made.Line("exec-symlink", 4, self, 0, made.By(pid))

	pid, _ = spawn(self, "kinds", "_execveat", self)
	made.Line("exec", 4, self, 0, made.By(pid), made.Times(2))
	made.Line("open-self", 1, self, 0, made.By(pid), made.NoRet(), made.Flags(unix.O_PATH|unix.O_CLOEXEC, 0))

	pid, _ = spawn(self, "kinds", "_memfd", self)
	made.Line("exec", 4, self, 0, made.By(pid))
	made.Line("open-self", 1, self, 0, made.By(pid), made.NoRet(), made.Flags(unix.O_RDONLY|unix.O_CLOEXEC, 0))
	made.Line("exec-memfd", 4, "memfd:M-memfd-exec", 0, made.By(pid))

	script("M-script", "#!"+self+" _nop\n", 0o755)
	pid, _ = spawn("./M-script", "M-script")
	made.Line("exec-script", 4, self, 0, made.By(pid))
	made.Line("exec-script", 200, at("M-script"), 0, made.By(pid))

	refused("exec-enoent", at("M-exec-none"), at("M-exec-none"))
	refused("exec-enoent-relative", "./M-exec-none", at("M-exec-none"))
	script("M-exec-eacces", "#!"+self+" _nop\n", 0o644)
	refused("exec-eacces", at("M-exec-eacces"), at("M-exec-eacces"))
	script("M-exec-enoexec", "neither ELF nor script\n", 0o755)
	refused("exec-enoexec", at("M-exec-enoexec"), at("M-exec-enoexec"))
	script("M-exec-interp", "#!"+at("M-no-interp")+"\n", 0o755)
	refused("exec-no-interpreter", at("M-exec-interp"), at("M-exec-interp"))
	argv, _ := syscall.SlicePtrFromStrings([]string{"none"})
	r := made.Call(unix.SYS_EXECVEAT, fdArg(cwd), made.Str("M-execveat-none"), uintptr(unsafe.Pointer(&argv[0])), 0, 0)
	made.Line("execveat-enoent", 201, at("M-execveat-none"), r)
}

// script writes a small executable file.
func script(name, text string, mode uint64) {
	fd := openat("setup", cwd, at(name), at(name), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	b := []byte(text)
	_, err := unix.Write(fd, b)
	made.Must("write", made.Ret(err))
	unix.Close(fd)
}

// refused expects an exec that fails. The child ends before its process id can be
// read, so the process is not checked.
func refused(op, path, value string) {
	_, r := spawn(path, "kinds", "_nop")
	made.Line(op, 201, value, r, made.By(0))
}
