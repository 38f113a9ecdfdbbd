//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// pipelines are ordinary programs that work on files by rings, by the name of their settings.
var pipelines = []struct {
	name    string
	ring    uint32 // flags of each ring
	entry   uint8  // flags of each request
	closing uint8  // and of each that closes
	threads int
}{
	{"ring", 0, 0, 0, 1},
	{"deferred ring of one issuer", uring.Deferred, 0, 0, 1},
	{"ring of one issuer", uring.Single, 0, 0, 1},
	{"ring with a kernel thread", uring.Thread, 0, 0, 1},
	{"ring, its workers do all", 0, uring.Async, 0, 1},
	{"deferred ring, its workers do all", uring.Deferred, uring.Async, 0, 1},
	{"ring, closes without completions", 0, 0, uring.Silent, 1},
	{"ring, each close linked to the next", 0, 0, uring.Link, 1},
	{"4 threads with a ring each", 0, 0, 0, 4},
	{"4 threads with a deferred ring each", uring.Deferred, 0, 0, 4},
}

func init() {
	for _, p := range pipelines {
		ordinary = append(ordinary, program{p.name + ": 16 requests in flight", "true", func(dir string) []string { return []string{"/proc/self/exe", "_pipeline", dir, p.name} }})
	}
	helpers["_pipeline"] = func(args []string) {
		if err := os.Chdir(args[0]); err != nil {
			os.Exit(1)
		}
		for _, p := range pipelines {
			if p.name != args[1] {
				continue
			}
			var all sync.WaitGroup
			for i := range p.threads {
				all.Go(func() {
					if err := pipeline(fmt.Sprint("d", i), p.ring, p.entry, p.closing); err != nil {
						fmt.Fprintln(os.Stderr, "attacks: error:", err)
						os.Exit(1)
					}
				})
			}
			all.Wait()
		}
	}
}

// pipeline creates 1,600 files with 16 requests in flight. What closes and removes those of before goes with each submission.
func pipeline(dir string, ring uint32, entry, closing uint8) error {
	const rounds, size, opened = 100, 16, 1 << 20
	runtime.LockOSThread()
	u, err := newRing(64, ring)
	if err != nil {
		return err
	}
	if r := u.Do(uring.Entry{Op: uring.Mkdirat, Flags: entry, FD: cwdFD, Addr: uint64(addr(text(dir))), Len: 0o700}); r < 0 {
		return unix.Errno(-r)
	}
	var names []*byte // the kernel's thread reads them later
	name := func(round, i int) uint64 {
		names = append(names, text(fmt.Sprintf("%s/f%d-%d", dir, round, i)))
		return uint64(addr(names[len(names)-1]))
	}
	var fds []int32
	for n := range rounds + 2 {
		wait := 0
		for i, fd := range fds {
			e := uring.Entry{Op: uring.Close, Flags: entry | closing, FD: fd}
			if i == len(fds)-1 {
				e.Flags &^= uring.Link
			}
			if e.Flags&uring.Silent == 0 {
				wait++
			}
			u.Queue(e)
		}
		for i := range size {
			if n < rounds {
				e := uring.Entry{Op: uring.Openat, Flags: entry, FD: cwdFD, Addr: name(n, i), OpFlags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Len: 0o600, UserData: opened}
				u.Queue(e)
				wait++
			}
			if n > 1 {
				u.Queue(uring.Entry{Op: uring.Unlinkat, Flags: entry, FD: cwdFD, Addr: name(n-2, i)})
				wait++
			}
		}
		u.Enter(wait)
		for fds = fds[:0]; wait > 0; {
			r, ok := u.Result()
			if !ok {
				u.Enter(1)
				continue
			}
			if wait--; r.Result < 0 {
				return fmt.Errorf("round %d, request %d: %w", n, r.UserData, unix.Errno(-r.Result))
			}
			if r.UserData == opened {
				fds = append(fds, int32(r.Result))
			}
		}
	}
	runtime.KeepAlive(names)
	return nil
}
