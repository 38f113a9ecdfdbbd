package archive

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// The streaming parser of the surface takes what the strict parser takes.
func TestSurfaceReaderAgrees(t *testing.T) {
	for _, doc := range []string{
		oneOfEach,
		`{"schema":"assay.runner.capability_surface.v0","run_id":"r","filesystem_paths":["\\","\n","\""],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`,
		`{"schema":"assay.runner.capability_surface.v0","run_id":"r","filesystem_paths":["\n","\"","\\","é"],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`,
		`{"schema":"assay.runner.capability_surface.v0","run_id":"r","filesystem_paths":["a",],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`,
		`{"schema":"assay.runner.capability_surface.v0","run_id":"r","filesystem_paths":[,"a"],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`,
	} {
		_, strict := schemas.ParseSurface([]byte(doc))
		s, err := NewSurfaceReader(strings.NewReader(doc))
		for err == nil {
			_, _, err = s.Next()
		}
		if ok := err.Error() == "EOF"; ok != (strict == nil) {
			t.Errorf("%s: stream %v, strict %v", doc, err, strict)
		}
	}
}

const oneOfEach = `{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":["/tmp/old","/tmp/out"],"network_endpoints":["127.0.0.1:80"],"process_execs":["/usr/bin/env"],"mcp_tools":["read_file"],"policy_decisions":["allow:read_file"]}`

// What the writer writes the reader reads, and it is the document that the strict
// parser's struct gives.
func TestSurfaceWriter(t *testing.T) {
	want := &schemas.Surface{Schema: schemas.SchemaSurface, RunID: "r", FilesystemPaths: []string{"\n", "/a\"b", "/é\\x"},
		NetworkEndpoints: []string{}, ProcessExecs: []string{"/bin/sh"}, MCPTools: []string{}, PolicyDecisions: []string{}}
	for _, quoted := range []bool{false, true} {
		var b bytes.Buffer
		w := NewSurfaceWriter(&b, "r")
		for set, values := range want.Sets() {
			for _, v := range values {
				add := func() error { return w.Add(set, []byte(v)) }
				if quoted {
					add = func() error { return w.AddQuoted(set, schemas.AppendQuote(nil, []byte(v))) }
				}
				if err := add(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Finish(); err != nil || w.Len() != 4 {
			t.Fatal(err, w.Len())
		}
		again, _ := schemas.Marshal(want)
		if !bytes.Equal(b.Bytes(), again) {
			t.Errorf("%s\nexpected %s", b.Bytes(), again)
		}
		s, err := NewSurfaceReader(&b)
		n := 0
		for ; err == nil; n++ {
			_, _, err = s.Next()
		}
		if err != io.EOF || n != 5 || s.RunID() != "r" {
			t.Errorf("%d values of %q: %v", n-1, s.RunID(), err)
		}
	}
}

func TestSurfaceWriterRefuses(t *testing.T) {
	for name, f := range map[string]func(w *SurfaceWriter) error{
		"repeated":      func(w *SurfaceWriter) error { return w.Add(1, []byte("m")) },
		"not in order":  func(w *SurfaceWriter) error { return w.Add(1, []byte("a")) },
		"earlier set":   func(w *SurfaceWriter) error { return w.Add(0, []byte("z")) },
		"no such set":   func(w *SurfaceWriter) error { return w.Add(len(schemas.SurfaceSets), []byte("z")) },
		"empty":         func(w *SurfaceWriter) error { return w.Add(2, nil) },
		"quoted, empty": func(w *SurfaceWriter) error { return w.AddQuoted(2, []byte(`""`)) },
		"no quotes":     func(w *SurfaceWriter) error { return w.AddQuoted(2, []byte(`abc`)) },
		"other form":    func(w *SurfaceWriter) error { return w.AddQuoted(2, []byte(`"\/"`)) },
		"two strings":   func(w *SurfaceWriter) error { return w.AddQuoted(2, []byte(`"a","b"`)) },
	} {
		w := NewSurfaceWriter(io.Discard, "r")
		if err := w.Add(1, []byte("m")); err != nil {
			t.Fatal(err)
		}
		var form *FormError
		if err := f(w); !errors.As(err, &form) || form.Rule == "" {
			t.Errorf("%s: %v, expected a form error", name, err)
		}
	}
}
