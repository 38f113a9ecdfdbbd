// Package bundle reads and writes the archive of a run: eight members in a tar
// stream with fixed header fields, in gzip or plain (schemas/ARCHIVE.md, "Container").
//
// The reader is made for hostile input. It needs constant memory, accepts only
// regular files, and calls an archive read only after it has checked the end.
//
// Archives of other implementations differ in header details that have nothing to do with
// the run. The reader accepts these: GNU or POSIX magic, type flag '0' or NUL, any octal
// mode, owner, time and device number, any ASCII owner name, every octal layout of the
// checksum, zero blocks up to the next record of 10,240 bytes at the end, and any gzip
// header. It refuses all other features of the tar format.
package bundle

import (
	"errors"

	"github.com/runner-evidence/runner/schemas"
)

// Member names, as the contract's tables have them.
const (
	ManifestName = schemas.MemberManifest
	SurfaceName  = schemas.MemberSurface
	ReportName   = schemas.MemberReport
	EventsName   = schemas.MemberEvents
	KernelName   = schemas.MemberKernel
	PolicyName   = schemas.MemberPolicy
	SDKName      = schemas.MemberSDK
	HealthName   = schemas.MemberHealth
)

// Member is one file of an archive, as its header declares it.
type Member struct {
	Name string
	Size int64 // bytes
}

// Limits bound what a reader accepts. Exceeding one is ErrLimit.
type Limits struct {
	Total   int64 // bytes of the uncompressed tar stream
	Member  int64 // bytes of one member
	Members int   // number of members
	// Ratio is the largest accepted quotient of uncompressed and compressed
	// bytes. It is checked once more than Free uncompressed bytes came out.
	Ratio, Free int64
	// LargeRatio is the same once more than Large uncompressed bytes came out, so that what can be
	// read in seconds bounds what a small input can be.
	LargeRatio, Large int64
}

// DefaultLimits are large enough for real records and too small for compression bombs. The
// most repetitive record, one path of 4,093 bytes opened again and again, has a ratio of
// about 350; a bomb has 1,030.
var DefaultLimits = Limits{Total: 32 << 30, Member: MaxMember, Members: 64 + schemas.MaxBlobs, Ratio: 600, Free: 256 << 20, LargeRatio: 48, Large: 3 << 30}

// MaxMember is the largest member a USTAR header can declare, in bytes.
const MaxMember = 8<<30 - 1

// Error classes. Every error of Open and of a Reader wraps exactly one of them.
var (
	// ErrNotArchive: neither gzip nor tar, or a tar dialect without a known magic.
	ErrNotArchive = errors.New("not an archive")
	// ErrTruncated: the input ends before the archive does.
	ErrTruncated = errors.New("archive is truncated")
	// ErrCorrupt: gzip data or checksum, or a tar header's checksum, is wrong.
	ErrCorrupt = errors.New("archive is damaged")
	// ErrHostile: a link, device, directory, extension header, or a name that is
	// not a plain relative path, or hidden bytes in headers or padding.
	ErrHostile = errors.New("archive member refused")
	// ErrOrder: a member twice, or not manifest first and then byte order.
	ErrOrder = errors.New("archive members out of order")
	// ErrLimit: larger than the limits.
	ErrLimit = errors.New("archive exceeds a limit")
	// ErrTrailing: data after the end of the tar or gzip stream.
	ErrTrailing = errors.New("data after the end of the archive")
	// ErrRead is the underlying reader's failure, not the archive's.
	ErrRead = errors.New("reading")
)
