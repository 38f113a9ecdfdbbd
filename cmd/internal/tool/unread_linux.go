package tool

import (
	"os"
	"os/signal"
	"syscall"
)

// EndUnread ends this process as one whose reader has gone: by SIGPIPE, although it had
// ignored that until now. It returns if somebody does read standard output.
func EndUnread() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE) // Reset alone does not take back an Ignore
	signal.Reset(syscall.SIGPIPE)
	os.Stdout.Write([]byte{'\n'})
}
