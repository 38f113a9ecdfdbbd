package main

import (
	_ "embed"

	"runner/schemas"
)

//go:embed noise.txt
var noiseText string

// Open flags that make or change something, in Linux's generic values.
const (
	openAccess   = 0o3
	openChanging = 0o100 | 0o1000 | 0o2000 | 0o20000000 // O_CREAT, O_TRUNC, O_APPEND, O_TMPFILE
)

// doubtful are the marks of an open that the record is not sure about. A rule
// would judge a path that may not be the file's own.
const doubtful = schemas.MarkUserFault | schemas.MarkPathFault | schemas.MarkPathTruncated |
	schemas.MarkDetached | schemas.MarkDisconnected | schemas.MarkDeleted | schemas.MarkFDRace

// refused reports whether a return value says that somebody said no: the modes of
// a file, a mount, a policy, a seccomp filter, or the caller's own restrictions on
// how a path may resolve.
func refused(ret int64) bool {
	switch ret {
	case -1, -13, -18, -30, -38, -40: // EPERM, EACCES, EXDEV, EROFS, ENOSYS, ELOOP
		return true
	}
	return false
}

// evidence reports whether an open stays whatever its path is.
func evidence(e *schemas.RawEvent, value []byte, lexical bool) bool {
	known := schemas.HasRet | schemas.HasFlags
	switch {
	case e.Has&known != known, refused(e.Ret):
		return true
	case e.Op == "creat", e.Flags&openAccess != 0, e.Flags&openChanging != 0:
		return true
	case e.Marks&doubtful != 0, e.FileType == "blk":
		return true
	case len(value) == 0 || value[0] != '/':
		return true
	case lexical:
		return e.Ret >= 0 || e.Marks&schemas.MarkUserTruncated != 0 || climbs(value)
	}
	return false
}

// matcher is a table prepared for asking: the rules that can speak of a path whose
// second byte is c, in table order. Most paths meet only the few that look inside.
type matcher struct {
	rules []rule
	first [256][]uint16
}

func newMatcher(rules []rule) *matcher {
	m := &matcher{rules: rules}
	for i, r := range rules {
		switch r.form {
		case formExact, formPrefix:
			m.add(r.parts[0][1], i)
		case formProcess:
			m.add(procDir[1], i)
		default:
			for c := range m.first {
				m.add(byte(c), i)
			}
		}
	}
	return m
}

func (m *matcher) add(c byte, rule int) { m.first[c] = append(m.first[c], uint16(rule)) }

// noise is the index of the rule that drops an open by process pid, -1 when it
// stays. The path is absolute.
func (m *matcher) noise(path []byte, pid uint32) int {
	if len(path) < 2 {
		return -1
	}
	library := isLibrary(path)
	for _, i := range m.first[path[1]] {
		if r := &m.rules[i]; r.matches(path, pid, library) {
			if r.drop {
				return int(i)
			}
			return -1
		}
	}
	return -1
}
