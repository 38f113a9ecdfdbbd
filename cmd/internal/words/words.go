// Package words splits command lines that are the value of a flag.
package words

import (
	"errors"
	"fmt"
	"strings"
)

// Split splits a command line as a shell does: blanks between words, quotes and backslashes. What a
// shell would act on is refused, so that nobody takes it for a shell.
func Split(s string) (list []string, err error) {
	var word strings.Builder
	inside := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ' || c == '\t':
			if inside {
				list = append(list, word.String())
				word.Reset()
			}
			inside = false
			continue
		case c == '\'' || c == '"':
			n := quoted(&word, s[i+1:], c)
			if n < 0 {
				return nil, fmt.Errorf("no closing %c", c)
			}
			i += n
		case c == '\\':
			if i++; i == len(s) {
				return nil, errors.New("it ends in a backslash")
			}
			word.WriteByte(s[i])
		case strings.IndexByte("$`|&;<>()*?[\n", c) >= 0:
			return nil, fmt.Errorf("%q is for a shell: put it in single quotes, or write sh -c '…'", c)
		default:
			word.WriteByte(c)
		}
		inside = true
	}
	if inside {
		list = append(list, word.String())
	}
	return list, nil
}

// quoted takes the rest of a quoted part, and returns how long it is with its end, or -1.
func quoted(word *strings.Builder, s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return i + 1
		case quote == '"' && c == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		default:
			word.WriteByte(c)
		}
	}
	return -1
}
