package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Huge asks for large pages for a large buffer, which is then filled with fewer page faults (madvise(2)).
func Huge(b []byte) {
	const page = 2 << 20
	b = b[:cap(b)]
	if len(b) < 2*page {
		return
	}
	at := uintptr(unsafe.Pointer(&b[0]))
	skip := -at & (page - 1)
	unix.Madvise(b[skip:skip+(uintptr(len(b))-skip)&^(page-1)], unix.MADV_HUGEPAGE)
}
