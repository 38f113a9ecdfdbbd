package schemas

import "bytes"

// HasDotDot reports whether a path has a component "..". In a path that is known only as
// text, a symlink before it may lead anywhere, so the directories above are not known.
func HasDotDot(path []byte) bool {
	if bytes.HasPrefix(path, []byte("..")) && (len(path) == 2 || path[2] == '/') {
		return true
	}
	for {
		i := bytes.Index(path, []byte("/.."))
		if i < 0 {
			return false
		}
		if path = path[i+3:]; len(path) == 0 || path[0] == '/' {
			return true
		}
	}
}
