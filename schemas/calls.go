package schemas

import (
	"strings"
	"sync"
)

// CallCoverage is what the record says of some system calls, io_uring operations and ioctls: a
// kernel line, a blind spot by name, or nothing, because they do nothing that a record is about.
type CallCoverage struct {
	Op      string // the operation that tells them; without one they make no line
	Blind   string // the name of the blind spot; without one and without an operation there is nothing to tell
	Why     string
	Calls   string // system calls, by the names of their numbers, without what CanonicalCall takes away
	Opcodes string // io_uring operations, without IORING_OP_
	Ioctls  string // ioctls and their like that yield a descriptor or name a file
}

// Names of blind spots: what a run can do without a line, and without a counter that says how
// often. They are texts of the note about blind spots.
const (
	BlindContents  = "reads and writes on open descriptors"
	BlindMemory    = "shared memory"
	BlindReceived  = "descriptors received from other processes"
	BlindAttrs     = "times and flags of files"
	BlindLooks     = "names that are only looked at"
	BlindPeers     = "peers of datagrams on connected sockets"
	BlindAccepted  = "peers of accepted connections and received datagrams"
	BlindIoctls    = "what ioctls and socket options open, name or change"
	BlindOutside   = "work done for the command outside of its cgroup"
	BlindSymlinks  = "symlinks inside paths that are known only lexically, and what another thread made of their text during the call"
	BlindInherited = "inherited descriptors"
	BlindForeign   = "what processes outside and the kernel itself did with sockets of the scope"
	BlindScripts   = "scripts that are interpreters of other scripts"
	BlindLoaders   = "loaders of programs"
	BlindCores     = "where the kernel put core dumps"
	BlindEarlier   = "what processes of the cgroup did before the capture"
	BlindRoots     = "where paths lead outside of their mount namespace, whose root programs changed"
	BlindArguments = "what another thread made of the structure of openat2 or of an address during the call"
)

// BlindSpots are the blind spots of every run, in the order of the note.
var BlindSpots = [...]string{
	BlindReceived, BlindMemory, BlindPeers, BlindAccepted, BlindContents, BlindAttrs, BlindLooks, BlindIoctls, BlindOutside, BlindSymlinks,
}

// What the kernel puts around the name of a call that has several forms: for old and new types
// of ids, sizes and times, for 32-bit programs, and by architecture.
var (
	variantPrefixes = [...]string{"ia32_", "aarch32_", "arm_", "arm64_", "old_", "old", "new", "_"}
	variantSuffixes = [...]string{"_time32", "_time64", "_32", "_64", "32", "64", "16"}
)

// CanonicalCall is the name under which CallTable has a system call or a function that carries
// one out, and false if it has none.
func CanonicalCall(name string) (string, bool) {
	if coverageOfCall()[name] != nil {
		return name, true
	}
	for _, p := range variantPrefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			if c, known := CanonicalCall(rest); known {
				return c, true
			}
		}
	}
	for _, s := range variantSuffixes {
		if rest, ok := strings.CutSuffix(name, s); ok {
			if c, known := CanonicalCall(rest); known {
				return c, true
			}
		}
	}
	return name, false
}

// CoverageOfCall is what the record says of a system call; nil if that is not known. A call
// that makes several kinds of lines has the coverage of the first.
func CoverageOfCall(name string) *CallCoverage {
	canonical, _ := CanonicalCall(name)
	return coverageOfCall()[canonical]
}

// CoverageOfOpcode is what the record says of an io_uring operation, without IORING_OP_.
func CoverageOfOpcode(name string) *CallCoverage { return coverageOfOpcode()[name] }

// Both are made when they are first asked: the table is large, and few tools ask.
var (
	coverageOfCall   = sync.OnceValue(func() map[string]*CallCoverage { return byName(func(c *CallCoverage) string { return c.Calls }) })
	coverageOfOpcode = sync.OnceValue(func() map[string]*CallCoverage { return byName(func(c *CallCoverage) string { return c.Opcodes }) })
)

func byName(names func(*CallCoverage) string) map[string]*CallCoverage {
	m := map[string]*CallCoverage{}
	for i := range CallTable {
		for _, name := range strings.Fields(names(&CallTable[i])) {
			if m[name] == nil {
				m[name] = &CallTable[i]
			}
		}
	}
	return m
}
