package main

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// watch detects that a name in a directory was given to another file, even if the
// original file got it back later. The kernel queues the events (inotify); they are
// read at the end.
type watch struct {
	mu   sync.Mutex
	fd   int
	all  bool // the directory itself was moved, or the kernel dropped events
	seen map[string]bool
}

func newWatch(dir string) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	const what = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF
	if _, err := unix.InotifyAddWatch(fd, dir, what|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &watch{fd: fd, seen: map[string]bool{}}, nil
}

// touched reports whether name led to another file at any time.
func (w *watch) touched(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return w.all || w.seen[name]
		}
		w.note(buf[:n])
	}
}

// note reads events: struct inotify_event of inotify(7), each followed by a name
// padded with NUL bytes.
func (w *watch) note(b []byte) {
	for len(b) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(b[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if mask&(unix.IN_Q_OVERFLOW|unix.IN_MOVE_SELF|unix.IN_DELETE_SELF) != 0 {
			w.all = true
		} else {
			w.seen[strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")] = true
		}
		b = b[end:]
	}
}

func (w *watch) close() {
	if w != nil {
		unix.Close(w.fd)
	}
}
