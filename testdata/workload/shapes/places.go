//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

func mkdir(name string) {
	made.Line("setup", 219, at(name), made.Must("mkdir", made.Call(unix.SYS_MKDIRAT, cwd, made.Str(at(name)), 0o755)))
}

// chroot: the child's absolute path starts in another root.
func chroot() {
	mkdir("M-root")
	pid := fork(script{call(unix.SYS_CHROOT, made.Str(at("M-root"))), openStep("/M-in-chroot"), openStep("/../M-top")})
	done("chroot", pid)
	opened("chroot", "M-root/M-in-chroot", 0, made.NoRet(), made.By(pid))
	opened("chroot", "M-root/M-top", 0, made.NoRet(), made.By(pid))
}

// mountNamespace: only the child sees a file system.
func mountNamespace() {
	mkdir("M-private")
	s := made.Str
	pid := fork(script{
		call(unix.SYS_UNSHARE, unix.CLONE_NEWNS),
		call(unix.SYS_MOUNT, s("none"), s("/"), s(""), unix.MS_REC|unix.MS_PRIVATE),
		call(unix.SYS_MOUNT, s("M-private-source"), s(at("M-private")), s("tmpfs"), 0),
		openStep(at("M-private/M-unseen")),
	})
	if st := wait(pid); st != 0 {
		made.Skipped("mount-namespace", unix.Errno(st))
		return
	}
	for _, v := range []struct {
		typ   int
		value string
	}{{224, "/"}, {225, "none"}, {224, at("M-private")}, {225, "M-private-source"}} {
		made.Line("mount-namespace", v.typ, v.value, 0, made.By(pid))
	}
	opened("mount-namespace", "M-private/M-unseen", 0, made.NoRet(), made.By(pid))
}

// coldPage: the path is on a mapped page that is not in memory yet, so a reader that
// cannot fault pages in cannot read it.
func coldPage() {
	r := made.Must("openat", made.Call(unix.SYS_OPENAT, cwd, made.Str("M-text"), create, 0o644))
	opened("setup", "M-text", r)
	fd := int(r)
	var text strings.Builder
	const page = 4096
	n := num(0, 23)
	for i := range n {
		p := at(fmt.Sprintf("M-cold-%02d", i))
		text.WriteString(p + strings.Repeat("\x00", page-len(p)))
	}
	_, err := unix.Pwrite(fd, []byte(text.String()), 0)
	made.Must("pwrite", made.Ret(err))
	base := made.Call(unix.SYS_MMAP, 0, uintptr(n*page), unix.PROT_READ, unix.MAP_PRIVATE, uintptr(fd), 0)
	made.Must("mmap", base)
	for i := range n {
		r := made.Call(unix.SYS_OPENAT, cwd, uintptr(base)+uintptr(i*page), create, 0o644)
		opened("cold-page", fmt.Sprintf("M-cold-%02d", i), r)
		unix.Close(int(r))
	}
	unix.Close(fd)
}

// cgroup is this process's own directory in the cgroup2 file system.
func cgroup() string {
	own, root := "", ""
	lines("/proc/self/cgroup", func(l string) {
		if p, ok := strings.CutPrefix(l, "0::"); ok {
			own = p
		}
	})
	lines("/proc/self/mountinfo", func(l string) {
		before, after, _ := strings.Cut(l, " - ")
		if f := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && root == "" && len(f) > 4 {
			root = f[4]
		}
	})
	if own == "" || root == "" {
		made.Must("cgroup2", -int64(unix.ENOENT))
	}
	return root + own
}

func lines(path string, each func(string)) {
	f, err := os.Open(path)
	made.Must("open "+path, made.Ret(err))
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		each(sc.Text())
	}
}

func moveSelf(dir string) step {
	st := step{nr: selfMoveStep}
	st.a[0] = made.Str(dir + "/cgroup.procs")
	return st
}

// childCgroup: a child group of the run's group belongs to the run.
func childCgroup() {
	sub := cgroup() + "/M-child"
	made.Line("child-cgroup", 219, sub, made.Must("mkdir "+sub, made.Call(unix.SYS_MKDIRAT, cwd, made.Str(sub), 0o755)))
	pid := fork(script{moveSelf(sub), openStep(at("M-in-child-cgroup"))})
	done("child-cgroup", pid)
	made.Line("child-cgroup", 1, sub+"/cgroup.procs", 0, made.NoRet(), made.By(pid), made.Flags(unix.O_WRONLY, 0))
	opened("child-cgroup", "M-in-child-cgroup", 0, made.NoRet(), made.By(pid))
	made.Line("child-cgroup", 212, sub, made.Must("rmdir", made.Call(unix.SYS_UNLINKAT, cwd, made.Str(sub), unix.AT_REMOVEDIR)))
}

// escape: a child leaves the run's group. Only what it did before can be expected.
func escape() {
	up := cgroup() + "/.."
	pid := fork(script{openStep(at("M-before-escape")), moveSelf(up), openStep(at("M-after-escape"))})
	done("escape", pid)
	opened("escape", "M-before-escape", 0, made.NoRet(), made.By(pid))
}
