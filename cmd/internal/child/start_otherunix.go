//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

func start(o Options) (*os.Process, error) {
	return startOrShell(o, &os.ProcAttr{Files: o.Files, Env: o.Env, Sys: &syscall.SysProcAttr{Setpgid: o.OwnGroup, Credential: o.User.credential()}})
}
