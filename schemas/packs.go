package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas/pattern"
)

// SchemaPack is the schema string of a pack (PACKS.md).
const SchemaPack = "runner.pack.v0"

// Severities of rules, from the least on.
var Severities = [...]string{"info", "warning", "error"}

// PackKinds are the kinds of packs.
var PackKinds = [...]string{"quality", "security", "compliance", "replay"}

// PackBuiltin is the source of a pack that is part of the program.
const PackBuiltin = "built-in"

// PackRef says which pack: in reports, and in the manifest of an archive whose run it was applied to.
type PackRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"`           // of the file's bytes
	Source  string `json:"source,omitempty"` // PackBuiltin, or the name of the file
}

// PackMapping says which part of a framework a rule of a pack is about.
type PackMapping struct {
	Rule      string `json:"rule"` // NAME@VERSION:ID
	Framework string `json:"framework"`
	Ref       string `json:"ref"`
}

// Forms of the parts of a pack.
const (
	packName    = `[a-z0-9][a-z0-9-]{0,63}`
	packVersion = `(0|[1-9][0-9]{0,5})(\.(0|[1-9][0-9]{0,5})){2}(-[0-9A-Za-z.-]{1,32})?`
	packWord    = `[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`
)

// The forms as whole texts.
var (
	PackName    = pattern.New(`^` + packName + `$`)                                          // of packs and rules
	PackVersion = pattern.New(`^` + packVersion + `$`)                                       // of packs
	PackWord    = pattern.New(`^` + packWord + `$`)                                          // ids of frameworks, and of their parts
	PackRuleID  = pattern.New(`^(` + packName + `@` + packVersion + `):(` + packName + `)$`) // of rules outside of their pack
)

// Check checks what a reference says on its own.
func (p *PackRef) Check() error {
	switch {
	case !PackName.MatchString(p.Name):
		return fmt.Errorf("name is %.100q, expected a-z, 0-9 and -", p.Name)
	case !PackVersion.MatchString(p.Version):
		return fmt.Errorf("version is %.100q, expected MAJOR.MINOR.PATCH", p.Version)
	case len(p.Digest) != 71 || p.Digest[:7] != "sha256:" || !isDigest(p.Digest[7:]):
		return fmt.Errorf("digest is %.100q, expected sha256: and 64 hex digits", p.Digest)
	}
	return oneOf("kind", p.Kind, PackKinds[:]...)
}

// Check checks what a mapping says on its own.
func (m *PackMapping) Check() error {
	switch {
	case !PackRuleID.MatchString(m.Rule):
		return fmt.Errorf("rule is %.100q, expected NAME@VERSION:RULE", m.Rule)
	case !PackWord.MatchString(m.Framework) || !PackWord.MatchString(m.Ref):
		return errors.New("framework or ref is not letters, digits, _ . and -")
	}
	return nil
}

// ManifestPacks are the packs that whoever wrote an archive says to have applied to the run.
type ManifestPacks struct {
	Applied  []ManifestPack `json:"packs_applied"`
	Mappings []PackMapping  `json:"mappings,omitempty"`
}

// ManifestPack is one pack in a manifest.
type ManifestPack struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Kind      string `json:"kind"`
	SourceURL string `json:"source_url,omitempty"` // written only by other implementations
}

// MaxManifestPacks bounds what a manifest has of packs, in bytes: the rest of it must have room, too.
const MaxManifestPacks = 48 << 10

// check checks the form of each part.
func (m *ManifestPacks) check() error {
	if len(m.Applied) == 0 {
		return errors.New("x-assay: packs_applied is empty")
	}
	for i := range m.Applied {
		p := &m.Applied[i]
		if err := (&PackRef{Name: p.Name, Version: p.Version, Kind: p.Kind, Digest: p.Digest}).Check(); err != nil {
			return fmt.Errorf("x-assay: packs_applied[%d]: %w", i, err)
		}
	}
	for i := range m.Mappings {
		if err := m.Mappings[i].Check(); err != nil {
			return fmt.Errorf("x-assay: mappings[%d]: %w", i, err)
		}
	}
	return nil
}

// Agree reports what is wrong between the parts: packs are sorted by name, each is there once, and mappings
// are sorted, each there once, and of rules of these packs.
func (m *ManifestPacks) Agree() error {
	packs := map[string]bool{}
	for i := range m.Applied {
		p := &m.Applied[i]
		if i > 0 && m.Applied[i-1].Name >= p.Name {
			return fmt.Errorf("packs_applied[%d] is %s after %s, expected names sorted and each once", i, p.Name, m.Applied[i-1].Name)
		}
		packs[p.Name+"@"+p.Version] = true
	}
	for i := range m.Mappings {
		x := &m.Mappings[i]
		if i > 0 && !m.Mappings[i-1].Before(x) {
			return fmt.Errorf("mappings[%d] is not after the one before it, expected them sorted by rule, framework and ref, and each once", i)
		}
		if pack, _, _ := strings.Cut(x.Rule, ":"); !packs[pack] {
			return fmt.Errorf("mappings[%d] is of the pack %s, which is not in packs_applied", i, pack)
		}
	}
	return nil
}

// Before reports whether a mapping comes before another one.
func (m *PackMapping) Before(o *PackMapping) bool {
	return cmp.Or(strings.Compare(m.Rule, o.Rule), strings.Compare(m.Framework, o.Framework), strings.Compare(m.Ref, o.Ref)) < 0
}
