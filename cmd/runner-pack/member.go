package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// member is one file of the archive while it is written, in a scratch file on disk.
type member struct {
	name string
	file *os.File
	w    *bufio.Writer
	sum  hash.Hash
	size int64
}

func newMember(name string) (*member, error) {
	f, err := tool.Spool()
	if err != nil {
		return nil, fmt.Errorf("opening a scratch file for %s: %w", name, err)
	}
	return &member{name: name, file: f, w: bufio.NewWriterSize(f, 128<<10), sum: sha256.New()}, nil
}

// Write appends b.
func (m *member) Write(b []byte) (int, error) {
	m.sum.Write(b)
	m.size += int64(len(b))
	if m.size > bundle.MaxMember {
		return 0, fmt.Errorf("%s grows beyond %d bytes, the most that a tar member can hold", m.name, int64(bundle.MaxMember))
	}
	n, err := m.w.Write(b)
	if err != nil {
		err = fmt.Errorf("writing the scratch file of %s: %w", m.name, err)
	}
	return n, err
}

// reader returns a reader of what was written so far.
func (m *member) reader() (io.Reader, error) {
	if err := m.w.Flush(); err != nil {
		return nil, fmt.Errorf("writing the scratch file of %s: %w", m.name, err)
	}
	return io.NewSectionReader(m.file, 0, m.size), nil
}

// source returns the member as input of the archive writer.
func (m *member) source() (bundle.Source, error) {
	content, err := m.reader()
	if err != nil {
		return bundle.Source{}, err
	}
	return bundle.Source{
		ManifestFile: schemas.ManifestFile{Path: m.name, SHA256: schemas.DigestFrom(m.sum), Bytes: m.size},
		Content:      content,
	}, nil
}

func (m *member) close() { m.file.Close() }
