package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The files of --record that become members as they are: blobs, and what the command wrote.

// fileMember is a file that is read when the archive is written.
type fileMember struct {
	path string
	f    *os.File
}

// Read opens the file for the first bytes, and closes it after the last.
func (m *fileMember) Read(b []byte) (n int, err error) {
	if m.f == nil {
		if m.f, err = os.Open(m.path); err != nil {
			return 0, err
		}
	}
	if n, err = m.f.Read(b); err != nil {
		m.f.Close()
	}
	return n, err
}

// recorded lists the members of a directory of records.
func recorded(dir string) (list []bundle.Source, err error) {
	if dir == "" {
		return nil, nil
	}
	if err := record.Check(dir); err != nil {
		return nil, err
	}
	for member, name := range map[string]string{schemas.MemberStdout: record.StdoutFile, schemas.MemberStderr: record.StderrFile} {
		s, err := source(member, filepath.Join(dir, name))
		if err == nil {
			list = append(list, s)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, tool.CannotRead(name, err)
		}
	}
	seen := map[string]bool{}
	for _, part := range []string{schemas.StageBox, schemas.StageNet, record.OwnDir} {
		at := filepath.Join(dir, part, record.BlobDir)
		names, err := os.ReadDir(at)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, tool.CannotRead(at, err)
		}
		for _, d := range names {
			member := schemas.BlobMembers + d.Name()
			if seen[member] {
				continue
			}
			seen[member] = true
			s, err := source(member, filepath.Join(at, d.Name()))
			if err != nil {
				return nil, tool.CannotRead(at, err)
			}
			if digest, ok := schemas.BlobDigest(member); !ok || digest != s.SHA256 {
				return nil, tool.Failf(tool.ExitInput, "%s: its name is not the digest of its bytes, which is %s", schemas.Text(filepath.Join(at, d.Name())), s.SHA256)
			}
			list = append(list, s)
		}
	}
	if len(seen) > schemas.MaxBlobs {
		return nil, tool.Failf(tool.ExitInput, "%s: %d blobs, an archive has at most %d", schemas.Text(dir), len(seen), schemas.MaxBlobs)
	}
	return list, nil
}

// source digests a file.
func source(member, path string) (s bundle.Source, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return s, fmt.Errorf("%s is no file: %w", schemas.Text(path), errors.Join(err, os.ErrInvalid))
	}
	sum, n, err := schemas.DigestAll(f)
	if err == nil && n > uint64(bundle.MaxMember) {
		err = fmt.Errorf("%s has more than %d bytes, the most that a tar member can hold", schemas.Text(path), int64(bundle.MaxMember))
	}
	return bundle.Source{ManifestFile: schemas.ManifestFile{Path: member, SHA256: sum, Bytes: int64(n)}, Content: &fileMember{path: path}}, err
}

var _ io.Reader = (*fileMember)(nil)
