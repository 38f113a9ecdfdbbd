package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/runner-evidence/runner/schemas"
)

// Source is one member to be written. The manifest already contains its digest.
type Source struct {
	schemas.ManifestFile
	Content io.Reader // yields exactly Bytes bytes
	packed  *packed   // the same, compressed already, or nil
}

// Write writes the archive of the given members, the manifest first and
// the others in byte order, as gzip to w. Same members and packs (nil: none), same bytes; a member
// from a Packer can have other compressed bytes than one from elsewhere.
func Write(w io.Writer, runID string, packs *schemas.ManifestPacks, members []Source) error {
	if dense(members) {
		return writeDense(w, runID, packs, members)
	}
	j, err := newJoiner(w)
	if err != nil {
		return err
	}
	if err := writeTar(j, j.add, runID, packs, members); err != nil {
		return err
	}
	return j.Close()
}

// Identity is the hex SHA-256 of the uncompressed tar stream that Write writes.
func Identity(runID string, packs *schemas.ManifestPacks, members []Source) (string, error) {
	d := newDigester()
	err := writeTar(d, nil, runID, packs, members)
	sum := d.sum() // also ends its goroutine
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum), nil
}

// maxDense is how many bytes members of any bytes may have, and be compressed as well as the others.
const maxDense = 64 << 20

// dense reports whether there are more of them. What a command wrote or received can be so regular that its archive would be taken
// for a bomb (Limits): codes alone, without repetitions, make at most 8 bytes out of one.
func dense(members []Source) bool {
	var raw int64
	for _, m := range members {
		if form, known := schemas.MemberOf(m.Path); known && form.Raw {
			raw += m.Bytes
		}
	}
	return raw > maxDense
}

// writeDense writes an archive that is compressed by codes alone.
func writeDense(w io.Writer, runID string, packs *schemas.ManifestPacks, members []Source) error {
	zw, err := gzip.NewWriterLevel(w, gzip.HuffmanOnly)
	if err != nil {
		return err
	}
	// The library writes the zero time.Time as a date; this is 0 in the field.
	zw.ModTime = time.Unix(0, 0)
	if err := writeTar(zw, nil, runID, packs, members); err != nil {
		return err
	}
	return zw.Close()
}

// writeTar writes the tar stream. Where there is add, it takes members that are compressed already.
func writeTar(w io.Writer, add func(p *packed, n int64) error, runID string, packs *schemas.ManifestPacks, members []Source) error {
	members = append([]Source(nil), members...)
	sort.Slice(members, func(i, j int) bool { return members[i].Path < members[j].Path })
	m := schemas.Manifest{Schema: schemas.SchemaManifest, RunID: runID, Files: map[string]schemas.ManifestFile{}, Packs: packs}
	for _, s := range members {
		if _, twice := m.Files[s.Path]; twice || s.Path == ManifestName || !validName(s.Path) {
			return fmt.Errorf("member %q: a name given twice, reserved, or not a plain relative path", s.Path)
		}
		m.Files[s.Path] = s.ManifestFile
	}
	doc, err := schemas.Marshal(m)
	if err != nil {
		return err
	}
	manifest := Source{ManifestFile: schemas.ManifestFile{Path: ManifestName, Bytes: int64(len(doc))}, Content: bytes.NewReader(doc)}
	for _, s := range append([]Source{manifest}, members...) {
		if err := put(w, add, s); err != nil {
			return fmt.Errorf("member %s: %w", s.Path, err)
		}
	}
	_, err = w.Write(make([]byte, 2*blockSize))
	return err
}

// put writes one member. The tar library refuses what USTAR cannot express, such as a size
// above MaxMember.
func put(w io.Writer, add func(p *packed, n int64) error, s Source) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: s.Path, Size: s.Bytes, Mode: 0o644, Format: tar.FormatUSTAR}
	// A writer of its own for each header: what follows it does not pass through the library.
	if err := tar.NewWriter(w).WriteHeader(&h); err != nil {
		return err
	}
	if add != nil && s.packed != nil {
		if err := add(s.packed, s.Bytes); err != nil {
			return err
		}
	} else if n, err := io.Copy(w, io.LimitReader(s.Content, s.Bytes+1)); err != nil {
		return err
	} else if n != s.Bytes {
		return fmt.Errorf("%d bytes or more, expected %d", n, s.Bytes)
	}
	_, err := w.Write(zeroBlock[:-s.Bytes&(blockSize-1)])
	return err
}
