//go:build !unix

package child

import (
	"os"
	"os/exec"
)

func start(o Options) (*os.Process, error) {
	return os.StartProcess(o.Program, o.Args, &os.ProcAttr{Files: o.Files, Env: o.Env})
}

// OwnGroup does nothing here.
func OwnGroup(*exec.Cmd) {}

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) { p.process.Signal(sig) }

// Terminate ends the program: this system has no signal that asks it to.
func (p *Process) Terminate() { p.process.Kill() }

// Kill ends the program.
func (p *Process) Kill() { p.process.Kill() }
