//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// world is what the acting side of an attack has.
type world struct {
	dir string   // its directory, and its working directory at the start
	out *os.File // of say
}

// nobody is the user of attacks without privileges.
const nobody = 65534

// saidFD is the descriptor on which an attack says what it saw: writes to it make no line.
const saidFD = 3

// say tells the judge what the program saw. It is told even if the program is killed after it.
func (w *world) say(key string, value any) {
	b, _ := json.Marshal([2]string{key, fmt.Sprint(value)})
	w.out.Write(append(b, '\n'))
}

// path is a name in the attack's directory.
func (w *world) path(name string) string { return w.dir + "/" + name }

// signal makes a file that says that a point was reached, and await waits for one. That is how an
// attack and its outside talk.
func (w *world) signal(name string) {
	if fd, err := unix.Open(w.path("at-"+name), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o666); err == nil {
		unix.Close(fd)
	}
}

// The runs of many attacks are one: who is outside waits until it is the turn of the attack.
func (w *world) await(name string) error {
	for began := time.Now(); time.Since(began) < patience; {
		var st unix.Stat_t
		if unix.Lstat(w.path("at-"+name), &st) == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("nobody came to " + name)
}

// helper starts a program of this executable, see helpers.
func (w *world) helper(args ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", args...)
	c.Dir = w.dir
	return c
}

// child runs f in a new process that shares nothing; it must only use raw system calls. Go's scheduler asks a goroutine to
// stop that has run for long. A copy of one that was asked just then would stop before f for ever: so it stops here first.
func child(f func()) (pid int, err error) {
	runtime.Gosched()
	r, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	if r == 0 {
		f()
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return int(r), nil
}

// driver is the measured program: it runs attacks one after the other, and writes which
// process each was.
func driver(dir string, names []string) {
	unix.Umask(0)
	var list []member
	for _, name := range names {
		list = append(list, attempt(dir+"/"+folder(name), name))
	}
	b, _ := json.Marshal(list)
	os.WriteFile(dir+"/"+membersFile, b, 0o600)
}

const membersFile = "members"

// member is one attack of a run.
type member struct {
	Name string
	PID  int
	End  string
}

// tooLong is the end of an attack that was killed because it did not come to its own.
const tooLong = "it took too long"

// folder is the directory of an attack.
func folder(name string) string { return strings.ReplaceAll(name, " ", "-") }

func attempt(dir, name string) member {
	m := member{Name: name}
	a := find(strings.Split(name, "#")[0])
	said, err := os.OpenFile(dir+".said", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		m.End = err.Error()
		return m
	}
	defer said.Close()
	exe, _ := os.Executable()
	c := exec.Command(exe, "_attack", a.name, dir)
	c.Dir = dir
	c.ExtraFiles = []*os.File{said}
	c.Env = append(os.Environ(), "GODEBUG=containermaxprocs=0,updatemaxprocs=0") // the runtime opens nothing meanwhile
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if a.user {
		os.Chown(dir, nobody, nobody)
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := c.Start(); err != nil {
		m.End = err.Error()
		return m
	}
	m.PID = c.Process.Pid
	late := time.AfterFunc(patience/5, func() { c.Process.Kill() })
	c.Wait()
	if m.End = c.ProcessState.String(); !late.Stop() {
		m.End = tooLong
	}
	return m
}

// measured is the process of one attack.
func measured(name, dir string) {
	runtime.LockOSThread()
	unix.CloseOnExec(saidFD)
	w := &world{dir: dir, out: os.NewFile(saidFD, "said")}
	a := find(name)
	if a == nil {
		os.Exit(2)
	}
	err := a.run(w)
	var no notHere
	switch {
	case errors.As(err, &no):
		w.say(notHereKey, err)
	case err != nil:
		w.say(errorKey, err)
	}
	os.Exit(0)
}

// Keys of said that the frame writes.
const (
	errorKey   = "error"
	notHereKey = "not here"
)
