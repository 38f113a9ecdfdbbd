//go:build amd64 || arm64

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// aloneName is the directory by whose lock runs with probes of their own know of each other: the second one makes a set that all
// later ones share. It says nothing about what they record.
const aloneName = "alone"

// aloneLock is held as long as the session lives.
var aloneLock *os.File

func openAlone(share string) (*os.File, error) {
	return os.OpenFile(filepath.Join(share, aloneName), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// removeAlone removes the directory if nobody else holds its lock. The caller holds that of the share.
func removeAlone(f *os.File) {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		os.Remove(f.Name())
	}
}

// alone reports whether no other run with probes of its own is there, and then says that this one is.
func (sh *share) alone() bool {
	if err := os.Mkdir(filepath.Join(sh.path, aloneName), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return true
	}
	f, err := openAlone(sh.path)
	if err != nil {
		return true
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return false
	}
	unix.Flock(int(f.Fd()), unix.LOCK_SH)
	aloneLock = f
	return true
}

// alonePatience is how long the end of such a run waits for somebody else's lock: what it would leave is an empty directory.
const alonePatience = 100 * time.Millisecond

// notAlone gives that back, and leaves nothing behind if it was the last.
func notAlone() {
	if aloneLock == nil {
		return
	}
	if sh, err := lockShare(alonePatience); err == nil {
		removeAlone(aloneLock)
		sh.unlock()
	}
	aloneLock.Close()
	aloneLock = nil
}
