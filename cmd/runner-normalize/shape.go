package main

import (
	"encoding/binary"

	"github.com/runner-evidence/runner/schemas"
)

// maxShapes bounds the dictionary: about half a megabyte.
const maxShapes = 4096

// shape is all of a line except seq, pid, value and time. There are few of them: most
// opens of a program differ only in their path. So lines are kept as the number
// of their shape and their value, which is a third of their text.
type shape struct {
	event, flags, mode, resolve uint64
	ret                         int64
	has                         schemas.KernelHas
	status, doubt               bool
}

// shapeText is the text of a shape: that before the value and that after it.
type shapeText struct{ operation, details []byte }

// shapes is the dictionary. Number 0 is a line that is kept as text, because
// there was no more room for its shape, or because it says what a shape does not. Number
// 1 is that of a pending connect, with the number of its result.
type shapes struct {
	numbers map[shape]uint32
	texts   []shapeText
	recent  [recentShapes]numbered // to look in numbers takes longer
	text    []byte
}

// numbered is a shape and its number, 0 if there is none.
type numbered struct {
	shape shape
	no    uint32
}

// recentShapes is a power of two. Shapes that follow each other differ mostly in the descriptor that a call returned.
const recentShapes = 16

func newShapes() *shapes {
	return &shapes{numbers: make(map[shape]uint32), texts: make([]shapeText, 2)}
}

// pack appends the short form of a line to dst: number of the shape, length of the
// value's text, and that text. With number 0 the text is that of the whole line after
// its head. k has neither seq nor pid.
func (s *shapes) pack(dst []byte, k *schemas.KernelEvent) []byte {
	no := s.number(k)
	s.text = s.text[:0]
	if no == 0 {
		s.whole(k)
	} else {
		s.text = schemas.AppendValue(s.text, k.Value)
	}
	dst = binary.AppendUvarint(dst, uint64(no))
	dst = binary.AppendUvarint(dst, uint64(len(s.text)))
	return append(dst, s.text...)
}

// pendingNo is the number of lines with a result.
const pendingNo = 1

// packPending is pack for a connect that has not ended: the number of its result is before the text.
func (s *shapes) packPending(dst []byte, k *schemas.KernelEvent, result int) []byte {
	s.text = s.text[:0]
	s.whole(k)
	dst = binary.AppendUvarint(dst, pendingNo)
	dst = binary.AppendUvarint(dst, uint64(result))
	dst = binary.AppendUvarint(dst, uint64(len(s.text)))
	return append(dst, s.text...)
}

// whole makes text that of a line after its head.
func (s *shapes) whole(k *schemas.KernelEvent) {
	s.text = k.AppendDetails(schemas.AppendValue(k.AppendOperation(s.text), k.Value))
}

func (s *shapes) number(k *schemas.KernelEvent) uint32 {
	if k.Has&(schemas.KernelHasCgroupID|schemas.KernelHasPort|schemas.KernelHasRuleID) != 0 || k.Destination != nil {
		return 0 // a refused operation: few, and each with its own address
	}
	key := shape{uint64(k.EventType), k.Flags, k.Mode, k.Resolve, k.ReturnValue, k.Has, k.Status != "", k.Doubt != ""}
	recent := &s.recent[uint64(k.ReturnValue)%recentShapes]
	if recent.no != 0 && key == recent.shape {
		return recent.no
	}
	no, ok := s.numbers[key]
	if !ok {
		if len(s.texts) == maxShapes {
			return 0
		}
		no = uint32(len(s.texts))
		s.numbers[key] = no
		s.texts = append(s.texts, shapeText{k.AppendOperation(nil), k.AppendDetails(nil)})
	}
	*recent = numbered{key, no}
	return no
}

// shortLine is one line in its short form, taken apart.
type shortLine struct {
	shape *shapeText // that of number 0 is empty
	text  []byte

	result int16 // how a pending connect ended; noResult of all other lines
}

// appendDetails appends what follows the line's text, up to its last key.
func (l shortLine) appendDetails(dst []byte) []byte {
	dst = append(dst, l.shape.details...)
	if l.result == noResult {
		return dst
	}
	return schemas.AppendConnectResult(dst, int64(l.result))
}

// unpack returns the first of some packed lines, and the others.
func (s *shapes) unpack(lines []byte, results []int16) (line shortLine, rest []byte) {
	result := int16(noResult)
	no, n := binary.Uvarint(lines)
	lines = lines[n:]
	if no == pendingNo {
		at, n := binary.Uvarint(lines)
		result, lines = results[at], lines[n:]
	}
	size, n := binary.Uvarint(lines)
	lines = lines[n:]
	return shortLine{&s.texts[no], lines[:size], result}, lines[size:]
}
