package bpf

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// sockMarks sets what is said only of the addresses of sockets.
func (d *Decoder) sockMarks(b []byte, e *schemas.RawEvent, marks uint32) {
	if !d.Hooks.holds(e.KtimeNS) {
		marks &^= markHooked
	}
	if c := binary.LittleEndian.Uint64(b[offAux2:]); c != 0 {
		e.Socket = c
		e.Has |= schemas.HasSocket
	}
	if e.Op == schemas.OpConnect && binary.LittleEndian.Uint64(b[offAux1:]) != 0 {
		e.Marks |= schemas.MarkDeferred
	}
	for bit, mark := range map[uint32]schemas.Marks{markRing: schemas.MarkIOUring, markSocket: schemas.MarkOfSocket, markHooked: schemas.MarkHooked} {
		if marks&bit != 0 {
			e.Marks |= mark
		}
	}
}

// sock reads the address, which is first after the header.
func (d *Decoder) sock(b []byte, e *schemas.RawEvent, marks uint32) error {
	le := binary.LittleEndian
	d.sockMarks(b, e, marks)
	n, c := int(le.Uint16(b[offALen:])), int(le.Uint32(b[offCLen1:]))
	if recSize+n+c > len(b) {
		return ErrRecord
	}
	a := b[recSize : recSize+n]
	if len(a) < 2 {
		return nil
	}
	family := le.Uint16(a)
	e.Family = uint32(family)
	e.Has |= schemas.HasFamily
	switch {
	case family == 2 && len(a) >= 8:
		e.Addr = d.inet(netip.AddrFrom4([4]byte(a[4:8])), a)
	case family == 10 && len(a) >= 24:
		e.Addr = d.inet(netip.AddrFrom16([16]byte(a[8:24])), a)
	case family == 1 && marks&markHasPath != 0:
		path, err := d.path(b[recSize+n:recSize+n+c], b, marks, 0)
		if path != nil {
			e.Addr = append([]byte("unix:"), path...)
		}
		return err
	case family == 1 && len(a) > 2:
		return d.unix(b, a[2:], c, e, marks)
	}
	return nil
}

func (d *Decoder) inet(ip netip.Addr, a []byte) []byte {
	start := len(d.buf)
	if ip.Is4() {
		d.buf = ip.AppendTo(d.buf)
	} else {
		d.buf = append(ip.AppendTo(append(d.buf, '[')), ']')
	}
	d.buf = append(d.buf, ':')
	d.buf = strconv.AppendUint(d.buf, uint64(binary.BigEndian.Uint16(a[2:])), 10)
	return d.buf[start:len(d.buf):len(d.buf)]
}

// unix writes unix:@name for an abstract name, else unix: and the path, lexical.
func (d *Decoder) unix(b, name []byte, clen int, e *schemas.RawEvent, marks uint32) error {
	if name[0] == 0 {
		raw := d.text(name[1:])
		e.Addr = append([]byte("unix:@"), raw...)
		return nil
	}
	for i, c := range name {
		if c == 0 {
			name = name[:i]
			break
		}
	}
	path := d.text(name)
	base := []byte("/")
	if marks&markHasBase1 != 0 {
		at := recSize + int(binary.LittleEndian.Uint16(b[offALen:]))
		var err error
		if base, err = d.dir(b[at:at+clen], marks); err != nil {
			return err
		}
	} else if name[0] != '/' { // the hook has no working directory
		e.Addr = append([]byte("unix:"), path...)
		return nil
	}
	e.Addr = schemas.AppendLexical([]byte("unix:"), base, path)
	return nil
}

// hookOf names the bit of record.h.
func hookOf(bit uint32) string {
	if i := bits.TrailingZeros32(bit); i < len(schemas.RawHooks) {
		return schemas.RawHooks[i]
	}
	return ""
}
