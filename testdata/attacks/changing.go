//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

const manyTimes = 2000

// meanwhile runs f again and again on another thread until the returned function is called.
func meanwhile(f func(i int)) (stop func()) {
	var end atomic.Bool
	gone := make(chan bool)
	go func() {
		runtime.LockOSThread()
		for i := 0; !end.Load(); i++ {
			f(i)
		}
		close(gone)
	}()
	return func() { end.Store(true); <-gone }
}

// placed judges calls that each made a directory of a name of its own in one of two places: the file
// system says in which, and a line that names the other one and is not marked is false.
func placed(e *evidence) verdict {
	var marks []string
	made := map[string]string{}
	for _, d := range []string{"d1", "d2"} {
		list, _ := os.ReadDir(e.path(d))
		for _, n := range list {
			made[n.Name()] = e.path(d) + "/" + n.Name()
		}
	}
	if len(made) == 0 {
		return failed("nothing was made")
	}
	told := map[string]bool{}
	for i := range e.own {
		l := &e.own[i]
		name := l.text()[strings.LastIndexByte(l.text(), '/')+1:]
		at, ok := made[name]
		if l.Type != schemas.EventMkdir || !ok {
			continue
		}
		if told[name] = true; l.text() == at {
			continue
		}
		if l.marked() == "" {
			return lie("false: %s, it is in %s", e.show(l), strings.TrimPrefix(at, e.dir))
		}
		marks = append(marks, l.marked())
	}
	switch {
	case len(told) != len(made):
		return lie("absent: %d of %d", len(made)-len(told), len(made))
	case marks != nil:
		return declared("%s", marks[0])
	}
	return exact()
}

// manyDirs makes directories of different names by f.
func manyDirs(f func(name *byte)) {
	for i := range manyTimes {
		f(text(fmt.Sprint("n", i)))
	}
}

func places(w *world) error {
	if err := unix.Mkdir("d1", 0o700); err != nil {
		return err
	}
	return unix.Mkdir("d2", 0o700)
}

func init() {
	add(attack{name: "a thread changes the working directory", class: "A10", user: true, chance: true,
		what: "makes directories while another thread goes from one directory to another",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			d := []*byte{text(w.path("d1")), text(w.path("d2"))}
			unix.Chdir("d1")
			stop := meanwhile(func(i int) { raw(unix.SYS_CHDIR, addr(d[i%2])) })
			defer stop()
			manyDirs(func(n *byte) { raw(unix.SYS_MKDIRAT, cwd, addr(n), 0o700) })
			return nil
		},
		judge: placed})

	add(attack{name: "a process changes the working directory", class: "A10", user: true, chance: true,
		what: "the same by a process that shares it (clone with CLONE_FS, not a thread)",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			d := []*byte{text(w.path("d1")), text(w.path("d2"))}
			unix.Chdir("d1")
			pid, err := sharing(unix.CLONE_FS, func() {
				for i := 0; ; i++ {
					raw(unix.SYS_CHDIR, addr(d[i%2]))
				}
			})
			if err != nil {
				return err
			}
			defer reap(pid)
			manyDirs(func(n *byte) { raw(unix.SYS_MKDIRAT, cwd, addr(n), 0o700) })
			return nil
		},
		judge: placed})

	add(attack{name: "a process changes the descriptor", class: "A10", user: true, chance: true,
		what: "makes directories in a descriptor while a process that shares the descriptors (CLONE_FILES) puts another directory there",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			d1, err := unix.Open("d1", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			d2, _ := unix.Open("d2", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			const at = 500
			raw(unix.SYS_DUP3, uintptr(d1), at, 0)
			pid, err := sharing(unix.CLONE_FILES, func() {
				for {
					raw(unix.SYS_DUP3, uintptr(d1), at, 0)
					raw(unix.SYS_DUP3, uintptr(d2), at, 0)
				}
			})
			if err != nil {
				return err
			}
			defer reap(pid)
			manyDirs(func(n *byte) { raw(unix.SYS_MKDIRAT, at, addr(n), 0o700) })
			return nil
		},
		judge: placed})

	add(attack{name: "a thread changes the text of a path", class: "B7", user: true, chance: true,
		what: "makes directories while another thread changes the text of the path",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			page := make([]byte, 64)
			stop := meanwhile(func(i int) { page[1] = byte('1' + i&1) })
			defer stop()
			return flipped(page)
		},
		judge: placedByText})

	add(attack{name: "a process changes the text of a path", class: "B7", user: true, chance: true,
		what: "the same by another process, in memory that both have mapped (MAP_SHARED)",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
			if err != nil {
				return err
			}
			pid, err := child(func() {
				for i := 0; ; i++ {
					page[1] = byte('1' + i&1)
				}
			})
			if err != nil {
				return err
			}
			defer reap(pid)
			time.Sleep(20 * time.Millisecond)
			return flipped(page)
		},
		judge: placedByText})
}

// placedByText is placed for texts. Memory can change at any moment between the entry of a call and the kernel's look at it,
// and back again: where the kernel shows no objects, that is a blind spot with a name.
func placedByText(e *evidence) verdict {
	v := placed(e)
	if v.result == isLie && e.noted("what another thread made of their text during the call") {
		return declared("blind spot: texts that others change")
	}
	return v
}

// flipped makes directories by a path in page whose second byte changes.
func flipped(page []byte) error {
	page[1] = '1'
	for i := range manyTimes {
		copy(page[2:], fmt.Sprint("/n", i, "\x00"))
		page[0] = 'd'
		raw(unix.SYS_MKDIRAT, cwd, addr(&page[0]), 0o700)
	}
	return nil
}

// sharing makes a process that shares something with this one, see child.
func sharing(flags uintptr, f func()) (pid int, err error) {
	runtime.Gosched() // see child
	r, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	if r == 0 {
		f()
	}
	return int(r), nil
}

func reap(pid int) {
	unix.Kill(pid, unix.SIGKILL)
	var status unix.WaitStatus
	unix.Wait4(pid, &status, 0, nil)
}
