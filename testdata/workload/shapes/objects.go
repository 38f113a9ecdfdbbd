//go:build linux

package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// Types of the lines of path operations.
const (
	typUnlink, typRmdir, typFrom, typTo, typOld, typNew, typSymlink = 211, 212, 213, 214, 215, 216, 217
	typMkdir, typTruncate, typChmod, typChown, typMknod             = 219, 220, 221, 222, 223
)

// did makes a call on one path. value is the object, below the folder of the workload.
func did(typ int, value string, nr uintptr, a ...uintptr) int64 {
	r := made.Call(nr, a...)
	made.Line("object", typ, at(value), r)
	return r
}

// didTwo makes a call on two paths, which makes two lines.
func didTwo(from, to int, a, b string, nr uintptr, args ...uintptr) {
	r := made.Call(nr, args...)
	made.Line("object", from, at(a), r)
	made.Line("object", to, at(b), r)
}

func makeDirs(names ...string) {
	for _, name := range names {
		mkdir(name)
	}
}

func symlink(target, name string) {
	r := made.Must("symlink", made.Call(unix.SYS_SYMLINKAT, made.Str(target), cwd, made.Str(at(name))))
	made.Line("setup", typSymlink, at(name), r)
}

// enter makes a folder the working directory.
func enter(name string) { made.Must("chdir", made.Ret(unix.Chdir(at(name)))) }

// objects are path operations whose text says something else than what they were done to.
func objects() {
	makeDirs("O", "O/a", "O/a/b", "O/d", "O/gone", "O/jail")
	symlink("a/b", "O/l")
	s := made.Str
	did(typMkdir, "O/a/b/x", unix.SYS_MKDIRAT, cwd, s(at("O/l/x")), 0o755)
	did(typMkdir, "O/a/y", unix.SYS_MKDIRAT, cwd, s(at("O/l/../y")), 0o755)
	did(typMkdir, "O/a/b/x", unix.SYS_MKDIRAT, cwd, s(at("O/l/./x//")), 0o755) // EEXIST
	did(typRmdir, "O/a/b", unix.SYS_UNLINKAT, cwd, s(at("O/l/.")), unix.AT_REMOVEDIR)
	did(typRmdir, "O/a/b", unix.SYS_UNLINKAT, cwd, s(at("O/l/../b")), unix.AT_REMOVEDIR) // ENOTEMPTY
	did(typUnlink, "O/a/b/none", unix.SYS_UNLINKAT, cwd, s(at("O/l/none")), 0)
	did(typSymlink, "O/a/b/s", unix.SYS_SYMLINKAT, s("nowhere"), cwd, s(at("O/l/s")))
	did(typMknod, "O/a/b/f", unix.SYS_MKNODAT, cwd, s(at("O/l/f")), unix.S_IFREG|0o644, 0)
	did(typTruncate, "O/a/b/f", unix.SYS_TRUNCATE, s(at("O/l/f")), 7)
	did(typChmod, "O/a/b", unix.SYS_FCHMODAT, cwd, s(at("O/l")), 0o755)
	did(typChown, "O/l", unix.SYS_FCHOWNAT, cwd, s(at("O/l")), 0, 0, unix.AT_SYMLINK_NOFOLLOW)
	did(typUnlink, "O/a/b/s", unix.SYS_UNLINKAT, cwd, s(at("O/l/s")), 0) // the link itself
	didTwo(typOld, typNew, "O/a/b/f", "O/d/f", unix.SYS_LINKAT, cwd, s(at("O/l/f")), cwd, s(at("O/l/../../d/f")), 0)
	didTwo(typFrom, typTo, "O/a/b/f", "O/a/g", unix.SYS_RENAMEAT2, cwd, s(at("O/l/f")), cwd, s(at("O/l/../g")), 0)
	didTwo(typFrom, typTo, "O/a/b/x", "O/d/f", unix.SYS_RENAMEAT2, cwd, s(at("O/l/x")), cwd, s(at("O/l/../../d/f")), unix.RENAME_EXCHANGE)
	didTwo(typFrom, typTo, "O/a/b/f", "O/a/h", unix.SYS_RENAMEAT2, cwd, s(at("O/l/f")), cwd, s(at("O/l/../h")), 0) // ENOENT
	byDescriptor()
	elsewhere()
}

// byDescriptor has paths that begin at a descriptor, and at a working directory of which
// another process renames an ancestor.
func byDescriptor() {
	s := made.Str
	fd := made.Must("open", made.Call(unix.SYS_OPENAT, cwd, s(at("O/l")), unix.O_PATH|unix.O_DIRECTORY, 0))
	made.Line("setup", 1, at("O/a/b"), fd, made.Flags(unix.O_PATH|unix.O_DIRECTORY, 0))
	did(typMkdir, "O/a/b/z", unix.SYS_MKDIRAT, uintptr(fd), s("z"), 0o755)
	enter("O/l")
	pid := fork(script{call(unix.SYS_RENAMEAT2, cwd, s(at("O/a")), cwd, s(at("O/A")), 0)})
	done("rename", pid)
	made.Line("object", typFrom, at("O/a"), 0, made.By(pid))
	made.Line("object", typTo, at("O/A"), 0, made.By(pid))
	did(typRmdir, "O/A/b/z", unix.SYS_UNLINKAT, uintptr(fd), s("z/"), unix.AT_REMOVEDIR)
	did(typMkdir, "O/A/b/w", unix.SYS_MKDIRAT, cwd, s("w"), 0o755)
	did(typMkdir, "O/A/v", unix.SYS_MKDIRAT, cwd, s("../v"), 0o755)
	unix.Close(int(fd))
	enter("O/gone")
	did(typRmdir, "O/gone", unix.SYS_UNLINKAT, cwd, s(at("O/gone")), unix.AT_REMOVEDIR)
	did(typMkdir, "O/gone/n", unix.SYS_MKDIRAT, cwd, s("n"), 0o755) // ENOENT: nothing is made there any more
	enter("")
}

// elsewhere has another root, another mount, another file system and another user.
func elsewhere() {
	s := made.Str
	symlink("A/b", "O/k")
	symlink("/", "O/jail/up")
	pid := fork(script{call(unix.SYS_CHROOT, s(at("O/jail"))), call(unix.SYS_MKDIRAT, cwd, s("/up/../in"), 0o755)})
	done("chroot", pid)
	made.Line("object", typMkdir, at("O/jail/in"), 0, made.By(pid))
	from := fmt.Sprintf("/proc/%d/status", os.Getpid())
	r := made.Call(unix.SYS_RENAMEAT2, cwd, s("/proc/self/status"), cwd, s(at("O/k/status")), 0) // EXDEV
	made.Line("object", typFrom, from, r)
	made.Line("object", typTo, at("O/A/b/status"), r)
	pid = fork(script{call(unix.SYS_SETUID, 65534), call(unix.SYS_MKDIRAT, cwd, s(at("O/k/not")), 0o755)})
	r = -int64(wait(pid)) // EACCES
	made.Line("object", typMkdir, at("O/A/b/not"), r, made.By(pid))

	mkdir("O/m")
	symlink("m", "O/n")
	pid = fork(script{
		call(unix.SYS_UNSHARE, unix.CLONE_NEWNS),
		call(unix.SYS_MOUNT, s("none"), s("/"), s(""), unix.MS_REC|unix.MS_PRIVATE),
		call(unix.SYS_MOUNT, s(at("O/A")), s(at("O/m")), s(""), unix.MS_BIND),
		call(unix.SYS_MKDIRAT, cwd, s(at("O/n/bound")), 0o755),
	})
	done("mounts", pid)
	for _, v := range []struct {
		typ   int
		value string
	}{{224, "/"}, {225, "none"}, {224, at("O/m")}, {225, at("O/A")}, {typMkdir, at("O/m/bound")}} {
		made.Line("object", v.typ, v.value, 0, made.By(pid))
	}
}

// swapped makes directories below a symlink that other threads point elsewhere all the time.
// Afterwards the disk says where each of them is.
func swapped() {
	makeDirs("S", "S/1", "S/2")
	symlink("1", "S/l")
	symlink("2", "S/t")
	s := made.Str
	link, other := s(at("S/l")), s(at("S/t"))
	n, stop := num(0, 2000), atomic.Bool{}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				unix.Syscall6(unix.SYS_RENAMEAT2, cwd, link, cwd, other, unix.RENAME_EXCHANGE, 0)
			}
		})
	}
	for i := range n {
		made.Must("mkdir", made.Call(unix.SYS_MKDIRAT, cwd, s(at(fmt.Sprintf("S/l/%d", i))), 0o755))
	}
	stop.Store(true)
	wg.Wait()
	for i := range n {
		where := at(fmt.Sprintf("S/1/%d", i))
		if unix.Access(where, unix.F_OK) != nil {
			where = at(fmt.Sprintf("S/2/%d", i))
		}
		made.Line("object", typMkdir, where, 0)
	}
}
