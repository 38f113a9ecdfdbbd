package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A kernel describes very many types, of which the probes read those in kernelnames.txt. To decode all of them takes much of the
// time of a start, and most of its memory (make bench: start, after). So they are made few first: what has a wanted name stays as it is, and all
// others keep only their number. The format is that of Documentation/bpf/btf.rst (Linux 6.18); what is not in it is an error.

// Kinds of types there.
const (
	kindInt = iota + 1
	kindPtr
	kindArray
	kindStruct
	kindUnion
	kindEnum
	kindFwd
	kindTypedef
	kindVolatile
	kindConst
	kindRestrict
	kindFunc
	kindFuncProto
	kindVar
	kindDatasec
	kindFloat
	kindDeclTag
	kindTypeTag
	kindEnum64
)

// Sizes in bytes.
const (
	btfHeaderSize = 24
	btfTypeSize   = 12 // of a type before what its kind adds: the name, what it is, its size or another type
)

const btfMagic = 0xeb9f

// Of a type is left: nothing but its number, that it is there and what it is, or everything.
type leftOf uint8

const (
	leftNumber leftOf = iota
	leftShell
	leftWhole
)

// fewTypes is the work on one kernel's types.
type fewTypes struct {
	wanted         map[string]bool
	first          []uint64 // bits: how wanted names begin, so that most others need not be looked up
	types, strings []byte
	at             []uint32 // where each type is, by its number; there is no type 0
	left           []leftOf
	todo           []uint32 // types whose references are still to be followed
	out, outNames  []byte
	names          map[uint32]uint32 // where a name was, and where it is now
}

// reduceTypes returns a description of a kernel's types in which only those with the wanted names, and what belongs to them, are
// told. They keep their numbers. A structure that others only point to has no members, unless it is wanted itself.
func reduceTypes(raw []byte, wanted map[string]bool) ([]byte, error) {
	f := &fewTypes{wanted: wanted, first: make([]uint64, 1<<16/64), names: map[uint32]uint32{0: 0}, outNames: []byte{0}}
	for name := range wanted {
		b := append([]byte(name), make([]byte, 8)...)
		h := beginning(b)
		f.first[h/64] |= 1 << (h % 64)
	}
	if err := f.open(raw); err != nil {
		return nil, err
	}
	if err := f.find(); err != nil {
		return nil, err
	}
	for len(f.todo) > 0 {
		id := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		if err := f.follow(id); err != nil {
			return nil, err
		}
	}
	return f.write()
}

func (f *fewTypes) open(raw []byte) error {
	if len(raw) < btfHeaderSize || u16(raw) != btfMagic || raw[2] != 1 || raw[3] != 0 {
		return errors.New("not types of version 1 without flags")
	}
	header := uint64(u32(raw[4:]))
	section := func(at int) ([]byte, error) {
		off, n := header+uint64(u32(raw[at:])), uint64(u32(raw[at+4:]))
		if header < btfHeaderSize || off+n > uint64(len(raw)) {
			return nil, errors.New("a section ends after the file")
		}
		return raw[off : off+n], nil
	}
	var err error
	if f.types, err = section(8); err != nil {
		return err
	}
	if f.strings, err = section(16); err != nil {
		return err
	}
	if n := len(f.strings); n == 0 || f.strings[0] != 0 || f.strings[n-1] != 0 {
		return errors.New("the names do not begin and end with a zero")
	}
	return nil
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// more is how many bytes a type has after the first ones.
func more(info uint32) (int, error) {
	kind, n := info>>24&0x1f, int(info&0xffff)
	if info&0x60ff0000 != 0 {
		return 0, fmt.Errorf("a type with unknown bits: %#x", info)
	}
	switch kind {
	case kindPtr, kindFwd, kindTypedef, kindVolatile, kindConst, kindRestrict, kindFunc, kindFloat, kindTypeTag:
		return 0, nil
	case kindInt, kindVar, kindDeclTag:
		return 4, nil
	case kindArray:
		return 12, nil
	case kindStruct, kindUnion, kindDatasec, kindEnum64:
		return 12 * n, nil
	case kindEnum, kindFuncProto:
		return 8 * n, nil
	}
	return 0, fmt.Errorf("a type of the unknown kind %d", kind)
}

// find goes through all types, and marks those with wanted names.
func (f *fewTypes) find() error {
	f.at = make([]uint32, 1, len(f.types)/24+1)
	for at := 0; at < len(f.types); {
		if at+btfTypeSize > len(f.types) {
			return errors.New("the last type is not whole")
		}
		name, info := u32(f.types[at:]), u32(f.types[at+4:])
		n, err := more(info)
		if err != nil {
			return err
		}
		if n > len(f.types)-at-btfTypeSize {
			return errors.New("the last type is not whole")
		}
		f.at = append(f.at, uint32(at))
		if name != 0 {
			if uint64(name) >= uint64(len(f.strings)) {
				return errors.New("a name is not among the names")
			}
			if f.isWanted(f.strings[name:]) && info>>24&0x1f != kindDeclTag {
				f.todo = append(f.todo, uint32(len(f.at)-1))
			}
		}
		at += btfTypeSize + n
	}
	f.left = make([]leftOf, len(f.at))
	for _, id := range f.todo {
		f.left[id] = leftWhole
	}
	return nil
}

// isWanted looks for the name at the beginning of a text. What follows three underlines tells variants of a type apart.
func (f *fewTypes) isWanted(text []byte) bool {
	if len(text) >= 8 {
		if h := beginning(text); f.first[h/64]&(1<<(h%64)) == 0 && !hasUnderlines(text) {
			return false
		}
	}
	name := text[:bytes.IndexByte(text, 0)]
	if f.wanted[string(name)] {
		return true
	}
	if !bytes.Contains(name, []byte("___")) { // which is quick to tell
		return false
	}
	return f.wanted[string(name[:bytes.LastIndex(name, []byte("___"))])]
}

// beginning is a number of 16 bits for the first eight bytes of a name, or for all of a shorter one.
func beginning(text []byte) uint64 {
	n := binary.LittleEndian.Uint64(text)
	if zero := zeros(n); zero != 0 {
		n &= zero&-zero>>7 - 1
	}
	return n * 0x9e3779b97f4a7c15 >> 48
}

// hasUnderlines reports whether three underlines can begin in the first eight bytes.
func hasUnderlines(text []byte) bool {
	z := zeros(binary.LittleEndian.Uint64(text) ^ 0x5f5f5f5f5f5f5f5f)
	return text[7] == '_' || z&(z>>8)&(z>>16) != 0
}

// zeros has the highest bit of each byte of n that is zero. The lowest one is right; others above it can be too many.
func zeros(n uint64) uint64 {
	return (n - 0x0101010101010101) & ^n & 0x8080808080808080
}

// need says what has to be left of a type.
func (f *fewTypes) need(id uint32, left leftOf) error {
	if uint64(id) >= uint64(len(f.at)) {
		return errors.New("a type refers to one that is not there")
	}
	if id != 0 && f.left[id] < left {
		f.left[id] = left
		f.todo = append(f.todo, id)
	}
	return nil
}

// follow says what a type needs of those that it refers to.
func (f *fewTypes) follow(id uint32) error {
	t := f.types[f.at[id]:]
	info, ref, rest := u32(t[4:]), u32(t[8:]), t[btfTypeSize:]
	n := int(info & 0xffff)
	switch left := f.left[id]; info >> 24 & 0x1f {
	case kindTypedef, kindVolatile, kindConst, kindRestrict, kindTypeTag, kindFunc, kindVar:
		return f.need(ref, left)
	case kindPtr:
		return f.need(ref, leftShell)
	case kindArray:
		return errors.Join(f.need(u32(rest), left), f.need(u32(rest[4:]), left))
	case kindFuncProto:
		err := f.need(ref, leftShell)
		for i := range n {
			err = errors.Join(err, f.need(u32(rest[8*i+4:]), leftShell))
		}
		return err
	case kindStruct, kindUnion:
		if left != leftWhole {
			return nil
		}
		for i := range n {
			if err := f.need(u32(rest[12*i+4:]), leftWhole); err != nil {
				return err
			}
		}
	}
	return nil
}

// write makes the description.
func (f *fewTypes) write() ([]byte, error) {
	f.out = make([]byte, btfHeaderSize, len(f.at)*(btfTypeSize+1)+1<<16)
	var last uint32
	for id, left := range f.left {
		if left != leftNumber {
			last = uint32(id)
		}
	}
	for id := uint32(1); id <= last; id++ {
		if err := f.put(id); err != nil {
			return nil, err
		}
	}
	h := f.out
	binary.LittleEndian.PutUint16(h, btfMagic)
	h[2] = 1
	for i, n := range []int{btfHeaderSize, 0, len(f.out) - btfHeaderSize, len(f.out) - btfHeaderSize, len(f.outNames)} {
		binary.LittleEndian.PutUint32(h[4+4*i:], uint32(n))
	}
	return append(f.out, f.outNames...), nil
}

// put writes one type.
func (f *fewTypes) put(id uint32) error {
	t := f.types[f.at[id]:]
	info := u32(t[4:])
	if f.left[id] == leftNumber {
		f.out = append(f.out, 0, 0, 0, 0, 0, 0, 0, kindFwd, 0, 0, 0, 0)
		return nil
	}
	kind := info >> 24 & 0x1f
	n, each := 0, 0 // bytes after the first ones, and after how many of them there is a name
	switch kind {
	case kindStruct, kindUnion, kindEnum, kindEnum64, kindDatasec, kindFuncProto:
		if f.left[id] == leftShell && kind != kindFuncProto || kind == kindDatasec {
			info &^= 0xffff
		}
		n, _ = more(info)
		if each = 12; kind == kindEnum || kind == kindFuncProto {
			each = 8
		}
	default:
		n, _ = more(info)
	}
	start := len(f.out)
	f.out = append(f.out, t[:btfTypeSize+n]...)
	put := f.out[start:]
	binary.LittleEndian.PutUint32(put[4:], info)
	if err := f.name(put); err != nil {
		return err
	}
	for at := btfTypeSize; each > 0 && at < len(put); at += each {
		if err := f.name(put[at:]); err != nil {
			return err
		}
	}
	return nil
}

// name writes where a name is now over where it was.
func (f *fewTypes) name(field []byte) error {
	was := u32(field)
	now, ok := f.names[was]
	if !ok {
		if uint64(was) >= uint64(len(f.strings)) {
			return errors.New("a name is not among the names")
		}
		text := f.strings[was:]
		now = uint32(len(f.outNames))
		f.outNames = append(f.outNames, text[:bytes.IndexByte(text, 0)+1]...)
		f.names[was] = now
	}
	binary.LittleEndian.PutUint32(field, now)
	return nil
}
