package main

import "bytes"

// appendLexical appends the absolute path that base and name spell, as far as
// that can be known without the file system: empty and "." components go, and
// leading ".." components are applied to base. A ".." after a named component
// stays, because only the kernel knows whether that name is a symbolic link. An
// absolute name starts at base, the process root, above which there is nothing.
// All are in text form, in which a slash is still a slash.
func appendLexical(dst, base, name []byte, chroot bool) []byte {
	if dst == nil {
		dst = []byte{} // a name without any component is empty, not unknown
	}
	absolute := len(name) > 0 && name[0] == '/'
	if base == nil {
		// Where the name starts is unknown: a relative one has to stay relative.
		if !absolute {
			return appendClean(dst, name, false)
		}
		base = slash
	}
	start := len(dst)
	dst = append(dst, bytes.TrimRight(base, "/")...)
	// Outside a chroot no ".." leads above "/". Inside, the kernel stops somewhere
	// below that, and the record does not say where.
	for {
		name = bytes.TrimLeft(name, "/")
		first, rest, _ := bytes.Cut(name, slash)
		switch {
		case string(first) == ".":
		case string(first) == ".." && absolute:
		case string(first) == ".." && !chroot:
			if i := bytes.LastIndexByte(dst[start:], '/'); i >= 0 {
				dst = dst[:start+i]
			}
		default:
			dst = appendClean(dst, name, true)
			if len(dst) == start {
				dst = append(dst, '/')
			}
			return dst
		}
		name = rest
	}
}

// appendClean appends the components of name without empty and "." ones.
func appendClean(dst, name []byte, rooted bool) []byte {
	for len(name) > 0 {
		var c []byte
		c, name, _ = bytes.Cut(name, slash)
		if len(c) == 0 || string(c) == "." {
			continue
		}
		if rooted {
			dst = append(dst, '/')
		}
		dst = append(dst, c...)
		rooted = true
	}
	return dst
}

var slash = []byte{'/'}
