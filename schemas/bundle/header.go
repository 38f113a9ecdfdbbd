package bundle

import (
	"bytes"
	"fmt"
	"strings"
)

const blockSize = 512

var (
	magicPOSIX = []byte("ustar\x0000")
	magicGNU   = []byte("ustar  \x00")
	zeroBlock  [blockSize]byte
)

// parseHeader reads one tar header. Its error says why this is not a regular file.
func parseHeader(b []byte) (Member, error) {
	magic := b[257:265]
	if !bytes.Equal(magic, magicPOSIX) && !bytes.Equal(magic, magicGNU) {
		return Member{}, notArchive(b, "no tar header")
	}
	sum, ok := octal(b[148:156])
	if !ok || sum != checksum(b) {
		return Member{}, fmt.Errorf("%w: tar header checksum does not match", ErrCorrupt)
	}
	name, ok := text(b[:100])
	if !ok || !validName(name) {
		return Member{}, fmt.Errorf("%w: name %.100q is not a plain relative path%s", ErrHostile, bytes.TrimRight(b[:100], "\x00"), when(bytes.HasPrefix(b, []byte("./")) || b[156] == '5', repacked))
	}
	if t := b[156]; t != 0 && t != '0' {
		return Member{}, fmt.Errorf("%w: %s is %s, expected a regular file%s", ErrHostile, name, kindName(t), when(strings.IndexByte("5xgKL", t) >= 0, repacked))
	}
	for _, f := range []struct {
		what string
		b    []byte
	}{{"mode", b[100:108]}, {"uid", b[108:116]}, {"gid", b[116:124]}, {"mtime", b[136:148]},
		{"devmajor", b[329:337]}, {"devminor", b[337:345]}} {
		if _, ok := octal(f.b); !ok {
			return Member{}, fmt.Errorf("%w: %s has a %s that is not octal", ErrHostile, name, f.what)
		}
	}
	for _, f := range [][]byte{b[265:297], b[297:329]} {
		if _, ok := text(f); !ok {
			return Member{}, fmt.Errorf("%w: %s has an owner name that is not ASCII", ErrHostile, name)
		}
	}
	// The link name, the name prefix (times and sparse maps in the GNU form) and
	// the unused end are not used by members, so they must be zero.
	if !zero(b[157:257]) || !zero(b[345:512]) {
		return Member{}, fmt.Errorf("%w: %s has a link name, a name prefix or bytes in unused fields", ErrHostile, name)
	}
	size, ok := octal(b[124:136])
	if !ok {
		return Member{}, fmt.Errorf("%w: %s has a size that is not octal", ErrHostile, name)
	}
	return Member{name, size}, nil
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func kindName(t byte) string {
	switch t {
	case '1':
		return "a hard link"
	case '2':
		return "a symbolic link"
	case '3', '4':
		return "a device"
	case '5':
		return "a directory"
	case '6':
		return "a fifo"
	case 'g', 'x':
		return "a pax extension header"
	case 'K', 'L':
		return "a GNU long name"
	case 'S':
		return "a sparse file"
	}
	return fmt.Sprintf("of type %q", t)
}

// validName accepts names that cannot lead out of the directory in which they are
// unpacked, and that have only characters which a terminal shows unchanged.
func validName(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '/' && c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// text reads a NUL padded field of printable ASCII; nothing may follow the NUL.
func text(b []byte) (string, bool) {
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		n = len(b)
	}
	if !zero(b[n:]) {
		return "", false
	}
	for _, c := range b[:n] {
		if c < 0x20 || c > 0x7e {
			return "", false
		}
	}
	return string(b[:n]), true
}

// octal reads a number: blanks, octal digits, then blanks and NULs. An empty
// field is 0. Base-256 numbers, which only oversized files need, are refused.
func octal(b []byte) (int64, bool) {
	b = bytes.TrimLeft(b, " ")
	b = bytes.TrimRight(b, " \x00")
	var n int64
	for _, c := range b {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

// checksum is the sum of the header's bytes with the checksum field as blanks.
func checksum(b []byte) int64 {
	n := int64(8 * ' ')
	for i, c := range b {
		if i < 148 || i >= 156 {
			n += int64(c)
		}
	}
	return n
}

func zero(b []byte) bool {
	for len(b) > blockSize {
		if !bytes.Equal(b[:blockSize], zeroBlock[:]) {
			return false
		}
		b = b[blockSize:]
	}
	return bytes.Equal(b, zeroBlock[:len(b)])
}
