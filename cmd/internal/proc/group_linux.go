package proc

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// groupMark is the mark of the cgroups of processes.
const groupMark = "runner-proc"

// groups makes the cgroups of processes. One in which nobody opened, made or changed anything serves another process
// after its own: making and removing one takes longer than all else.
type groups struct {
	off  bool
	once sync.Once
	in   string // cgroup in which they are made; "" if it is not known

	mu    sync.Mutex
	kept  bool
	watch int          // inotify(7); below 0 there is none
	used  map[int]bool // watches that told something
	idle  []*group
	done  bool
}

// watched is all that a process could do to its cgroup by its files.
const watched = unix.IN_OPEN | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_ONLYDIR

// group is the cgroup of a process. A nil group is none.
type group struct {
	of     *groups
	dir    string
	f      *os.File
	events *os.File // nil if it cannot be opened
	watch  int      // below 0 there is none
}

// find finds the cgroup of this program. What a runner that was killed left there is removed.
func (g *groups) find() {
	g.start("")
	own, err := cgroup.Own()
	if err != nil {
		return
	}
	cgroup.ClearLeftovers(own, groupMark)
	g.start(own)
}

// start makes groups in a cgroup.
func (g *groups) start(in string) { g.in, g.watch, g.used = in, -1, map[int]bool{} }

// keep keeps groups for further processes from here on. That is not for a single one: to end the watch takes some 15 ms.
func (g *groups) keep() {
	g.once.Do(g.find)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept || g.done {
		return
	}
	g.kept = true
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		g.watch = fd
	}
}

// take returns a cgroup for a process; nil if none can be made. Its lock ends with this program.
func (g *groups) take() *group {
	if g.off {
		return nil
	}
	if g.once.Do(g.find); g.in == "" {
		return nil
	}
	g.mu.Lock()
	if n := len(g.idle); n > 0 {
		x := g.idle[n-1]
		g.idle = g.idle[:n-1]
		g.mu.Unlock()
		return x
	}
	g.mu.Unlock()
	dir, err := cgroup.MakeFirst(g.in, "proc-") // the same name in each run
	if err != nil {
		return nil
	}
	f, err := cgroup.Claim(dir, groupMark)
	if err != nil {
		cgroup.Remove(dir)
		return nil
	}
	x := &group{of: g, dir: dir, f: f, watch: -1}
	if fd, err := unix.Openat(int(f.Fd()), "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		x.events = os.NewFile(uintptr(fd), "cgroup.events")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watch >= 0 {
		if x.watch, err = unix.InotifyAddWatch(g.watch, dir, watched); err != nil {
			x.watch = -1
		}
	}
	return x
}

// told reads what the watches told. groups must be locked.
func (g *groups) told() {
	var b [4096]byte
	for {
		n, err := unix.Read(g.watch, b[:])
		if err != nil || n < unix.SizeofInotifyEvent {
			return
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&b[at]))
			name := b[at+unix.SizeofInotifyEvent:][:e.Len]
			// The kernel itself tells of cgroup.events, which nobody can write.
			if e.Mask != unix.IN_MODIFY || !bytes.HasPrefix(name, []byte("cgroup.events\x00")) {
				g.used[int(e.Wd)] = true // -1 for an overflow
			}
			at += unix.SizeofInotifyEvent + int(e.Len)
		}
	}
}

// close removes the cgroups that serve no process. Those that still do are removed after it.
func (g *groups) close() {
	g.mu.Lock()
	list := g.idle
	g.idle, g.done = nil, true
	g.mu.Unlock()
	for _, x := range list {
		x.remove()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.in != "" && g.watch >= 0 {
		unix.Close(g.watch)
	}
	g.watch = -1
}

// join makes a process start in the group.
func (x *group) join(a *unix.SysProcAttr) {
	if x != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(x.f.Fd())
	}
}

// kill kills what is in the group.
func (x *group) kill() {
	if x == nil {
		return
	}
	if !x.empty() {
		cgroup.Kill(x.dir, 2*time.Second)
	}
}

// empty reports whether nothing runs in the group.
func (x *group) empty() bool {
	if x.events == nil {
		return false
	}
	var b [256]byte
	n, err := unix.Pread(int(x.events.Fd()), b[:], 0)
	return err == nil && strings.Contains(string(b[:n]), "populated 0")
}

// release ends the use of a group by a process. Nothing runs in it.
func (x *group) release() {
	if x == nil {
		return
	}
	empty, g := x.empty(), x.of
	g.mu.Lock()
	fresh := empty && x.watch >= 0 && g.watch >= 0 && !g.done
	if fresh {
		g.told()
		fresh = !g.used[x.watch] && !g.used[-1]
	}
	if fresh {
		g.idle = append(g.idle, x)
	}
	g.mu.Unlock()
	if !fresh {
		x.remove()
	}
}

func (x *group) remove() {
	cgroup.Remove(x.dir)
	x.f.Close()
	if x.events != nil {
		x.events.Close()
	}
}
