//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// cgroups are the own cgroup and the one around it; empty where there is none.
func cgroups() (scope, above string) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(own)) {
		place, v2 := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !v2 || place == "/" {
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			if f := strings.Fields(mount); strings.Contains(mount, " - cgroup2 ") && len(f) > 4 && f[3] == "/" {
				dir := f[4] + place
				return dir, dir[:strings.LastIndexByte(dir, '/')]
			}
		}
	}
	return "", ""
}

// enter moves a process to a cgroup.
func enter(dir string, pid int) error {
	return os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0)
}

// leaderEnds ends the main thread of this process and goes on in another one.
func leaderEnds(then func()) {
	pid := os.Getpid()
	if unix.Gettid() != pid {
		os.Exit(3) // this goroutine is on another thread: nothing would be tried
	}
	go func() {
		runtime.LockOSThread()
		for {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", pid))
			if _, after, ok := bytes.Cut(b, []byte(") ")); ok && after[0] == 'Z' {
				break
			}
			time.Sleep(time.Millisecond)
		}
		then()
		os.Exit(0)
	}()
	for {
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

func init() {
	// _leave DIR ABOVE: the main thread ends, another moves the process out and acts there.
	helpers["_leave"] = func(args []string) {
		leaderEnds(func() {
			enter(args[1], os.Getpid())
			unix.Mkdir(args[0]+"/away", 0o700)
		})
	}
	// _leader_execs: the main thread ends, another becomes another program, which waits to be moved.
	helpers["_leader_execs"] = func(args []string) {
		exe, _ := os.Executable() // /proc/self/exe is gone with the main thread
		leaderEnds(func() { unix.Exec(exe, []string{"attacks", "_moved", args[0]}, nil) })
	}
	// _moved DIR: waits until it is moved, and acts.
	helpers["_moved"] = func(args []string) {
		w := &world{dir: args[0]}
		w.signal("here")
		w.await("moved")
		unix.Mkdir(args[0]+"/away", 0o700)
	}
	helpers["_loaded"] = func(args []string) { unix.Mkdir(args[0]+"/loaded", 0o700) }
	helpers["_crash"] = func([]string) {
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		var byDefault [4]uint64 // the runtime's handler would end it in another way
		child(func() {
			raw(unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV), addr(&byDefault), 0, 8)
			raw(unix.SYS_KILL, uintptr(raw(unix.SYS_GETPID)), uintptr(unix.SIGSEGV))
		})
		var status unix.WaitStatus
		unix.Wait4(-1, &status, 0, nil)
		if !status.CoreDump() {
			os.Exit(4)
		}
	}
}

// judgeEscape wants a record that does not pass for whole: the process was outside when it acted.
func judgeEscape(e *evidence) verdict {
	if !e.exists("away") {
		return failed("nothing was done outside")
	}
	if e.passes {
		return lie("nothing says that the process left")
	}
	return declared("%s", e.cause())
}

func init() {
	add(attack{name: "main thread ends and another leaves", class: "A2", alone: true, judge: judgeEscape,
		what: "the main thread of a process ends; another thread moves the process to a cgroup outside, where it acts",
		run: func(w *world) error {
			_, above := cgroups()
			return w.helper("_leave", w.dir, above).Run()
		}})
	for name, helper := range map[string]string{"thread executes and is moved": "_leader_execs", "silent process is moved": "_moved"} {
		what := "a process that did nothing yet is moved to a cgroup outside by another one, and acts there"
		if helper == "_leader_execs" {
			what = "a thread takes over the number of the main thread by exec; another process moves it to a cgroup outside, where it acts"
		}
		add(attack{name: name, class: "A2", alone: true, judge: judgeEscape, what: what,
			run: func(w *world) error {
				_, above := cgroups()
				c := w.helper(helper, w.dir)
				if err := c.Start(); err != nil {
					return err
				}
				err := w.await("here")
				if err == nil {
					err = enter(above, c.Process.Pid)
				}
				w.signal("moved")
				return errors.Join(err, c.Wait())
			}})
	}
	add(attack{name: "threads in threaded cgroups", class: "A2", alone: true, ordinary: true,
		what: "threads move alone between threaded cgroups below the own one, and the process goes to one of them and back",
		run:  threadedCgroups, judge: didEnd})
	add(attack{name: "deep cgroups", class: "C", alone: true, ordinary: true,
		what: "2,100 cgroups in each other below the own one; the process goes down in steps, acts in the last and comes back",
		run:  deepCgroups, judge: didEnd})
	add(attack{name: "own loader", class: "A9",
		what: "an ELF program names a loader of its own (PT_INTERP), which the kernel starts in its place",
		run: func(w *world) error {
			exe, err := os.ReadFile("/proc/self/exe")
			if err == nil {
				err = os.WriteFile(w.path("loader"), exe, 0o700)
			}
			if err == nil {
				err = os.WriteFile(w.path("program"), withLoader(w.path("loader")), 0o700)
			}
			if err != nil {
				return err
			}
			return exec.Command(w.path("program"), "_loaded", w.dir).Run()
		},
		judge: func(e *evidence) verdict {
			if !e.exists("loaded") {
				return failed("the loader did not run")
			}
			return e.compare(append(done(schemas.EventExec, "program"), done(schemas.EventLoader, "loader")...))
		}})
	add(attack{name: "script of a script", class: "A9",
		what: "a script whose interpreter is another script: the kernel opens that one, and starts its interpreter",
		run: func(w *world) error {
			err := os.WriteFile(w.path("middle"), []byte("#!/bin/sh\nmkdir -- \"$(dirname \"$0\")/ran\"\n"), 0o700)
			if err == nil {
				err = os.WriteFile(w.path("script"), []byte("#!"+w.path("middle")+"\n"), 0o700)
			}
			if err != nil {
				return err
			}
			return exec.Command(w.path("script")).Run()
		},
		judge: func(e *evidence) verdict {
			if !e.exists("ran") {
				return failed("it did not run")
			}
			if e.noted(schemas.BlindScripts) {
				return declared("%s", schemas.BlindScripts)
			}
			return lie("the middle script is absent")
		}})
	add(attack{name: "core dump", class: "A12", alone: true,
		what: "a child crashes, and the kernel writes its memory to a file, or gives it to a program, by core_pattern",
		run: func(w *world) error {
			var exit *exec.ExitError
			if err := w.helper("_crash", w.dir).Run(); errors.As(err, &exit) && exit.ExitCode() == 4 {
				return notHere("the kernel makes no core dumps here")
			} else if err != nil {
				return err
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.noted(schemas.BlindCores + " (1)") {
				return declared("%s (1)", schemas.BlindCores)
			}
			return lie("the file of the core dump is absent")
		}})
}

// didEnd judges an ordinary act: the frame wants the record to pass.
func didEnd(e *evidence) verdict {
	if !e.exists("done") {
		return failed("it did not come to its end")
	}
	return e.compare(done(schemas.EventSymlink, "done"))
}

// withLoader is an ELF program that is nothing but the name of its loader.
func withLoader(loader string) []byte {
	const base, head = 0x10000000, 64 + 2*56
	name := append([]byte(loader), 0)
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	size := uint64(head + len(name) + 16)
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	put(uint16(2), machine, uint32(1), base+size-16, uint64(64), uint64(0), uint32(0))
	put([]uint16{64, 56, 2, 64, 0, 0})
	put(uint32(3), uint32(4), []uint64{head, base + head, base + head, uint64(len(name)), uint64(len(name)), 1})
	put(uint32(1), uint32(5), []uint64{0, base, base, size, size, 0x10000})
	b.Write(name)
	b.Write(make([]byte, 16)) // its code, which never runs
	return b.Bytes()
}

// threadedCgroups needs an own cgroup without controllers in its children.
func threadedCgroups(w *world) error {
	scope, _ := cgroups()
	var errs []error
	for _, name := range []string{"/domain", "/domain/a", "/domain/b"} {
		errs = append(errs, os.Mkdir(scope+name, 0o755))
		if name != "/domain" {
			errs = append(errs, os.WriteFile(scope+name+"/cgroup.type", []byte("threaded"), 0))
		}
	}
	errs = append(errs, enter(scope+"/domain", os.Getpid()))
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for range 3 {
		errs = append(errs, os.WriteFile(scope+"/domain/a/cgroup.threads", tid, 0), os.WriteFile(scope+"/domain/b/cgroup.threads", tid, 0))
	}
	errs = append(errs, enter(scope+"/domain/a", os.Getpid()), unix.Symlink("x", w.path("done")), enter(scope, os.Getpid()))
	return errors.Join(errs...)
}

// deepCgroups goes down by descriptors: the names would be too long.
func deepCgroups(w *world) error {
	scope, _ := cgroups()
	at, err := unix.Open(scope, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for level := 1; level <= 2100; level++ {
		if err := unix.Mkdirat(at, "d", 0o755); err != nil {
			return fmt.Errorf("level %d: %w", level, err)
		}
		next, err := unix.Openat(at, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		unix.Close(at)
		at = next
		if level%70 == 0 || level == 2100 {
			fd, err := unix.Openat(at, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				_, err = unix.Write(fd, []byte("0"))
				unix.Close(fd)
			}
			if err != nil {
				return fmt.Errorf("level %d: %w", level, err)
			}
		}
	}
	return errors.Join(unix.Symlink("x", w.path("done")), enter(scope, os.Getpid()))
}
