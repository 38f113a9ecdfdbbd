//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// alone runs f in a process that shares its memory with nobody, and waits for it. It must only use raw system calls.
func alone(f func()) error {
	pid, err := child(f)
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	_, err = unix.Wait4(pid, &status, 0, nil)
	return err
}

// mapped is a page that a child has as well.
func mapped() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
}

// only judges the one line of a type.
func only(e *evidence, kind uint32, want string) verdict {
	var found *told
	for i := range e.own {
		if l := &e.own[i]; l.Type == kind {
			if found != nil {
				return lie("false: one line too many: %s", e.show(l))
			}
			found = l
		}
	}
	switch {
	case found == nil:
		return lie("absent: %s", want)
	case found.text() == want && found.marked() == "":
		return exact()
	case found.marked() != "":
		return declared("%s", found.marked())
	}
	return lie("false: %s, it was %s", e.show(found), want)
}

// failsLate is a program whose start fails after the kernel has taken the old memory away: its second segment cannot be mapped.
// Its first one puts a text at an address.
func failsLate(at uint64, text string) []byte {
	const page = 4096
	base := at &^ (page - 1)
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	load := func(off, addr, file, mem uint64) elf.Prog64 {
		return elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: off, Vaddr: addr, Paddr: addr, Filesz: file, Memsz: mem, Align: page}
	}
	head := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1,
		Entry: base + 0x100, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2}
	var b bytes.Buffer
	for _, v := range []any{head, load(page, base, page, page), load(page, base+0x7fff00000000000, page, page)} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	image := make([]byte, 2*page)
	copy(image, b.Bytes())
	copy(image[page+at-base:], text+"\x00")
	return image
}

func init() {
	add(attack{name: "a process changes what openat2 is asked", class: "B7", user: true,
		what: "openat2 waits for a lease; its structure is memory of two processes (MAP_SHARED), and the other one changes it meanwhile",
		run: func(w *world) error {
			page, err := mapped()
			if err != nil {
				return err
			}
			name := text("leased")
			if err := os.WriteFile("leased", []byte("x"), 0o600); err != nil {
				return err
			}
			holder, err := unix.Open("leased", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			if _, err := unix.FcntlInt(uintptr(holder), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
				return notHere("no leases here: " + err.Error())
			}
			how := (*unix.OpenHow)(unsafe.Pointer(&page[0]))
			*how = unix.OpenHow{Flags: unix.O_WRONLY | unix.O_TRUNC}
			waits := (*atomic.Int32)(unsafe.Pointer(&page[64]))
			pid, err := child(func() {
				waits.Store(1)
				raw(unix.SYS_OPENAT2, cwd, addr(name), addr(how), unsafe.Sizeof(*how))
			})
			if err != nil {
				return err
			}
			for waits.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
			how.Flags = unix.O_WRONLY
			unix.FcntlInt(uintptr(holder), unix.F_SETLEASE, unix.F_UNLCK)
			var status unix.WaitStatus
			unix.Wait4(pid, &status, 0, nil)
			return nil
		},
		judge: func(e *evidence) verdict {
			if b, err := os.ReadFile(e.path("leased")); err != nil || len(b) > 0 {
				return failed("the file was not cut: %q, %v", b, err)
			}
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventOpenat || l.text() != e.path("leased") || l.Flags == nil || *l.Flags&unix.O_ACCMODE != unix.O_WRONLY || *l.Flags&unix.O_CREAT != 0 {
					continue
				}
				switch {
				case *l.Flags&unix.O_TRUNC != 0 && l.marked() == "":
					return exact()
				case l.marked() != "":
					return declared("%s", l.marked())
				}
				return lie("false: flags %#o", *l.Flags)
			}
			return lie("absent: the open")
		}})

	add(attack{name: "sendmmsg writes over an address", class: "B7", user: true,
		what: "the name of a message lies where sendmmsg writes how much it has sent",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			peer, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err := unix.Bind(peer, &unix.SockaddrUnix{Name: "sec"}); err != nil {
				return err
			}
			const size, nameAt = 64, 52 // the length is at 56
			buf := make([]byte, 2*size)
			data := make([]byte, 'x')
			iov := unix.Iovec{Base: &data[0]}
			iov.SetLen(len(data))
			h := (*unix.Msghdr)(unsafe.Pointer(&buf[0]))
			*h = unix.Msghdr{Name: &buf[nameAt], Namelen: 7, Iov: &iov}
			h.SetIovlen(1)
			copy(buf[nameAt:], "\x01\x00./sec") // "./" are before the length, "sec" are its bytes and one more
			var pin runtime.Pinner
			defer pin.Unpin()
			pin.Pin(&buf[0])
			pin.Pin(&iov)
			pin.Pin(&data[0])
			var sent int64
			shared, err := mapped()
			if err != nil {
				return err
			}
			if err := alone(func() {
				n := raw(unix.SYS_SENDMMSG, uintptr(fd), addr(&buf[0]), 1, 0)
				*(*int64)(unsafe.Pointer(&shared[0])) = n
			}); err != nil {
				return err
			}
			sent = *(*int64)(unsafe.Pointer(&shared[0]))
			got, _, err := unix.Recvfrom(peer, make([]byte, 512), unix.MSG_DONTWAIT)
			w.say("sent", fmt.Sprint(sent, got, err))
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("sent") != "1 120 <nil>" {
				return failed("sent: %s", e.said("sent"))
			}
			return only(e, schemas.EventSendmmsg, "unix:"+e.path("sec"))
		}})

	add(attack{name: "an exec that fails late", class: "B7", user: true,
		what: "the kernel has taken the old memory away; where the name was the new program's memory has another one",
		run: func(w *world) error {
			const at = 0x10000080
			if err := os.WriteFile("evil", failsLate(at, "/usr/bin/good"), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile("name", []byte(w.path("evil")+"\x00"), 0o600); err != nil {
				return err
			}
			names, err := unix.Open("name", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			if r := raw(unix.SYS_MMAP, at&^4095, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, ^uintptr(0)); r < 0 {
				return fmt.Errorf("memory at %#x: %w", at, unix.Errno(-r))
			}
			if r := raw(unix.SYS_READ, uintptr(names), at, 256); r < 0 {
				return fmt.Errorf("reading a name: %w", unix.Errno(-r))
			}
			argv := [2]uintptr{at, 0}
			return alone(func() { raw(unix.SYS_EXECVEAT, cwd, at, addr(&argv[0]), 0, 0) })
		},
		judge: func(e *evidence) verdict { return only(e, schemas.EventExecFailed, e.path("evil")) }})

	add(attack{name: "a supervisor replaces a descriptor", class: "A10",
		what: "a seccomp supervisor puts another file on a descriptor while fsetxattr waits for its name, and takes that back before it ends",
		run:  replacedBySupervisor,
		judge: func(e *evidence) verdict {
			at := strings.Fields(e.said("at"))
			if len(at) != 1 {
				return failed("the attribute is at %q", at)
			}
			return only(e, schemas.EventSetxattr, e.path(at[0]))
		}})
}
