package policy

import (
	"os"
	"path"
	"slices"
	"strings"
)

// What a call that is denied names inside longer strings: shell commands, flags, URLs in a text. It is
// only watched, so a token that is no path costs nothing but its place.

// maxTokens bounds the tokens of one call that are looked at.
const maxTokens = 1024

// tokens adds what the parts of a string may name.
func (e *evaluation) tokens(t *targetSet, s string, left *int) {
	var dirs []string
	fields := append(strings.FieldsFunc(s, isBreak), quoted(s)...)
	for _, field := range fields {
		if t.cut || *left == 0 || e.ended.Load() == givenUp {
			t.cut = true
			return
		}
		*left--
		if strings.Contains(field, "://") {
			e.target(t, field, false)
			continue
		}
		e.target(t, field, false)
		for _, part := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune("=:@,", r) }) {
			if dir := e.token(t, part, dirs); dir != "" && len(dirs) < 8 {
				dirs = append(dirs, dir)
			}
		}
	}
}

// isBreak reports whether a character separates words, for a shell or a reader.
func isBreak(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&<>(){}[]$*", r) }

// quoted are the parts of a string in quotes, which may hold blanks.
func quoted(s string) (list []string) {
	for _, quote := range []string{"'", "\""} {
		parts := strings.Split(s, quote)
		for i := 1; i+1 < len(parts); i += 2 {
			if strings.ContainsAny(parts[i], " \t") && strings.Contains(parts[i], "/") {
				list = append(list, parts[i])
			}
		}
	}
	return list
}

// token adds a token that may name a file, below the working directory, a root, or a directory that the
// string named before. It returns the directory that the token may be.
func (e *evaluation) token(t *targetSet, s string, dirs []string) (dir string) {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil { // the environment says it
			s = home + "/" + rest
		}
	}
	switch {
	case !isFile(s) || strings.HasPrefix(s, "-"):
	case strings.HasPrefix(s, "/"):
		if path.Clean(s) != "/" {
			e.path(t, s)
			return s
		}
	default:
		for i, above := range slices.Concat([]string{e.call.Dir}, e.call.Roots, dirs) {
			if above == "" {
				continue
			}
			name := above + "/" + s
			exists := false
			if !e.blind {
				_, err := os.Lstat(name)
				exists = err == nil
			}
			if exists || strings.Contains(s, "/") && i <= len(e.call.Roots) {
				e.path(t, name)
			}
		}
	}
	return ""
}

// eachString calls f for every string of a value.
func eachString(v any, left int, f func(string)) {
	switch x := v.(type) {
	case string:
		f(x)
	case []any:
		for _, y := range x {
			if left > 0 {
				eachString(y, left-1, f)
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(x) {
			if left > 0 {
				eachString(x[k], left-1, f)
			}
		}
	}
}
