package main

import (
	"bytes"
	"encoding/binary"

	"github.com/runner-evidence/runner/schemas"
)

// maxShapes bounds the dictionary: about half a megabyte.
const maxShapes = 4096

// shape is all of a line but seq, pid and value. There are few of them: most
// opens of a program differ in their path only. So lines are kept as the number
// of their shape and their value, which is a third of their text.
type shape struct {
	event, flags, mode, resolve uint64
	ret                         int64
	has                         schemas.KernelHas
	status                      bool
}

// shapeText is the text of a shape: from behind pid to the value, and from behind
// the value to the end of the line.
type shapeText struct{ before, after []byte }

// shapes is the dictionary. Number 0 is a line that is kept as text, because
// there was no more room for its shape, or because it says what a shape does not.
type shapes struct {
	numbers map[shape]uint32
	texts   []shapeText
	last    shape // lines of one shape come in bunches
	lastNo  uint32
	tailAt  int
	line    []byte
}

func newShapes() *shapes {
	return &shapes{
		numbers: make(map[shape]uint32),
		texts:   make([]shapeText, 1),
		tailAt:  len((&schemas.KernelEvent{}).AppendJSON(nil, "")) - len(`,"event_type":0,"kind":"event_0","value":null}`),
	}
}

// pack appends the short form of a line to dst: shape, length of the value as
// JSON, value. Length 0 is null. k has neither seq nor pid.
func (s *shapes) pack(dst []byte, k *schemas.KernelEvent) []byte {
	no := s.number(k)
	if no == 0 {
		s.line = append(k.AppendJSON(s.line[:0], ""), '\n')
		return appendSized(append(dst, 0), s.line[s.tailAt:])
	}
	s.line = s.line[:0]
	if k.Value != nil {
		s.line = schemas.AppendQuote(s.line, k.Value)
	}
	return appendSized(binary.AppendUvarint(dst, uint64(no)), s.line)
}

func appendSized(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func (s *shapes) number(k *schemas.KernelEvent) uint32 {
	if k.Has&(schemas.KernelHasCgroupID|schemas.KernelHasPort|schemas.KernelHasRuleID) != 0 || k.Destination != nil {
		return 0 // a refused operation: few, and each with an address of its own
	}
	key := shape{uint64(k.EventType), k.Flags, k.Mode, k.Resolve, k.ReturnValue, k.Has, k.Status != ""}
	if key == s.last && s.lastNo != 0 {
		return s.lastNo
	}
	no, ok := s.numbers[key]
	if !ok {
		if len(s.texts) == maxShapes {
			return 0
		}
		no = uint32(len(s.texts))
		s.numbers[key] = no
		s.texts = append(s.texts, s.text(k))
	}
	s.last, s.lastNo = key, no
	return no
}

// text cuts a line of this shape in two, at an empty value.
func (s *shapes) text(k *schemas.KernelEvent) shapeText {
	e := *k
	e.Value = []byte{}
	tail := append(e.AppendJSON(nil, "")[s.tailAt:], '\n')
	before, after, _ := bytes.Cut(tail, []byte(`:""`))
	return shapeText{append(bytes.Clone(before), ':'), after}
}

// unpack appends the text of the first line in packed, its LF included, and
// returns what follows it.
func (s *shapes) unpack(dst, packed []byte) (line, rest []byte) {
	no, n := binary.Uvarint(packed)
	packed = packed[n:]
	size, n := binary.Uvarint(packed)
	value, rest := packed[n:n+int(size)], packed[n+int(size):]
	text := &s.texts[no]
	switch {
	case no == 0:
		return append(dst, value...), rest
	case size == 0:
		value = null
	}
	dst = append(dst, text.before...)
	dst = append(dst, value...)
	return append(dst, text.after...), rest
}

var null = []byte("null")
