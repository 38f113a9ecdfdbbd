package schemas

import (
	"bytes"
	"encoding/binary"
)

// again is the line that was read before: a program can do the same many times, and then lines differ only in their seq. Such a line
// is not parsed again. Its text is kept from the second time on, so that a line that is there once costs next to nothing.
type again struct {
	size     int    // of the line before, after its seq; 0 if it cannot be kept
	last     uint64 // its value's last bytes, which tell most names apart
	from, to int    // where its value is
	text     []byte // the whole, or nothing
	event    KernelEvent
}

// like reports whether text can be that of the line before.
func (a *again) like(text []byte) bool {
	return len(text) == a.size && a.size > 0 && binary.LittleEndian.Uint64(text[a.to-8:]) == a.last
}

// is reports whether text is that of the line before, and gives back what it says.
func (a *again) is(text []byte, e *KernelEvent) bool {
	if !bytes.Equal(text, a.text) {
		return false
	}
	seq := e.Seq
	*e = a.event
	e.Seq, e.Value = seq, text[a.from:a.to:a.to]
	return true
}

// note takes in a line that was parsed, after its seq. Its value is at text[from:to].
func (a *again) note(text []byte, from, to int, e *KernelEvent) {
	if a.like(text) {
		a.text, a.from, a.event = append(a.text[:0], text...), from, *e
	} else {
		a.text = a.text[:0]
	}
	a.size, a.to, a.last = len(text), to, binary.LittleEndian.Uint64(text[to-8:])
}

// forget makes the next line unlike the one before.
func (a *again) forget() { a.size, a.text = 0, a.text[:0] }
