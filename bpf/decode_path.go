package bpf

import (
	"encoding/binary"

	"github.com/runner-evidence/runner/schemas"
)

// text appends the text form of raw bytes to the buffer and returns it.
func (d *Decoder) text(raw []byte) []byte {
	start := len(d.buf)
	d.buf = schemas.AppendText(d.buf, raw)
	return d.buf[start:len(d.buf):len(d.buf)]
}

// split notes where the components begin.
func (d *Decoder) split(c []byte) error {
	d.comps = d.comps[:0]
	for i := 0; i < len(c); i += 1 + int(c[i]) {
		if i+1+int(c[i]) > len(c) {
			return ErrRecord
		}
		d.comps = append(d.comps, i)
	}
	return nil
}

// join writes the components. A path in a mount tree that is mounted nowhere has an
// empty component at its top, and so has one that does not lead to the root of its mount. It must not look like the path of another file.
func (d *Decoder) join(c []byte, absolute bool) []byte {
	start := len(d.buf)
	top := len(d.comps) - 1
	if top >= 0 && c[d.comps[top]] == 0 {
		if absolute {
			d.buf = append(d.buf, schemas.PrefixDetached...)
		} else {
			d.buf, absolute = append(d.buf, schemas.PrefixUnreachable...), true
		}
		top--
	}
	first := len(d.buf)
	for k := top; k >= 0; k-- {
		i := d.comps[k]
		if absolute || k != top {
			d.buf = append(d.buf, '/')
		}
		d.buf = schemas.AppendText(d.buf, c[i+1:i+1+int(c[i])])
	}
	if len(d.buf) == first && absolute {
		d.buf = append(d.buf, '/')
	}
	return d.buf[start:len(d.buf):len(d.buf)]
}

// dir is a base directory.
func (d *Decoder) dir(c []byte, marks uint32) ([]byte, error) {
	if err := d.split(c); err != nil {
		return nil, err
	}
	return d.join(c, marks&(markPTrunc|markDisconn) == 0), nil
}

// path is the resolved object of an open, an exec or a descriptor.
func (d *Decoder) path(c, b []byte, marks uint32, flags uint64) ([]byte, error) {
	if marks&markPFault != 0 {
		return nil, nil
	}
	if err := d.split(c); err != nil {
		return nil, err
	}
	if marks&markDisconn != 0 && len(d.comps) == 1 && c[0] == 0 {
		return append([]byte(nil), unnamed(binary.LittleEndian.Uint16(b[offIMode:]))...), nil
	}
	// An O_TMPFILE file never had a name: the program named its directory.
	if flags&schemas.OpenTmpfile != 0 && marks&markDeleted != 0 && len(d.comps) > 0 && len(c) > 1 && c[1] == '#' {
		d.comps = d.comps[1:]
		return d.join(c, true), nil
	}
	return d.join(c, marks&(markPTrunc|markDisconn) == 0), nil
}

// unnamed is the text for an object that has a kind but no name.
func unnamed(mode uint16) string {
	switch mode & 0xf000 {
	case 0x1000:
		return "pipe:"
	case 0xc000:
		return "socket:"
	case modeNamespace:
		return "ns:"
	case 0:
		return "anon_inode:"
	}
	return "unnamed:"
}

// modeNamespace is the type that the probes give files of nsfs: the namespaces of /proc/PID/ns. No file has it.
const modeNamespace = 0xf000

// FileType names what a mode says, empty for regular files, directories and links.
func FileType(mode uint16) string {
	switch mode & 0xf000 {
	case 0x1000:
		return "fifo"
	case 0x2000:
		return "chr"
	case 0x6000:
		return "blk"
	case 0xc000:
		return "sock"
	case 0, modeNamespace:
		return "anon"
	}
	return ""
}
