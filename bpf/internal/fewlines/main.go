// Command fewlines takes the source lines out of compiled BPF objects (make generate). The kernel reads and keeps the line of
// each instruction of a program, which takes time and memory at each start, and nothing shows them but the
// verifier's log. One line for each function is left: the kernel demands that.
package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := edit(path); err != nil {
			fmt.Fprintf(os.Stderr, "fewlines: error: %s: %v\n", path, err)
			os.Exit(5)
		}
	}
}

func edit(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := f.Section(".BTF.ext")
	if s == nil {
		return errors.New("no section .BTF.ext")
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	if err := fewLines(data); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = out.WriteAt(data, int64(s.Offset))
	return errors.Join(err, out.Close())
}

// Where the header of the section has what (Documentation/bpf/btf.rst of Linux 6.18, BTF.ext Section). Offsets count from its end.
const (
	headerSize = 4
	funcOff    = 8
	funcSize   = 12
	lineOff    = 16
	lineSize   = 20
	leastBytes = 24
)

// place is an instruction: the name of its section, and its offset there.
type place struct{ section, offset uint32 }

// fewLines edits the section where it is. It keeps its length: what is left over are zeros.
func fewLines(data []byte) error {
	if len(data) < leastBytes {
		return errors.New("the header is not whole")
	}
	starts := map[place]bool{}
	funcs, err := part(data, funcOff, funcSize)
	if err != nil {
		return err
	}
	if err := each(funcs, func(p place, _ []byte) { starts[p] = true }); err != nil {
		return err
	}
	lines, err := part(data, lineOff, lineSize)
	if err != nil || len(lines) < 4 {
		return errors.Join(err, errors.New("no lines"))
	}
	kept := append([]byte(nil), lines[:4]...)
	last, count := uint32(0), 0 // of the section that is being written
	err = each(lines, func(p place, record []byte) {
		if !starts[p] {
			return
		}
		if count == 0 || p.section != last {
			last, count = p.section, len(kept)+4
			kept = binary.LittleEndian.AppendUint32(kept, p.section)
			kept = binary.LittleEndian.AppendUint32(kept, 0)
		}
		binary.LittleEndian.PutUint32(kept[count:], binary.LittleEndian.Uint32(kept[count:])+1)
		kept = append(kept, record...)
	})
	if err != nil {
		return err
	}
	clear(lines[copy(lines, kept):])
	binary.LittleEndian.PutUint32(data[lineSize:], uint32(len(kept)))
	return nil
}

func part(data []byte, off, size int) ([]byte, error) {
	at := uint64(binary.LittleEndian.Uint32(data[headerSize:])) + uint64(binary.LittleEndian.Uint32(data[off:]))
	n := uint64(binary.LittleEndian.Uint32(data[size:]))
	if at+n > uint64(len(data)) {
		return nil, errors.New("a part ends after the section")
	}
	return data[at : at+n], nil
}

// each goes through the records of all sections: the size of a record; then for each section its name, their number and the
// records, which begin with an offset.
func each(part []byte, do func(place, []byte)) error {
	short := errors.New("a part is not whole")
	if len(part) < 4 {
		return short
	}
	size := int(binary.LittleEndian.Uint32(part))
	for part = part[4:]; len(part) > 0; {
		if len(part) < 8 || size < 4 {
			return short
		}
		name, n := binary.LittleEndian.Uint32(part), int(binary.LittleEndian.Uint32(part[4:]))
		for part = part[8:]; n > 0; n-- {
			if len(part) < size {
				return short
			}
			do(place{name, binary.LittleEndian.Uint32(part)}, part[:size])
			part = part[size:]
		}
	}
	return nil
}
