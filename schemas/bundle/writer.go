package bundle

import (
	"archive/tar"
	"crypto/sha256"
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
}

// Write writes the archive of the given members, the manifest first and
// the others in byte order, as gzip to w. It returns the archive's identity,
// the hex SHA-256 of the uncompressed tar stream. Same members and packs (nil: none), same bytes.
func Write(w io.Writer, runID string, packs *schemas.ManifestPacks, members []Source) (identity string, err error) {
	zw, err := gzip.NewWriterLevel(w, level(members))
	if err != nil {
		return "", err
	}
	// The library writes the zero time.Time as a date; this is 0 in the field.
	zw.ModTime = time.Unix(0, 0)
	if identity, err = writeTar(zw, runID, packs, members); err != nil {
		return "", err
	}
	return identity, zw.Close()
}

// maxDense is how many bytes members of any bytes may have, and be compressed as well as the others.
const maxDense = 64 << 20

// level is how the archive is compressed. What a command wrote or received can be so regular that its archive would be taken
// for a bomb (Limits): codes alone, without repetitions, make at most 8 bytes out of one.
func level(members []Source) int {
	var raw int64
	for _, m := range members {
		if form, known := schemas.MemberOf(m.Path); known && form.Raw {
			raw += m.Bytes
		}
	}
	if raw > maxDense {
		return gzip.HuffmanOnly
	}
	return gzip.BestSpeed
}

// writeTar writes the tar stream, and returns its hex SHA-256.
func writeTar(w io.Writer, runID string, packs *schemas.ManifestPacks, members []Source) (identity string, err error) {
	members = append([]Source(nil), members...)
	sort.Slice(members, func(i, j int) bool { return members[i].Path < members[j].Path })
	m := schemas.Manifest{Schema: schemas.SchemaManifest, RunID: runID, Files: map[string]schemas.ManifestFile{}, Packs: packs}
	for _, s := range members {
		if _, twice := m.Files[s.Path]; twice || s.Path == ManifestName || !validName(s.Path) {
			return "", fmt.Errorf("member %q: a name given twice, reserved, or not a plain relative path", s.Path)
		}
		m.Files[s.Path] = s.ManifestFile
	}
	doc, err := schemas.Marshal(m)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	tw := tar.NewWriter(io.MultiWriter(sum, w))
	if err := put(tw, ManifestName, int64(len(doc)), nil, doc); err != nil {
		return "", err
	}
	for _, s := range members {
		if err := put(tw, s.Path, s.Bytes, s.Content, nil); err != nil {
			return "", err
		}
	}
	if err := tw.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// put writes one member. The tar library refuses what USTAR cannot express, such as a size
// above MaxMember, and content that is longer than the size.
func put(tw *tar.Writer, name string, size int64, content io.Reader, doc []byte) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR}
	if err := tw.WriteHeader(&h); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	if content == nil {
		_, err := tw.Write(doc)
		return err
	}
	n, err := io.Copy(tw, content)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes, expected %d", n, size)
	}
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	return nil
}
