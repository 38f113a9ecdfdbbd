// Package policy reads policy files and decides tool calls with them (schemas/POLICY.md,
// "Policy file").
//
// Whatever can be read in more than one way is refused. Parse refuses a file and reports
// every problem with its place. Decide denies a call that it cannot evaluate.
package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// Policy is a checked policy file. It never changes, so any number of goroutines
// may use it.
type Policy struct {
	Digest       string // sha256: and the hex SHA-256 of the file's bytes
	Source       []byte // these bytes
	HasToolRules bool   // the file has rules for tools: default or rules
	RelativeTo   string // directory in which the server must begin; "" if relative paths are not clear
	allow        bool   // default for tools that no rule matches
	rules        []rule
	resources    []requestRule         // about URIs
	methods      []requestRule         // about other requests
	network      *schemas.NetworkRules // nil without a network section
	file         string                // its name in warnings
	files        *schemas.FileRules    // nil without the sections files and exec
	redact       []jsonpath.Path       // arguments that no log may have
	names        nameSet               // names of arguments that the rules read
}

// Call is one tool call.
type Call struct {
	Tool string
	// Arguments and Meta are decoded JSON as Decode makes it: map[string]any, []any,
	// string, bool, nil, and json.Number (of encoding/json), which holds a number as
	// it was written. Nil means no arguments. They must not be changed, not
	// even after the answer: an evaluation that was given up may still read them.
	Arguments any
	Meta      any
	Dir       string       // absolute directory in which the server began; "" if it is not known
	Roots     []string     // directories that the client has offered as roots
	Schema    *InputSchema // of the tool, if the server told it
	Digest    string       // of the arguments (Digest); "" if they have none
}

// Decision is the answer to a call.
type Decision struct {
	Allow      bool
	Rate       Rate     // of the rule that allows; zero without one
	Reason     string   // P_… (schemas/POLICY.md, "Reason codes")
	RuleID     string   // rule that decided; empty for the default
	Say        string   // text for the client; empty when allowed
	Targets    []string // what the call names that a kernel line can show
	TargetsCut bool     // there were more targets
	By         string   // digest of the policy that decided, if the caller says so
	Checked    []string // those of the targets that the rule that decided read or expects
}

// Open reads and checks a policy file. Its error has the same exit code in every tool: 3
// for a file that is not valid (the message lists all problems), 5 for a file that cannot
// be read.
func Open(file string) (*Policy, error) {
	p, err := load(file)
	var bad *strict.Problems
	switch {
	case errors.As(err, &bad):
		return nil, tool.Fail(tool.ExitInput, err, formHint(bad)...)
	case errors.Is(err, fs.ErrNotExist):
		return nil, tool.Fail(tool.ExitIO, fmt.Errorf("there is no policy file %s", file), missingHint(file))
	case err != nil:
		return nil, tool.CannotRead(file, err)
	}
	return p, nil
}

// meant are keys that people who know other policies type.
var meant = map[string]string{"tools": "rules", "tool": "rules", "tool_rules": "rules", "allow": "rules", "deny": "rules",
	"net": "network", "filesystem": "files", "paths": "files", "programs": "exec", "process": "exec", "version": "schema", "apiVersion": "schema"}

// formHint shows a smallest policy where a key of the file is no key, or the schema is missing.
func formHint(bad *strict.Problems) []string {
	for _, p := range bad.List {
		if strings.HasPrefix(p.What, "unknown key ") && strings.Contains(p.What, " in the policy") || p.What == noSchema {
			return []string{`a smallest policy for tools: printf 'schema: ` + schemas.SchemaPolicyFile + `\ndefault: deny\nrules: [{id: read, allow: "read_*"}]\n' >policy.yaml`}
		}
	}
	return nil
}

// missingHint says what to type for a policy file that there is not: the one that was meant, or a first one.
func missingHint(file string) string {
	var names []string
	entries, _ := os.ReadDir(filepath.Dir(file))
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			names = append(names, e.Name())
		}
	}
	if near := nearest.Word(filepath.Base(file), names); near != "" {
		return "did you mean " + schemas.Text(filepath.Join(filepath.Dir(file), near)) + "?"
	}
	return "a first one: printf 'schema: runner.policy.v0\\nnetwork: {default: deny}\\n' >policy.yaml; what it means: runner-policy --check policy.yaml"
}

// load reads and checks a policy file. The error is *strict.Problems unless the file cannot be
// read.
func load(file string) (*Policy, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, strict.MaxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(file, b)
}

// reader reads a policy file and collects what is wrong with it.
type reader struct {
	strict.Reader
	full  map[string]bool       // what there is too much of, and was reported
	names nameSet               // names of arguments that the rules read
	lines map[string]*yaml.Node // where each is read first, by its folded form
}

// Parse checks a policy; name is the file name in problems. The error is *strict.Problems.
func Parse(name string, b []byte) (*Policy, error) {
	r := &reader{Reader: strict.Reader{File: name, What: "a policy", First: "schema: " + schemas.SchemaPolicyFile, Meant: meant}, full: map[string]bool{}, names: nameSet{}, lines: map[string]*yaml.Node{}}
	p := r.policy(b)
	if bad := r.Problems(); bad != nil {
		return nil, bad
	}
	p.file = name
	p.Digest, p.Source = schemas.DigestOf(b), b
	if p.network != nil {
		p.network.PolicyDigest = p.Digest
	}
	if p.files != nil {
		p.files.PolicyDigest = p.Digest
	}
	return p, nil
}

// Warnings are what the file says that it hardly means, each with its place.
func (p *Policy) Warnings() []string { return p.doubts(p.file) }

// Network returns the compiled network rules; false when the file has no network
// section. The caller must not change them.
func (p *Policy) Network() (*schemas.NetworkRules, bool) { return p.network, p.network != nil }

// Files returns the compiled rules about files and programs, with the paths that the file
// names; false when the file has neither section. The caller must not change them.
func (p *Policy) Files() (*schemas.FileRules, bool) { return p.files, p.files != nil }
