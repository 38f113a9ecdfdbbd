package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// packedAgain is what a tar program makes of an unpacked archive.
func packedAgain(t *testing.T, a content, headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		text := a[strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "run/")]
		h.Size, h.Mode = int64(len(text)), 0o644
		testkit.Must(t, w.WriteHeader(&h))
		w.Write([]byte(text))
	}
	testkit.Must(t, w.Close())
	return b.Bytes()
}

// TestMessages: what people give by mistake, and what they then read.
func TestMessages(t *testing.T) {
	a := sample().digest(t)
	plain := a.tar(t)
	packed := zipped(t, plain, gzip.BestSpeed)
	run := func(name string) []byte { return testkit.Read(t, filepath.Join(runs, "tool-allowed", name)) }
	edited := func(member, old, new string) []byte {
		c := sample()
		edit(member, old, new)(t, c)
		return c.digest(t).tar(t)
	}
	var out strings.Builder
	say := func(what string, in []byte, args ...string) {
		code, _, errs := call(in, args...)
		fmt.Fprintf(&out, "%s: exit %d\n%s\n", what, code, errs)
	}
	say("nothing", nil)
	say("text", []byte("hello\n"))
	say("a web page", []byte("<!DOCTYPE html>\n<html><head><title>Sign in</title>"+strings.Repeat(" ", 600)))
	say("a web page, gzipped", zipped(t, []byte("<html>"), 1))
	say("nothing, gzipped", zipped(t, nil, 1))
	say("gzipped twice", zipped(t, packed, 1))
	say("zipped", []byte("PK\x03\x04"+strings.Repeat("\x00", 600)))
	say("a raw stream", run("1-raw.ndjson"))
	say("a normalized stream", run("2-kernel.ndjson"))
	say("a joined stream, gzipped", zipped(t, run("3-joined.ndjson"), 1))
	say("a collected log", run("policy.log.ndjson"))
	say("a manifest", []byte(a[bundle.ManifestName]))
	say("half a download", packed[:len(packed)/2])
	say("half a download, not gzipped", plain[:len(plain)/2])
	say("unpacked and packed by GNU tar", packedAgain(t, a, tar.Header{Typeflag: tar.TypeDir, Name: "./", Format: tar.FormatGNU}))
	say("packed with its folder", packedAgain(t, a, tar.Header{Typeflag: tar.TypeReg, Name: "run/manifest.json", Format: tar.FormatUSTAR}))
	say("packed in another order", packedAgain(t, a, tar.Header{Typeflag: tar.TypeReg, Name: "capability-surface.json", Format: tar.FormatUSTAR}))
	say("packed with names that begin with a dot", packedAgain(t, a, tar.Header{Typeflag: tar.TypeReg, Name: "./manifest.json", Format: tar.FormatUSTAR}))
	say("packed as pax", packedAgain(t, a, tar.Header{Typeflag: tar.TypeReg, Name: "manifest.json", PAXRecords: map[string]string{"V.x": "y"}, Format: tar.FormatPAX}))
	say("more after it", append(bytes.Clone(packed), "x"...))

	say("health without a key", edited(bundle.HealthName, `"platform":"linux",`, ""))
	say("health with a wrong type", edited(bundle.HealthName, `"ringbuf_drops":0`, `"ringbuf_drops":"0"`))
	man := sample().digest(t)
	man[bundle.ManifestName] = strings.Replace(man[bundle.ManifestName], `"files"`, `"filez"`, 1)
	say("manifest with another key", man.tar(t))
	say("report without a key", edited(bundle.ReportName, `"kernel_event_count":4,`, ""))
	say("surface without a set", edited(bundle.SurfaceName, `"mcp_tools":["read_file"],`, ""))
	say("event without a key", edited(bundle.EventsName, `"signal":null,`, ""))
	say("kernel line without a key", edited(bundle.KernelName, `"pid":100,`, ""))
	say("kernel line with a text for a number", edited(bundle.KernelName, `"pid":100`, `"pid":"100"`))
	say("decision without a key", edited(bundle.PolicyName, `"tool":"read_file",`, ""))
	say("decision with a number for a text", edited(bundle.PolicyName, `"tool":"read_file"`, `"tool":1`))
	say("SDK line without a key", edited(bundle.SDKName, `"event_type":"tool_call_started",`, ""))
	say("layer of blank lines", edited(bundle.KernelName, "\n", strings.Repeat("\n", 12_000)))
	long := sample()
	long[bundle.HealthName] = strings.Replace(long[bundle.HealthName], `"notes":[`, `"notes":[7,"`+strings.Repeat("x", 20_000)+`",`, 1)
	say("long health with a wrong type", long.digest(t).tar(t))
	long = sample()
	long[bundle.ReportName] = strings.Replace(long[bundle.ReportName], `"ambiguities":[`, `"ambiguities":[7,"`+strings.Repeat("x", 20_000)+`",`, 1)
	say("long report with a wrong type", long.digest(t).tar(t))

	here, err := os.Getwd()
	testkit.Must(t, err)
	t.Chdir(t.TempDir())
	testkit.Must(t, os.Mkdir("unpacked", 0o755))
	say("a directory", nil, "unpacked")
	say("no such file", nil, "run.tar.gz")
	t.Chdir(here)
	testkit.Golden(t, "testdata/messages.txt", []byte(out.String()))
	for _, word := range []string{"schemas.", "Go ", "uint64", "cannot unmarshal", "jsontext", "[]string"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("a message says %q", word)
		}
	}
}

// TestSectionsAreWhole: with all, nothing is cut, and what a terminal would hide is escaped.
func TestSectionsAreWhole(t *testing.T) {
	items := make([]string, maxShownNotes+2)
	for i := range items {
		items[i] = strings.Repeat("é", maxShownNote) + "\x1b[0m end"
	}
	for _, all := range []bool{false, true} {
		var b strings.Builder
		section(&b, "Title:", items, all)
		if text := b.String(); strings.Contains(text, "\x1b") || all != (strings.Count(text, `\x1b[0m end`) == len(items)) || all == strings.Contains(text, "…") {
			t.Errorf("all %v: %s", all, text)
		}
	}
}
