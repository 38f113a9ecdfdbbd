package bundle

import (
	"bytes"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/schemas"
)

// ReducedIdentity is the identity that the archive would have without its volatile layers:
// without their members and their notes in the observation health, and with a manifest
// that fits. A command that always does the same has the same reduced identity in every
// run, with or without such layers.
func ReducedIdentity(runID string, packs *schemas.ManifestPacks, members []Source) (identity string, err error) {
	var rest []Source
	for _, m := range members {
		if volatile(m.Path) {
			continue
		}
		if m.Path == HealthName {
			if m, err = reducedHealth(m); err != nil {
				return "", err
			}
		}
		rest = append(rest, m)
	}
	return Identity(runID, packs, rest)
}

// HasVolatile reports whether one of the names is the member of a volatile layer.
func HasVolatile(names ...string) bool {
	for _, name := range names {
		if volatile(name) {
			return true
		}
	}
	return false
}

func volatile(member string) bool {
	for _, l := range schemas.Layers {
		if l.Volatile && l.Member == member {
			return true
		}
	}
	return false
}

func reducedHealth(m Source) (Source, error) {
	b, err := io.ReadAll(m.Content)
	if err != nil {
		return m, err
	}
	h, err := schemas.ParseHealth(b)
	if err != nil {
		return m, err
	}
	kept := []string{}
	for _, note := range h.Notes {
		if code, _, _ := schemas.CutNote(note); !volatileNote(code) {
			kept = append(kept, note)
		}
	}
	h.Notes = kept
	if b, err = schemas.Marshal(h); err != nil {
		return m, fmt.Errorf("%s without the notes of volatile layers: %w", HealthName, err)
	}
	return Source{ManifestFile: schemas.ManifestFile{Path: HealthName, SHA256: schemas.DigestOf(b), Bytes: int64(len(b))}, Content: bytes.NewReader(b)}, nil
}

func volatileNote(code string) bool {
	for _, l := range schemas.Layers {
		if l.Volatile && l.Note.Code == code {
			return true
		}
	}
	return false
}
