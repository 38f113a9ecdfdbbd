package wrap

import (
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/confine"
)

// aside is where our own descriptors begin in the next process: the program may have been given any below.
const aside = 200

// Hand makes a copy of a descriptor that the next process inherits.
func Hand(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD, aside) }

// close keeps our own descriptors from the program.
func (s State) close() {
	for _, fd := range s.descriptors() {
		if fd > 0 {
			unix.CloseOnExec(fd)
		}
	}
}

func onThread(f func() error) error { return confine.OnThread(f) }
