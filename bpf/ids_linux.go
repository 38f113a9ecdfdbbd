//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ids are the first fields of what the kernel says of a program, a map or a link: bpf_prog_info, bpf_map_info and bpf_link_info
// begin alike (include/uapi/linux/bpf.h, since 4.13 and 5.8).
type ids struct {
	kind    uint32 // of its sort: BPF_LINK_TYPE_CGROUP
	id      uint32 // the kernel's number for it
	program uint32 // of a link
	_       uint32
	cgroup  uint64 // of a link of a cgroup
}

// idsOf asks the kernel for no more than that, and once. The library's Info asks several times for a program, and reads a file of
// /proc for what is not in there; a start with shared probes asks for all of them, and each end for those that are attached.
func idsOf(object any) (ids, error) {
	o, is := object.(interface{ FD() int })
	if !is {
		return ids{}, fmt.Errorf("%T has no descriptor", object)
	}
	got := new(ids)
	ask := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(o.FD()), uint32(unsafe.Sizeof(*got)), unsafe.Pointer(got)}
	_, _, no := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD, uintptr(unsafe.Pointer(&ask)), unsafe.Sizeof(ask))
	runtime.KeepAlive(object)
	runtime.KeepAlive(got)
	if no != 0 {
		return ids{}, fmt.Errorf("asking for the kernel's number: %w", no)
	}
	return *got, nil
}
