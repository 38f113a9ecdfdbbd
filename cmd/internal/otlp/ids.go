package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Trace names a trace and, where the run was started in one, the span that started it.
type Trace struct {
	ID     string // 32 hexadecimal digits
	Parent string // 16, or ""
}

// TraceOf is the trace of a run that was started in none: the same for the same run.
func TraceOf(runID string) Trace { return Trace{ID: id(16, "trace", runID)} }

// SpanOf is the span of a tool call.
func SpanOf(runID, call string) string { return id(8, "span", runID, call) }

// id is the beginning of a digest. Only the last part can have a NUL in it, so no two lists are one.
func id(bytes int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	if text := hex.EncodeToString(sum[:bytes]); strings.Trim(text, "0") != "" {
		return text
	}
	return strings.Repeat("0", 2*bytes-1) + "1" // zeros alone are no id
}

// ParseTraceparent reads the header traceparent of W3C Trace Context.
func ParseTraceparent(s string) (Trace, error) {
	parts := strings.Split(s, "-")
	ok := len(parts) >= 4 && isHex(parts[0], 2) && parts[0] != "ff" && (parts[0] != "00" || len(parts) == 4)
	ok = ok && isHex(parts[1], 32) && isHex(parts[2], 16) && isHex(parts[3], 2) && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
	if !ok {
		return Trace{}, fmt.Errorf("%.100q is no traceparent, expected 00-TRACE-SPAN-FLAGS with 32, 16 and 2 lowercase hexadecimal digits, not all zero", s)
	}
	return Trace{ID: parts[1], Parent: parts[2]}, nil
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
