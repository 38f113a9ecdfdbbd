// Package archivetest builds archives for tests: valid ones, and ones that no
// writer of this module would make.
package archivetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// RunID is the run_id of Sample.
const RunID = "run_test"

// Content is what the members of an archive hold, by name.
type Content map[string]string

// Digest writes the manifest that fits the content, as a forger would.
func (c Content) Digest(t testing.TB) Content {
	m := schemas.Manifest{Schema: schemas.SchemaManifest, RunID: RunID, Files: map[string]schemas.ManifestFile{}}
	for name, text := range c {
		if name == schemas.MemberManifest {
			continue
		}
		sum := sha256.Sum256([]byte(text))
		m.Files[name] = schemas.ManifestFile{Path: name, SHA256: "sha256:" + hex.EncodeToString(sum[:]), Bytes: int64(len(text))}
	}
	b, err := schemas.Marshal(m)
	testkit.Must(t, err)
	c[schemas.MemberManifest] = string(b)
	return c
}

// Names are the members in archive order.
func (c Content) Names() []string {
	list := slices.Sorted(maps.Keys(c))
	if i := slices.Index(list, schemas.MemberManifest); i > 0 {
		list = slices.Insert(slices.Delete(list, i, i+1), 0, schemas.MemberManifest)
	}
	return list
}

// Tar packs the members in archive order, without any check.
func (c Content) Tar(t testing.TB) []byte { return c.TarOf(t, c.Names()) }

// TarOf packs the named members in the given order, without any check.
func (c Content) TarOf(t testing.TB, names []string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		testkit.Must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(c[name])), Mode: 0o644, Format: tar.FormatUSTAR}))
		_, err := w.Write([]byte(c[name]))
		testkit.Must(t, err)
	}
	testkit.Must(t, w.Close())
	return b.Bytes()
}

// Members yields the members without a container, as archive.ReadMembers takes them.
func (c Content) Members() *Members { return &Members{c, c.Names()} }

// Members are the members of an archive that is not packed.
type Members struct {
	content Content
	names   []string
}

// Next returns the next member, io.EOF after the last.
func (m *Members) Next() (bundle.Member, io.Reader, error) {
	if len(m.names) == 0 {
		return bundle.Member{}, nil, io.EOF
	}
	name := m.names[0]
	m.names = m.names[1:]
	return bundle.Member{Name: name, Size: int64(len(m.content[name]))}, strings.NewReader(m.content[name]), nil
}

// Gzip compresses b.
func Gzip(t testing.TB, b []byte, level int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	testkit.Must(t, err)
	_, err = w.Write(b)
	testkit.Must(t, err)
	testkit.Must(t, w.Close())
	return out.Bytes()
}

// KernelLine is a line of the kernel layer; rest begins with the event type.
func KernelLine(seq int, rest string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.kernel_event.v0","run_id":%q,"seq":%d,"pid":100,%s}`+"\n", RunID, seq, rest)
}

// OpenLine is a line of the kernel layer about a file that was created.
func OpenLine(seq int, path string) string {
	return KernelLine(seq, `"event_type":1,"kind":"openat","value":"`+path+`","flags":577,"mode":420,"return_value":3,"access_mode":"write","operation_flags":["create","truncate"],"status":"success"`)
}

// SDKLines is an SDK layer: each event is a type, then an id and a tool.
func SDKLines(events ...string) string {
	var b strings.Builder
	for i, e := range events {
		f := append(strings.Fields(e), "", "")
		id, tool := "null", "null"
		if f[1] != "" {
			id, tool = fmt.Sprintf("%q", f[1]), fmt.Sprintf("%q", f[2])
		}
		fmt.Fprintf(&b, `{"schema":"assay.runner.sdk_event.v0","run_id":%q,"seq":%d,"event_type":%q,"source":"x","sdk_name":null,"sdk_version":null,"tool_call_id":%s,"tool":%s}`+"\n", RunID, i, f[0], id, tool)
	}
	return b.String()
}
