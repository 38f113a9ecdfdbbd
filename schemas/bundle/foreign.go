package bundle

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// This file says what an input is that is not an archive, and what to do then.

// beginnings are how other files begin.
var beginnings = []struct{ bytes, is string }{
	{"\x1f\x8b", "a gzip stream within a gzip stream: unpack it once, with gzip -d"},
	{"PK\x03\x04", "a zip file: unzip it if it holds the archive; an archive that was unpacked and packed again is not the record any more"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it with zstd -d"},
	{"BZh", "compressed by bzip2: unpack it with bunzip2"},
	{"\xfd7zXZ\x00", "compressed by xz: unpack it with unxz"},
	{"<!doctype html", "an HTML page: a download that failed, or that needs a login"},
	{"<html", "an HTML page: a download that failed, or that needs a login"},
	{"<?xml", "an XML text: a download that failed"},
	{`{"schema":"` + schemas.SchemaManifest, "the manifest of an archive, not the archive"},
	{`{"schema":"` + schemas.SchemaVerifyReport, "what runner-verify printed, not the archive"},
}

// looksLike says what a beginning is of, "" when it is not known.
func looksLike(b []byte) string {
	lower := strings.ToLower(string(bytes.TrimLeft(b, " \t\r\n\ufeff")))
	for _, k := range beginnings {
		if bytes.HasPrefix(b, []byte(k.bytes)) || strings.HasPrefix(lower, k.bytes) {
			return "it is " + k.is
		}
	}
	if name := streamName(b); name != "" {
		return fmt.Sprintf("it is a %s stream, which %s reads", name, schemas.ReaderOf(name))
	}
	if len(b) > 0 && b[0] == '{' {
		return "it is JSON, not an archive"
	}
	return ""
}

// streamName is the name of a stream of this runner that begins so.
func streamName(b []byte) string {
	const head, key = `{"schema":"` + schemas.SchemaHeader + `"`, `"stream":"`
	if !bytes.HasPrefix(b, []byte(head)) {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), key)
	name, _, _ := strings.Cut(rest, `"`)
	for _, s := range schemas.Streams() {
		if s.Name == name {
			return name
		}
	}
	return ""
}

// notArchive is the error about such an input.
func notArchive(b []byte, otherwise string) error {
	if is := looksLike(b); is != "" {
		otherwise = is
	}
	return fmt.Errorf("%w: %s", ErrNotArchive, otherwise)
}

// repacked follows what a tar program makes of an archive that was unpacked.
const repacked = "; if it was unpacked and packed again: only the file that runner-pack wrote is the record"
