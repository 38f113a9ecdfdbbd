// Package child starts and ends other programs. Every tool that runs a program for its
// user finds, starts and signals the program with this package. The tool's exit code is
// as in a shell: the program's own, 128+n when signal n killed it, 127 when it is not
// found, 126 when it cannot be run, 125 when the tool itself failed.
package child

import (
	"os"
	"sync"
)

// Options say what to start and how.
type Options struct {
	Name    string     // for messages: what the user typed
	Program string     // the file, as Look found it
	Args    []string   // all of argv
	Env     []string   // the whole environment
	Files   []*os.File // standard input, output, error, and what follows
	Cgroup  string     // a cgroup v2 directory to start in, or "" (Linux)
	User    *User      // who the program is started as; nil is who we are (not on Windows)
	// OwnGroup gives the program a process group of its own; Terminate and Kill then
	// reach all of the group, and no signal of the terminal reaches it.
	OwnGroup bool
	// DieWithUs lets the kernel kill the program when the thread that started it ends
	// (Linux). Start then locks the calling goroutine to its thread. Processes that the
	// program started, and a program that gained privileges, are not killed.
	DieWithUs bool
	// Around calls what it is given, which starts the program, on a thread that it has
	// prepared; the program inherits from that thread. nil starts it as it is.
	Around func(start func() error) error
}

// User is who a program runs as. Groups are the groups other than GID.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Process is a started program.
type Process struct {
	process *os.Process
	group   bool
	once    sync.Once
	end     Ending
}

// Start starts a program. Its error is a *Failure.
func Start(o Options) (*Process, error) {
	p, err := start(o)
	if err != nil {
		return nil, failure(o.Name, o.Program, err)
	}
	return &Process{process: p, group: o.OwnGroup}, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.process.Pid }

// Wait returns when the process has ended, and how. It may be called again.
func (p *Process) Wait() Ending {
	p.once.Do(func() { p.end = wait(p.process) })
	return p.end
}

// Reap kills what is left of the process group and returns how the program ended.
func (p *Process) Reap() Ending {
	p.Kill()
	return p.Wait()
}
