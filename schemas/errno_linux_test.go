package schemas

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The names are those of the system's headers. Some numbers have two.
func TestErrnoNames(t *testing.T) {
	for n := range int64(len(errnoNames)) {
		if got, want := ErrnoName(-n), unix.ErrnoName(unix.Errno(n)); got != want && unix.Errno(n) != unix.EUCLEAN && unix.Errno(n) != unix.EOPNOTSUPP {
			t.Errorf("%d is %q, expected %q", n, got, want)
		}
	}
	if ErrnoName(2) != "" || ErrnoName(-4096) != "" || ErrnoName(-1<<63) != "" {
		t.Error("a return value that is no error has a name")
	}
}
