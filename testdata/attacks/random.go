//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

func init() {
	helpers["_random"] = func(args []string) {
		seed, _ := strconv.ParseUint(args[0], 10, 64)
		calls, _ := strconv.Atoi(args[1])
		randomProgram(seed, calls, args[2])
	}
}

// manners are what a random program may do besides the calls of the table. They follow from its
// seed.
type manners struct{ threads, apart, filtered, rooted, rings, nested, user, sockets bool }

func mannersOf(seed uint64) manners {
	r := rand.New(rand.NewPCG(seed, 0))
	one := func(n int) bool { return r.IntN(n) == 0 }
	m := manners{threads: one(3), apart: one(2), filtered: one(4), rooted: one(6), rings: one(4), nested: one(8), user: one(6), sockets: one(2)}
	m.rooted = m.rooted && !m.threads
	m.user = m.user && !m.rooted
	return m
}

func (m manners) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%+v", struct{ manners }{m}), "manners:", "")
}

// actor is one thread of a random program.
type actor struct {
	*rand.Rand
	manners
	dir  string // absolute; what the program works in
	base string // "" or a directory of this thread in it
	fds  []int
	ring *uring.Ring
	keep [64][]byte // arguments of the last calls
	kept int
}

// tell says something to the one who reads strace's output: a call that fails, on a directory that
// strace names.
func (a *actor) tell(dirfd int, what string) {
	p := append([]byte("?"+what), 0)
	raw(unix.SYS_FACCESSAT, uintptr(dirfd), addr(&p[0]), 0)
}

// randomProgram makes about so many calls. The same seed makes the same calls, as far as their
// results are the same.
func randomProgram(seed uint64, calls int, dir string) {
	runtime.LockOSThread()
	new(actor).tell(-1, "member:"+strconv.Itoa(os.Getpid())) // this need not be the main thread
	unix.Umask(0)
	os.MkdirAll(dir, 0o777)
	os.Chmod(dir, 0o777)
	unix.Chdir(dir)
	m := mannersOf(seed)
	first := &actor{Rand: rand.New(rand.NewPCG(seed, 1)), manners: m, dir: dir}
	first.prepare()
	if !m.threads {
		first.tell(-1, "process:"+strconv.Itoa(os.Getpid()))
		first.act(calls)
		return
	}
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			a := &actor{Rand: rand.New(rand.NewPCG(seed, n+2)), manners: m, dir: dir}
			a.tell(-1, "process:"+strconv.Itoa(os.Getpid()))
			if m.apart {
				unix.Unshare(unix.CLONE_FS)
				unix.Chdir(dir)
				a.dir = fmt.Sprintf("%s/t%d", dir, n)
				unix.Mkdir(a.dir, 0o777)
				unix.Chdir(a.dir)
			}
			a.act(calls / 4)
		}()
	}
	all.Wait()
}

// prepare puts the process into the state of its manners.
func (a *actor) prepare() {
	if a.nested {
		own, _ := os.ReadFile("/proc/self/cgroup")
		_, rel, _ := strings.Cut(strings.TrimSpace(string(own)), "0::")
		inner := "/sys/fs/cgroup" + rel + "/inner" + strconv.Itoa(os.Getpid())
		if unix.Mkdir(inner, 0o755) == nil {
			os.WriteFile(inner+"/cgroup.procs", []byte("0"), 0)
		}
	}
	if a.rings {
		a.ring, _ = uring.New()
	}
	if a.rooted {
		unix.Mkdir("root", 0o777)
		unix.Chdir("root")
		a.tell(unix.AT_FDCWD, "root:"+strconv.Itoa(int(raw(unix.SYS_CHROOT, addr(text("."))))))
		a.dir = ""
	}
	if a.user {
		raw(unix.SYS_SETRESUID, nobody, nobody, nobody)
	}
	if a.filtered {
		a.filter()
	}
}

// filter puts all threads under a seccomp filter, which answers some calls.
func (a *actor) filter() {
	calls := []uintptr{unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_FCHMODAT, unix.SYS_SYMLINKAT, unix.SYS_TRUNCATE}
	calls = calls[:1+a.IntN(len(calls))]
	actions := []uint32{seccompErrno, seccompErrno | uint32(unix.EPERM), seccompTrap, seccompTrace, seccompAllow, 0x7ffc0000}
	action := actions[a.IntN(len(actions))]
	if action == seccompTrap && survive(unix.SIGSYS, 0) != nil {
		return
	}
	if _, err := filter(action, 1, calls...); err == nil { // 1: all threads
		a.tell(-1, fmt.Sprintf("filter:%#x:%d", action, len(calls)))
	}
}

func (a *actor) yes(n int) bool { return a.IntN(n) == 0 }

var simpleNames = []string{"a", "b", "c", "e", "f", "d1", "d2", "l1", "ü x", "n\nl", `q"<>\`, "\xff\xfe", "d1/a", "d1/b", "d2/a", "d1/d3", "d1/d3/c", "l1/a", "none/a"}

func (a *actor) name() string {
	n := simpleNames[a.IntN(len(simpleNames))]
	switch a.IntN(24) {
	case 0:
		return "./" + n
	case 1:
		return "d1/../" + n
	case 2:
		return "d1//" + n
	case 3:
		return n + "/"
	case 4:
		return a.dir + "/" + n
	case 5:
		return a.dir + "//./" + n + "/."
	case 6:
		return []string{"", ".", "..", "../x1", "/none/x", "./.."}[a.IntN(6)]
	case 7:
		if a.yes(4) {
			return strings.Repeat("n", 200+a.IntN(150))
		}
	}
	return n
}

// path is an argument: mostly a name, rarely an address that cannot be read.
func (a *actor) path() uintptr {
	switch a.IntN(60) {
	case 0:
		return 0
	case 1:
		return 1
	}
	return a.bytes(append([]byte(a.name()), 0))
}

func (a *actor) bytes(b []byte) uintptr {
	if len(b) == 0 {
		b = []byte{0}
	}
	a.kept++
	a.keep[a.kept%len(a.keep)] = b
	return addr(&b[0])
}

// at is a directory descriptor: the working directory, an own one, a dead one, one with
// upper bits.
func (a *actor) at() uintptr {
	switch n := a.IntN(20); {
	case n < 11 || len(a.fds) == 0:
		return cwd
	case n == 11:
		return uintptr(900 + a.IntN(50))
	case n == 12:
		return ^uintptr(0)
	case n == 13:
		return 0xdead_ffff_ff9c // the kernel takes 32 bits of it
	}
	return a.fd()
}

func (a *actor) fd() uintptr {
	if len(a.fds) == 0 || a.yes(15) {
		return uintptr(900 + a.IntN(50))
	}
	return uintptr(a.fds[a.IntN(len(a.fds))])
}

// took keeps a descriptor, and closes one when there are many.
func (a *actor) took(fd int64) {
	if fd < 0 {
		return
	}
	if a.fds = append(a.fds, int(fd)); len(a.fds) > 12 {
		i := a.IntN(len(a.fds))
		raw(unix.SYS_CLOSE, uintptr(a.fds[i]))
		a.fds = append(a.fds[:i], a.fds[i+1:]...)
	}
}

// act makes random calls.
func (a *actor) act(calls int) {
	for i, n := range []string{"d1", "d2", "d1/d3"} {
		if i < calls {
			raw(unix.SYS_MKDIRAT, cwd, a.bytes(append([]byte(n), 0)), 0o777)
		}
	}
	sum := 0
	for _, o := range randomCalls {
		sum += o.weight
	}
	for range calls {
		n := a.IntN(sum)
		for _, o := range randomCalls {
			if n -= o.weight; n < 0 {
				o.do(a)
				break
			}
		}
	}
	for _, fd := range a.fds {
		raw(unix.SYS_CLOSE, uintptr(fd))
	}
}
