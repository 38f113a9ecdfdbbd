package schemas

import "strings"

// ToolPrefix returns what an SDK puts before the name that a tool server gave a tool: nothing, or a text that
// ends in none of A-Z, a-z and 0-9. SDKs write other characters of a name as "_"; so they are equal.
func ToolPrefix(sdk, tool string) (prefix string, ok bool) {
	if sdk == tool {
		return "", true
	}
	n := len(sdk) - len(tool)
	if n < 0 || tool == "" || folded(sdk[n:]) != folded(tool) || n > 0 && plainByte(sdk[n-1]) {
		return "", false
	}
	return sdk[:n], true
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && plainByte(byte(r)) {
			return r
		}
		return '_'
	}, name)
}
