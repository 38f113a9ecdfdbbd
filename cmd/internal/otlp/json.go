// Package otlp writes OTLP/JSON, the form in which OpenTelemetry takes traces and logs as JSON
// (opentelemetry-proto, "JSON Protobuf Encoding"), and sends it by HTTP. In that form ids are
// lowercase hexadecimal, enums are numbers and 64-bit numbers are decimal strings.
//
// The encoder appends to a buffer: the shape is small and fixed, and a record has a million lines.
package otlp

import (
	"math"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// AppendKey appends the beginning of an attribute: its value is to follow, then AppendEnd.
func AppendKey(dst []byte, key string) []byte {
	dst = append(dst, `{"key":`...)
	dst = schemas.AppendQuote(dst, []byte(key))
	return append(dst, `,"value":`...)
}

// AppendEnd ends an attribute, with the comma to the next one.
func AppendEnd(dst []byte) []byte { return append(dst, "},"...) }

// AppendString appends a value that is a text. It must be valid UTF-8.
func AppendString(dst []byte, text []byte) []byte {
	dst = append(dst, `{"stringValue":`...)
	dst = schemas.AppendQuote(dst, text)
	return append(dst, '}')
}

// AppendInt appends a value that is a number.
func AppendInt(dst []byte, n int64) []byte {
	dst = append(dst, `{"intValue":"`...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, `"}`...)
}

// AppendUint appends a value that is a number. OTLP has no numbers above 2^63-1: such a one is a text.
func AppendUint(dst []byte, n uint64) []byte {
	if n <= math.MaxInt64 {
		return AppendInt(dst, int64(n))
	}
	return AppendString(dst, strconv.AppendUint(nil, n, 10))
}

// AppendBool appends a value that is true or false.
func AppendBool(dst []byte, b bool) []byte {
	dst = append(dst, `{"boolValue":`...)
	dst = strconv.AppendBool(dst, b)
	return append(dst, '}')
}

// AppendStrings appends a value that is a list of texts.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, `{"arrayValue":{"values":[`...)
	for _, s := range list {
		dst = append(AppendString(dst, []byte(s)), ',')
	}
	return append(Trim(dst), "]}}"...)
}

// Trim takes the comma from the end of a list.
func Trim(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] == ',' {
		return dst[:n-1]
	}
	return dst
}

// Text appends an attribute with a text.
func Text(dst []byte, key, value string) []byte {
	return AppendEnd(AppendString(AppendKey(dst, key), []byte(value)))
}

// Int appends an attribute with a number.
func Int(dst []byte, key string, n int64) []byte { return AppendEnd(AppendInt(AppendKey(dst, key), n)) }

// Uint appends an attribute with a number.
func Uint(dst []byte, key string, n uint64) []byte {
	return AppendEnd(AppendUint(AppendKey(dst, key), n))
}

// Bool appends an attribute that is true or false.
func Bool(dst []byte, key string, b bool) []byte {
	return AppendEnd(AppendBool(AppendKey(dst, key), b))
}

// Texts appends an attribute that is a list of texts.
func Texts(dst []byte, key string, list []string) []byte {
	return AppendEnd(AppendStrings(AppendKey(dst, key), list))
}

func quoted(dst []byte, s string) []byte { return schemas.AppendQuote(dst, []byte(s)) }
