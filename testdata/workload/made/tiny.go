package made

import (
	"bytes"
	"encoding/binary"
	"runtime"
)

// Tiny is the smallest static program for this machine: it ends at once with status 0. A
// workload executes it thousands of times, which takes long with a Go program.
func Tiny() []byte { return tiny(0x400000, "") }

// TinyWith is a program that names an interpreter, which the kernel runs in its place.
func TinyWith(interpreter string) []byte { return tiny(0x800000, interpreter) }

// program is a segment of an ELF file.
type program struct {
	Type, Flags                             uint32
	Offset, Virtual, Physical, File, Mem, A uint64
}

func tiny(base uint64, interpreter string) []byte {
	machine, code := uint16(62), []byte{0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05} // mov eax,exit_group; xor edi,edi; syscall
	if runtime.GOARCH == "arm64" {
		machine, code = 183, []byte{0x00, 0x00, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4} // mov x0,0; mov x8,exit_group; svc 0
	}
	const head, segment = 64, 56
	begin, segments := uint64(head+segment), []program{}
	if interpreter != "" {
		begin += segment
		name := uint64(len(interpreter) + 1)
		segments = append(segments, program{Type: 3, Flags: 4, Offset: begin + uint64(len(code)), File: name, Mem: name, A: 1})
	}
	size := begin + uint64(len(code))
	segments = append(segments, program{Type: 1, Flags: 5, Virtual: base, Physical: base, File: size, Mem: size, A: 0x1000})

	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, v := range []any{uint16(2), machine, uint32(1), base + begin, uint64(head), uint64(0), uint32(0),
		uint16(head), uint16(segment), uint16(len(segments)), uint16(0), uint16(0), uint16(0), segments} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(code)
	if interpreter != "" {
		b.WriteString(interpreter + "\x00")
	}
	return b.Bytes()
}
