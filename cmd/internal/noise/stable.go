package noise

import (
	"bytes"
	"slices"
)

// numbered are the folders whose entries are named by numbers that differ from run to run,
// and what takes the place of the number in the layer filtered.
var numbered = []struct{ folder, stands []byte }{
	{[]byte("/proc/"), []byte("[pid]")},
	{[]byte("/proc/[pid]/task/"), []byte("[tid]")},
	{[]byte("/dev/pts/"), []byte("[n]")},
}

// Stable is a path as the layer filtered has it: without the numbers of processes, threads and
// terminals.
func Stable(path []byte) []byte {
	for _, f := range numbered {
		rest, ok := bytes.CutPrefix(path, f.folder)
		if !ok {
			continue
		}
		n := 0
		for n < len(rest) && rest[n]-'0' <= 9 {
			n++
		}
		if n == 0 || n < len(rest) && rest[n] != '/' {
			continue
		}
		path = slices.Concat(f.folder, f.stands, rest[n:])
	}
	return path
}
