//go:build !linux

package tool

// RenameNew gives a file or directory a name that nothing has: what somebody else puts there meanwhile stays, and the error is os.ErrExist.
func RenameNew(from, to string) error { return renameNew(from, to) }
