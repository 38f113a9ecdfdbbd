//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// forkBefore: a forked child makes the access, 23 times.
func forkBefore() {
	for i := range num(0, 23) {
		name := fmt.Sprintf("M-fork-%02d", i)
		pid := fork(script{openStep(at(name))})
		done("fork", pid)
		opened("fork", name, 0, made.NoRet(), made.By(pid))
	}
}

// quickExit: children end right after the access, and all are made before the first wait.
func quickExit() {
	pids := make([]int, num(0, 23))
	for i := range pids {
		pids[i] = fork(script{openStep(at(fmt.Sprintf("M-quick-%02d", i)))})
	}
	for i, pid := range pids {
		done("quick-exit", pid)
		opened("quick-exit", fmt.Sprintf("M-quick-%02d", i), 0, made.NoRet(), made.By(pid))
	}
}

// siblings: two processes that live at the same time touch different files.
func siblings() {
	a := fork(script{openStep(at("M-sibling-a")), nap(50), openStep(at("M-sibling-a2"))})
	b := fork(script{openStep(at("M-sibling-b")), nap(50), openStep(at("M-sibling-b2"))})
	done("sibling", a)
	done("sibling", b)
	for _, v := range []struct {
		name string
		pid  int
	}{{"M-sibling-a", a}, {"M-sibling-a2", a}, {"M-sibling-b", b}, {"M-sibling-b2", b}} {
		opened("siblings", v.name, 0, made.NoRet(), made.By(v.pid))
	}
}

// parallel: K children race, each opens M files of its own in its own order.
func parallel() {
	k, m := num(0, 7), num(1, 23)
	pids := make([]int, k)
	for i := range pids {
		var s script
		for j := range m {
			s = append(s, openStep(at(fmt.Sprintf("M-par-%d-%02d", i, j))))
		}
		pids[i] = fork(s)
	}
	for i, pid := range pids {
		done("parallel", pid)
		for j := range m {
			opened("parallel", fmt.Sprintf("M-par-%d-%02d", i, j), 0, made.NoRet(), made.By(pid))
		}
	}
}

// hammer: P children each open and close one file N times.
func hammer() {
	n, p := num(0, 1000), num(1, 1)
	pids := make([]int, p)
	for i := range pids {
		st := step{nr: reopenStep, n: n}
		st.a[0] = made.Str(at(fmt.Sprintf("M-hammer-%d", i)))
		pids[i] = fork(script{st})
	}
	for i, pid := range pids {
		done("hammer", pid)
		opened("hammer", fmt.Sprintf("M-hammer-%d", i), 0, made.NoRet(), made.By(pid), made.Times(n))
	}
}

// opens is the hammer without a child: open and close one file N times.
func opens() {
	n := num(0, 1000)
	path := made.Str(at("M-opens"))
	for range n {
		fd := made.Must("openat", made.Call(unix.SYS_OPENAT, cwd, path, create, 0o644))
		unix.Close(int(fd))
	}
	opened("opens", "M-opens", 0, made.NoRet(), made.Times(n))
}

// daemon: the grandchild outlives the command and its parent, and opens later.
func daemon() {
	pid := fork(script{call(unix.SYS_SETSID), {nr: forkStep}, nap(int64(num(0, 300))), openStep(at("M-daemon"))})
	done("daemon", pid)
	opened("daemon", "M-daemon", 0, made.NoRet(), made.By(0))
}

// setsid: a new session belongs to the same run.
func setsid() {
	pid := fork(script{call(unix.SYS_SETSID), openStep(at("M-setsid"))})
	done("setsid", pid)
	opened("setsid", "M-setsid", 0, made.NoRet(), made.By(pid))
}

func self() string {
	s, err := os.Readlink("/proc/self/exe")
	made.Must("readlink", made.Ret(err))
	return s
}

// vfork: as in posix_spawn and Go, the child shares memory until exec.
func vfork() {
	exe := self()
	pid, err := syscall.ForkExec(exe, []string{"shapes", "opens", dir, "1"},
		&syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2}})
	made.Must("vfork", made.Ret(err))
	done("vfork", pid)
	made.Line("vfork", 4, exe, 0, made.By(pid)) // the child printed its own open
}

// execStorm: N children that execute and end, one after the other.
func execStorm() {
	exe, n := self(), num(0, 23)
	for range n {
		pid, err := syscall.ForkExec(exe, []string{"shapes", "_nop"},
			&syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2}})
		made.Must("exec-storm", made.Ret(err))
		done("exec-storm", pid)
	}
	made.Line("exec-storm", 4, exe, 0, made.By(0), made.Times(n))
}

// thread: a thread that is not the leader opens.
func thread() {
	onThread(func() {
		r := made.Call(unix.SYS_OPENAT, cwd, made.Str(at("M-thread")), create, 0o644)
		opened("thread", "M-thread", r)
	})
}

// threadExec: a thread that is not the leader executes, and takes over the leader's number.
func threadExec() {
	exe := self()
	onThread(func() {
		made.Line("thread-exec", 4, exe, 0)
		made.Must("exec", made.Ret(syscall.Exec(exe, []string{"shapes", "_nop"}, []string{})))
	})
}

// onThread runs f on a thread other than the leader.
func onThread(f func()) {
	finished := make(chan struct{})
	var start func()
	start = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the leader: keep it busy and try again
			inner := make(chan struct{})
			go func() { start(); close(inner) }()
			<-inner
			return
		}
		f()
		close(finished)
	}
	go start()
	<-finished
}
