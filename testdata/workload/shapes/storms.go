//go:build linux

package main

import (
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// workers runs one script in each of P children and returns their process ids.
func workers(p int, s script) []int {
	pids := make([]int, p)
	for i := range pids {
		pids[i] = fork(s)
	}
	for _, pid := range pids {
		done("worker", pid)
	}
	return pids
}

// share is what each of p workers does of n.
func share(n, p int) int {
	if n%p != 0 {
		made.Must("the number is no multiple of the workers", -int64(unix.EINVAL))
	}
	return n / p
}

// execs: P workers execute a tiny program, N times in all. Each is one fork, one exec and
// one exit.
func execs() {
	n, p := num(0, 200), num(1, 8)
	tiny := at("M-tiny")
	flags := uint64(unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC)
	r := made.Must("openat", made.Call(unix.SYS_OPENAT, cwd, made.Str(tiny), uintptr(flags), 0o755))
	made.Line("setup", 1, tiny, r, made.Flags(flags, 0o755))
	_, err := unix.Write(int(r), made.Tiny())
	made.Must("write", made.Ret(err))
	unix.Close(int(r))
	workers(p, script{{nr: spawnStep, a: [5]uintptr{made.Str(tiny)}, n: share(n, p)}})
	made.Line("execs", 4, tiny, 0, made.By(0), made.NoRet(), made.Times(n))
}

// forks: P workers make children that end at once, N in all. They leave no kernel line.
func forks() {
	n, p := num(0, 200), num(1, 8)
	workers(p, script{{nr: spawnStep, n: share(n, p)}, openStep(at("M-forked"))})
	opened("forks", "M-forked", 0, made.NoRet(), made.By(0), made.Times(p))
}

// moves: N children leave the run's group at once.
func moves() {
	pids := make([]int, num(0, 64))
	s := script{openStep(at("M-before-move")), moveSelf(cgroup() + "/..")}
	for i := range pids {
		pids[i] = fork(s)
	}
	for _, pid := range pids {
		done("moves", pid)
	}
	opened("moves", "M-before-move", 0, made.NoRet(), made.By(0), made.Times(len(pids)))
}
