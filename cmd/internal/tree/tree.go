// Package tree describes trees of files: what each name in one is, and how two of them differ.
package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind says what a name is.
type Kind string

// Kinds.
const (
	File    Kind = "file"
	Dir     Kind = "dir"
	Symlink Kind = "symlink"
	FIFO    Kind = "fifo"
	Socket  Kind = "socket"
	Char    Kind = "char"
	Block   Kind = "block"
)

// Entry is one name in a tree.
type Entry struct {
	Path   string // bytes, below the root and without a slash at either end
	Kind   Kind
	Mode   uint32 // permissions, setuid, setgid and sticky: 0 to 07777
	UID    uint32
	GID    uint32
	Size   uint64   // of a file, in bytes
	SHA256 [32]byte // of a file's bytes; not of one that is Unread, nor of a further Link
	Target string   // of a symlink, its bytes
	Device uint64   // of a device, as stat(2) has it
	Link   string   // of a file: the first path, in byte order, of the same file; "" if this is it
	Unread string   // why the bytes of a file, or the names in a directory, are not known; "" if they are
	Mount  bool     // another file system is mounted here: what is in it is not described

	Modified int64 // time of the last change of the content, in ns since 1970; no part of a Diff
	Changed  int64 // time of the last change of anything, in ns since 1970; no part of a Diff
}

// Options of a Scan. The zero value reads every file, and keeps none.
type Options struct {
	// Known is asked before the bytes of a file are read. It gives their digest if it is known otherwise.
	Known func(e *Entry) ([32]byte, bool)
	// Inode says which names are one file, where the numbers of stat(2) do not: in an overlay. Names with the same
	// numbers are one file of so many names.
	Inode func(path string) (dev, ino, links uint64, ok bool)
	// Keep opens a place for the bytes of a file that is read.
	Keep func() (Kept, error)
}

// Kept is where the bytes of one file go. Done ends it: with their digest, or with nil if they are not whole.
type Kept interface {
	io.Writer
	Done(sum *[32]byte) error
}

// MaxEntries is how many names a tree may have.
const MaxEntries = 4 << 20

// MaxPath is up to how many bytes of its path a directory is looked into: a line of a record has room for three paths, each byte of
// which can need five.
const MaxPath = 32 << 10

// Errors of Scan.
var (
	ErrTooMany = fmt.Errorf("the tree has more than %d names", MaxEntries)
	ErrChanged = errors.New("the tree changes while it is read")
	// ErrNotKept, of Done of what is Kept, says that there is no place for the bytes: the file is then Unread.
	ErrNotKept = errors.New("there is no place for its bytes")
)

// Op says how a name differs.
type Op string

// Ops.
const (
	Add     Op = "add"
	Delete  Op = "delete"
	Modify  Op = "modify"  // another content, target or device
	Replace Op = "replace" // it is another kind of thing now
	Relink  Op = "link"    // it is the same file as another name now, or no more
	Mode    Op = "mode"    // only permissions or owners differ
)

// Change is a name that differs between two trees. Before is nil for Add, After for Delete.
type Change struct {
	Op            Op
	Before, After *Entry
}

// Path is the name.
func (c *Change) Path() string {
	if c.After != nil {
		return c.After.Path
	}
	return c.Before.Path
}

// Diff compares two trees, both sorted by the bytes of the paths, and returns the names that differ in that order. What
// is not known of either is taken to differ.
func Diff(before, after []Entry) (list []Change) {
	for len(before) > 0 || len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = cmp.Compare(before[0].Path, after[0].Path)
		}
		switch {
		case order < 0:
			list, before = append(list, Change{Delete, &before[0], nil}), before[1:]
		case order > 0:
			list, after = append(list, Change{Add, nil, &after[0]}), after[1:]
		default:
			if op := compare(&before[0], &after[0]); op != "" {
				list = append(list, Change{op, &before[0], &after[0]})
			}
			before, after = before[1:], after[1:]
		}
	}
	return list
}

// compare says how two entries of one path differ, "" for not at all.
func compare(a, b *Entry) Op {
	switch {
	case a.Kind != b.Kind:
		return Replace
	case a.Unread != "" || b.Unread != "" || a.Mount || b.Mount:
		return Modify
	case a.Link != b.Link:
		return Relink
	case a.Size != b.Size || a.SHA256 != b.SHA256 || a.Target != b.Target || a.Device != b.Device:
		return Modify
	case a.Mode != b.Mode || a.UID != b.UID || a.GID != b.GID:
		return Mode
	}
	return ""
}

func sorted(list []Entry) []Entry {
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}
