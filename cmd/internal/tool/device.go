package tool

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/term"
)

// isDevice reports whether a file is a character device, as /dev/null is.
func isDevice(st fs.FileInfo) bool { return st.Mode()&fs.ModeCharDevice != 0 }

// IsDevice is isDevice by name: what is written there takes no room in a directory.
func IsDevice(path string) bool {
	st, err := os.Stat(path)
	return err == nil && isDevice(st)
}

// openDevice opens a character device to write to. What is written cannot be taken back, and a
// device has its name, owner and mode already: Commit and Abort only close it. A terminal is refused, as one
// on standard output is: what is written to files is not for people.
func openDevice(path string) (*AtomicFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, cause(err)
	}
	if st, err := f.Stat(); err != nil || !isDevice(st) {
		f.Close()
		return nil, fmt.Errorf("%s was a device, and was replaced", shown(path))
	}
	if term.IsTerminal(int(f.Fd())) {
		f.Close()
		return nil, fmt.Errorf("%s is a terminal, expected a file or another device", shown(path))
	}
	return &AtomicFile{File: f, path: path, device: true}, nil
}
