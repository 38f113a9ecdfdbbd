package tool

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var watchScratch sync.Once

// guardScratch ends this process when another one opens the scratch file, which root can do
// through /proc: what is read back must be what was written. A write lease (fcntl(2)) makes
// the kernel hold the other one up and send SIGIO. It goes on only when this process has
// ended, or after 45 seconds, and then the signal waits. Some file systems have no leases.
func guardScratch(f *os.File) {
	watchScratch.Do(func() {
		opened := make(chan os.Signal, 1)
		signal.Notify(opened, syscall.SIGIO)
		go func() {
			<-opened
			fmt.Fprintf(os.Stderr, "%s: error: another process opened a scratch file of this one\n", os.Args[0])
			os.Exit(ExitIO)
		}()
	})
	unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
}
