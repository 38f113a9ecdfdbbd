package main

import "golang.org/x/sys/unix"

// oldCall makes one of the calls that newer architectures do not have.
func (a *actor) oldCall() {
	switch a.IntN(13) {
	case 0, 1, 2:
		a.took(raw(unix.SYS_OPEN, a.local(), a.openFlags(), a.mode()))
	case 3:
		a.tell(unix.AT_FDCWD, "cwd") // no other call makes this name: creat would wait for the other end of a FIFO
		a.took(raw(unix.SYS_CREAT, a.bytes([]byte("made by creat\x00")), a.mode()))
	case 4:
		raw(unix.SYS_MKDIR, a.local(), a.mode())
	case 5:
		raw(unix.SYS_RMDIR, a.local())
	case 6:
		raw(unix.SYS_UNLINK, a.local())
	case 7:
		p := a.path()
		raw(unix.SYS_RENAME, a.local(), p)
	case 8:
		p := a.path()
		raw(unix.SYS_LINK, a.local(), p)
	case 9:
		p := a.path()
		raw(unix.SYS_SYMLINK, p, a.local())
	case 10:
		raw(unix.SYS_CHMOD, a.local(), a.mode()|0o700)
	case 11:
		raw([]uintptr{unix.SYS_CHOWN, unix.SYS_LCHOWN}[a.IntN(2)], a.local(), ^uintptr(0), uintptr(a.IntN(3)))
	case 12:
		raw(unix.SYS_MKNOD, a.local(), a.node(), 0)
	}
}
