package schemas

// ResolveInRoot is a resolve flag of openat2: the directory that the name starts from is the root
// of the whole lookup.
const ResolveInRoot = 0x10

// Flags of the open family that the tools use (Linux's generic values).
const (
	OpenAccess    = 0o3 // the bits of the access mode
	OpenCreate    = 0o100
	OpenExclusive = 0o200
	OpenNoCTTY    = 0o400
	OpenTruncate  = 0o1000
	OpenAppend    = 0o2000
	OpenPath      = 0o10000000 // the kernel reads no other flag then but O_CLOEXEC, O_DIRECTORY and O_NOFOLLOW
	OpenTmpfile   = 0o20000000 // without O_DIRECTORY, which O_TMPFILE holds too

	// OpenCreates are those that create a file; without them the mode is ignored.
	OpenCreates = OpenCreate | OpenTmpfile
	// OpenChanges are those that make or change a file whatever the access mode is.
	OpenChanges = OpenCreates | OpenTruncate | OpenAppend
)
