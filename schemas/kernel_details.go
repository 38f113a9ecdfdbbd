package schemas

import (
	"bytes"
	"encoding/binary"
	"math"
)

// detailsSlots is how many of the details that came last a parser knows again.
const (
	detailsSlots = 1 << detailsBits
	detailsBits  = 4
)

// details are the keys of a line from flags on, up to its end, and what they say: nothing in it depends on what is
// before them, nor has a name. They are few, because most calls of a program differ only in the name: so a text that is
// the same as an earlier one is not parsed again.
type details struct {
	text       []byte
	has        KernelHas
	operations OperationFlags
	flags      uint64
	mode       uint64
	resolve    uint64
	ret        int64
	access     string
	status     string
	doubt      string
}

// known is the place of details that could be the text, nil if the text is too short or too long to be kept.
func (p *KernelParser) known(text []byte) *details {
	const first, second, third = 8, 32, 40 // where the numbers of most opens are
	if len(text) < third+8 || len(text) > math.MaxUint8 {
		return nil
	}
	x := binary.LittleEndian.Uint64(text[first:])*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(text[second:])*0xc2b2ae3d27d4eb4f ^
		binary.LittleEndian.Uint64(text[third:])*0x165667b19e3779f9
	return &p.details[x>>(64-detailsBits)]
}

// fastDetails reads the keys from flags on.
func (p *KernelParser) fastDetails(e *KernelEvent, i int) bool {
	text := p.s.b[i:]
	d := p.known(text)
	if d != nil && bytes.Equal(d.text, text) {
		e.Has |= d.has
		e.Flags, e.Mode, e.Resolve, e.ReturnValue = d.flags, d.mode, d.resolve, d.ret
		e.AccessMode, e.Operations, e.Status, e.Doubt = d.access, d.operations, d.status, d.doubt
		return true
	}
	before := e.Has
	if !p.fastOpen(e, i) {
		return false
	}
	if d != nil && p.time.At == 0 { // no two lines have the same time
		*d = details{append(d.text[:0], text...), e.Has &^ before, e.Operations, e.Flags, e.Mode, e.Resolve, e.ReturnValue, e.AccessMode, e.Status, e.Doubt}
	}
	return true
}
