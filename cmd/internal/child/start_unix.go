//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// startOrShell starts the program. If execve fails because the file is a script without
// "#!", it runs the script with the shell, as execvp does.
func startOrShell(o Options, attr *os.ProcAttr) (*os.Process, error) {
	p, err := os.StartProcess(o.Program, o.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		shell := append([]string{"/bin/sh", o.Program}, o.Args[1:]...)
		return os.StartProcess(shell[0], shell, attr)
	}
	return p, err
}

func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// OwnGroup gives a command that is not started yet a process group of its own.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Signal sends a signal to the process only.
func (p *Process) Signal(sig os.Signal) { p.process.Signal(sig) }

// Terminate asks the program to end (SIGTERM), with its group if it has its own.
func (p *Process) Terminate() { p.send(syscall.SIGTERM) }

// Kill ends the program, with its group if it has its own.
func (p *Process) Kill() { p.send(syscall.SIGKILL) }

func (p *Process) send(sig syscall.Signal) {
	if p.group {
		syscall.Kill(-p.process.Pid, sig)
		return
	}
	p.process.Signal(sig)
}
