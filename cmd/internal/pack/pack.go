// Package pack reads packs: rules about archives, with the signals that they need and the frameworks that
// they belong to (schemas/PACKS.md). runner-lint and runner-soak read them in the same way.
package pack

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Default is the pack that is taken when none is named.
const Default = "cicd-starter"

//go:embed packs/*.yaml
var embedded embed.FS

// Pack is a checked pack.
type Pack struct {
	schemas.PackRef
	Description string
	Frameworks  []Framework
	Requires    []string // names of signals, in the order of the file
	Rules       []Rule
	opened      string // by which name
	text        []byte // of a file; nil for a pack of the program
}

// Framework is what mappings of rules refer to.
type Framework struct{ ID, Title, URL string }

// Rule is one rule of a pack.
type Rule struct {
	ID       string // within the pack
	Severity Severity
	Needs    []string // names of signals without which the rule cannot be decided
	Assert   *assertion.Assertion
	None     bool // Assert must give nothing; what it gives is shown. Otherwise it must give true
	Message  string
	Fix      string
	Mappings []Mapping
}

// Mapping says which part of a framework a rule is about.
type Mapping struct{ Framework, Ref string }

// FullID is the rule's id everywhere outside of its pack: NAME@VERSION:ID.
func (p *Pack) FullID(rule string) string { return p.Name + "@" + p.Version + ":" + rule }

// File is the path of the pack's file, with slashes, "" for a pack of the program.
func (p *Pack) File() string {
	if p.text == nil {
		return ""
	}
	return filepath.ToSlash(p.opened)
}

// Mappings are those of all rules, for a manifest.
func (p *Pack) Mappings() []schemas.PackMapping {
	var list []schemas.PackMapping
	for i := range p.Rules {
		for _, m := range p.Rules[i].Mappings {
			list = append(list, schemas.PackMapping{Rule: p.FullID(p.Rules[i].ID), Framework: m.Framework, Ref: m.Ref})
		}
	}
	return list
}

// Names are the packs that are part of the program.
func Names() []string {
	entries, err := embedded.ReadDir("packs")
	if err != nil {
		panic("pack: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Text is the file of a pack that is part of the program.
func Text(name string) ([]byte, error) { return embedded.ReadFile("packs/" + name + ".yaml") }

// Open reads a pack by its name, or from a file. A name has neither a slash nor an ending. The error is
// one of a wrong call for a name that there is not, of input for a file that is not valid (it lists all
// problems), and of reading. After @sha256: and 64 hex digits it must have that digest.
func Open(name string) (*Pack, error) {
	name, digest := pinned(name)
	p, err := open(name)
	if err != nil {
		return nil, err
	}
	p.opened = name
	return p, p.is(digest)
}

func open(name string) (*Pack, error) {
	if isName(name) {
		b, err := Text(name)
		if err != nil {
			return nil, unknown(name)
		}
		return opened(name, schemas.PackBuiltin, b)
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tool.Fail(tool.ExitIO, fmt.Errorf("there is no pack file %s", schemas.Text(name)), "the packs that are part of the program: "+strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, tool.CannotRead(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, strict.MaxFile+1))
	if err != nil {
		return nil, tool.CannotRead(name, err)
	}
	return opened(name, schemas.Text(filepath.Base(name)), b)
}

// OpenAll reads packs by name or file: the default one if none is named. A pack is there once.
func OpenAll(names []string) ([]*Pack, error) {
	if len(names) == 0 {
		names = []string{Default}
	}
	var list []*Pack
	for _, name := range names {
		p, err := Open(name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list, func(o *Pack) bool { return o.Name == p.Name }); i >= 0 {
			if list[i].Digest != p.Digest {
				return nil, tool.Usagef("--pack %s: a second, other pack of the name %s", schemas.Text(name), p.Name)
			}
			continue
		}
		list = append(list, p)
	}
	return list, nil
}

func isName(name string) bool {
	return name != "" && !strings.ContainsAny(name, `/\`) && filepath.Ext(name) == ""
}

func unknown(name string) error {
	hint := "the packs that are part of the program: " + strings.Join(Names(), ", ") + "; a file has a slash or an ending in its name: ./" + schemas.Text(name)
	if near := nearest.Word(name, Names()); near != "" {
		hint = "did you mean --pack " + near + "? A file has a slash or an ending in its name"
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("there is no pack %q", schemas.Text(name)), hint)
}

func opened(name, source string, b []byte) (*Pack, error) {
	p, err := Parse(name, b)
	if err != nil {
		return nil, tool.Fail(tool.ExitInput, err)
	}
	if p.Source = source; source != schemas.PackBuiltin {
		p.text = b
	}
	return p, nil
}

// Parse checks a pack; name is the file name in problems. The error is *strict.Problems.
func Parse(name string, b []byte) (*Pack, error) {
	r := &reader{Reader: strict.Reader{File: name, What: "a pack", First: "schema: " + schemas.SchemaPack}}
	p := r.pack(b)
	if bad := r.Problems(); bad != nil {
		return nil, bad
	}
	p.Digest = schemas.DigestOf(b)
	return p, nil
}
