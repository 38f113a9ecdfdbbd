package made

import (
	"bytes"
	"encoding/binary"
	"runtime"
)

// Tiny is the smallest static program for this machine: it ends at once with status 0. A
// workload executes it thousands of times, which takes long with a Go program.
func Tiny() []byte {
	machine, code := uint16(62), []byte{0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05} // mov eax,exit_group; xor edi,edi; syscall
	if runtime.GOARCH == "arm64" {
		machine, code = 183, []byte{0x00, 0x00, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4} // mov x0,0; mov x8,exit_group; svc 0
	}
	const base, head, segment = 0x400000, 64, 56
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	put(uint16(2), machine, uint32(1), uint64(base+head+segment), uint64(head), uint64(0), uint32(0),
		uint16(head), uint16(segment), uint16(1), uint16(0), uint16(0), uint16(0))
	size := uint64(head + segment + len(code))
	put(uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x1000))
	b.Write(code)
	return b.Bytes()
}
