package pack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// pin comes between a pack and the digest that it must have.
const pin = "@sha256:"

// Applied are packs for the manifest of an archive.
type Applied struct {
	Manifest *schemas.ManifestPacks // nil without packs
	Packs    []Given                // the same packs, in the order of the manifest
}

// Given is a pack that another program is to read as it was read here.
type Given struct {
	Name   string // of a pack of the program; or of a file, which may have changed
	Text   []byte // of a file; nil for a pack of the program
	Digest string
}

// Flag is the value of --pack for the other program, which finds a file at a path.
func (g *Given) Flag(path string) string {
	if g.Text == nil {
		path = g.Name
	}
	return path + pin + strings.TrimPrefix(g.Digest, "sha256:")
}

// Apply reads the packs that an archive is to name. There is no default one.
func Apply(names []string) (Applied, error) {
	if len(names) == 0 {
		return Applied{}, nil
	}
	list, err := OpenAll(names)
	if err != nil {
		return Applied{}, err
	}
	slices.SortFunc(list, func(a, b *Pack) int { return strings.Compare(a.Name, b.Name) })
	a := Applied{Manifest: &schemas.ManifestPacks{}}
	for _, p := range list {
		a.Manifest.Applied = append(a.Manifest.Applied, schemas.ManifestPack{Name: p.Name, Version: p.Version, Digest: p.Digest, Kind: p.Kind})
		a.Manifest.Mappings = append(a.Manifest.Mappings, p.Mappings()...)
		a.Packs = append(a.Packs, Given{p.opened, p.text, p.Digest})
	}
	slices.SortFunc(a.Manifest.Mappings, func(x, y schemas.PackMapping) int {
		switch {
		case x.Before(&y):
			return -1
		case y.Before(&x):
			return 1
		}
		return 0
	})
	a.Manifest.Mappings = slices.Compact(a.Manifest.Mappings)
	b, err := schemas.Marshal(a.Manifest)
	if err == nil && len(b) > schemas.MaxManifestPacks {
		err = tool.Usagef("--pack: these packs take %d bytes of the manifest, at most %d: name fewer", len(b), schemas.MaxManifestPacks)
	}
	return a, err
}

// pinned splits the name of a pack from the digest that it must have, "" for any.
func pinned(name string) (string, string) {
	if at := strings.LastIndex(name, pin); at > 0 && schemas.ValidDigest(name[at+1:]) {
		return name[:at], name[at+1:]
	}
	return name, ""
}

// is checks the digest of a pack.
func (p *Pack) is(digest string) error {
	if digest != "" && p.Digest != digest {
		return tool.Fail(tool.ExitInput, fmt.Errorf("the pack %s has the digest %s, expected %s", schemas.Text(p.opened), p.Digest, digest))
	}
	return nil
}
