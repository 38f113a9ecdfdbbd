package main

import (
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// reduction keeps the members of an archive with volatile layers on disk, to give the
// identity without these layers: the manifest, which is the first member, depends on
// the last one.
type reduction struct {
	file    *os.File // nil: the archive has no volatile layer
	at      int64
	members []bundle.Source
	packs   *schemas.ManifestPacks
	err     error
}

// expect looks in the manifest for volatile layers.
func (r *reduction) expect(m *schemas.Manifest) {
	r.packs = m.Packs
	for name := range m.Files {
		if bundle.HasVolatile(name) && r.file == nil && r.err == nil {
			r.file, r.err = tool.Spool()
		}
	}
}

// member returns where the bytes of a member go, nil for those that are not needed.
func (r *reduction) member(name string) io.Writer {
	if r.file == nil || name == bundle.ManifestName || bundle.HasVolatile(name) {
		return nil
	}
	return r
}

// Write keeps bytes of the member being read.
func (r *reduction) Write(b []byte) (int, error) {
	n, err := r.file.WriteAt(b, r.at)
	r.at += int64(n)
	if err != nil {
		r.err = tool.ScratchError(err)
	}
	return n, r.err
}

// end closes a member.
func (r *reduction) end(m archive.Member) {
	if r.member(m.Name) == nil {
		return
	}
	r.members = append(r.members, bundle.Source{
		ManifestFile: schemas.ManifestFile{Path: m.Name, SHA256: m.SHA256, Bytes: m.Size},
		Content:      io.NewSectionReader(r.file, r.at-m.Size, m.Size),
	})
}

// identity is the identity without volatile layers, "" for an archive without any.
func (r *reduction) identity(runID string) (string, error) {
	if r.file == nil || r.err != nil {
		return "", r.err
	}
	id, err := bundle.ReducedIdentity(runID, r.packs, r.members)
	if err != nil {
		return "", fmt.Errorf("identity without times: %w", err)
	}
	return "sha256:" + id, nil
}

func (r *reduction) close() {
	if r.file != nil {
		r.file.Close()
	}
}
