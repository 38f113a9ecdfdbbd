package noise

import (
	"bytes"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// LeftOut reports whether a table leaves a value of the layer filtered out under a rule. Where the
// value has no number of a process, the one that opened it can be any, also that process itself.
func (m *Table) LeftOut(rule string, value []byte) bool {
	if rule == schemas.FilterLoad {
		return slices.ContainsFunc(schemas.SystemLoaders[:], func(dir string) bool { return bytes.HasPrefix(value, []byte(dir)) })
	}
	path, own := numberedAgain(value)
	i := m.Find(path, own)
	return i >= 0 && m.ID(i) == rule
}

// standIn is the number that takes the place of those that Stable took out.
const standIn = "1"

// numberedAgain is a path that Stable could have been given, and the number of its process.
func numberedAgain(value []byte) (path []byte, pid uint32) {
	for i := len(numbered) - 1; i >= 0; i-- {
		f := &numbered[i]
		if rest, ok := bytes.CutPrefix(value, slices.Concat(f.folder, f.stands)); ok && (len(rest) == 0 || rest[0] == '/') {
			value = slices.Concat(f.folder, []byte(standIn), rest)
		}
	}
	return value, 1
}

// IsStable reports whether a value can be in the layer filtered: an absolute path whose components
// are names, without numbers that Stable takes out.
func IsStable(value string) bool {
	if value == "" || value[0] != '/' || string(Stable([]byte(value))) != value {
		return false
	}
	for name := range strings.SplitSeq(value[1:], "/") {
		if name == "" && value != "/" || name == "." || name == ".." {
			return false
		}
	}
	return true
}
