package main

import "github.com/runner-evidence/runner/schemas"

// doubtful are the marks of an open that the record is not sure about. A rule
// would judge a path that may be another file's.
const doubtful = schemas.MarkUserFault | schemas.MarkPathFault | schemas.MarkPathTruncated |
	schemas.MarkDetached | schemas.MarkDisconnected | schemas.MarkDeleted | schemas.MarkFDRace | schemas.MarkChanged | schemas.MarkUnproven

// refused reports whether a return value means a refusal: by the modes of a file, a
// mount, a policy, a seccomp filter, or the caller's own restrictions on how a path may
// resolve.
func refused(ret int64) bool {
	switch ret {
	case -1, -13, -18, -30, -38, -40: // EPERM, EACCES, EXDEV, EROFS, ENOSYS, ELOOP
		return true
	}
	return false
}

// evidence reports whether an open is kept for any path.
func evidence(e *schemas.RawEvent, value []byte, lexical bool) bool {
	known := schemas.HasRet | schemas.HasFlags
	switch {
	case e.Has&known != known, refused(e.Ret):
		return true
	case e.Op == schemas.OpCreat, e.Flags&schemas.OpenAccess != 0, e.Flags&schemas.OpenChanges != 0:
		return true
	case e.Marks&doubtful != 0, e.FileType == "blk":
		return true
	case len(value) == 0 || value[0] != '/':
		return true
	case lexical:
		return e.Ret >= 0 || e.Marks&schemas.MarkUserTruncated != 0 || schemas.HasDotDot(value)
	}
	return false
}
