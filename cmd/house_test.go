package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// sources calls f for every file that a person wrote, with its path from the root.
func sources(t *testing.T, f func(path string, b []byte)) {
	t.Helper()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, _ := filepath.Rel("..", p)
		if d.IsDir() {
			if path == ".git" || path == "bin" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.Contains(path, "_bpfe") || !d.Type().IsRegular() || strings.HasSuffix(path, ".tar.gz") {
			return nil
		}
		b, err := os.ReadFile(p)
		if !bytes.Contains(b, []byte{0}) { // a binary file is not a source
			f(path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHouseRoot: the root folder has only the expected entries, and what README's commands make
// there, which .gitignore lists.
func TestHouseRoot(t *testing.T) {
	allowed := []string{
		".ci", ".git", ".gitattributes", ".github", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md",
		"bin", "bpf", "cmd", "go.mod", "go.sum", "schemas", "scripts", "testdata",
	}
	ignored := testkit.Read(t, "../.gitignore")
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		made := slices.ContainsFunc(strings.Fields(string(ignored)), func(pattern string) bool {
			ok, err := filepath.Match(pattern, "/"+e.Name())
			return ok && err == nil
		})
		if !made && !slices.Contains(allowed, e.Name()) {
			t.Errorf("%s does not belong in the root folder", e.Name())
		}
	}
}

// TestHousePrograms: no built program is in the tree. The BPF objects are meant to be there.
func TestHousePrograms(t *testing.T) {
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		path, _ := filepath.Rel("..", p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == ".git" || path == "bin" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(path, "_bpfel.o") || strings.HasSuffix(path, ".test"):
			return nil
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		var head [4]byte
		n, _ := f.Read(head[:])
		if slices.Contains([]string{"\x7fELF", "\xcf\xfa\xed\xfe"}, string(head[:n])) || n > 1 && string(head[:2]) == "MZ" {
			t.Errorf("%s is a built program", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHouseImports: only runner-capture links eBPF, only runner-verify the schema
// validator, no program the test library, and the contract neither flags nor probes.
func TestHouseImports(t *testing.T) {
	const ebpf, schema, script = "github.com/cilium/ebpf", "github.com/santhosh-tekuri/jsonschema", "github.com/rogpeppe/go-internal"
	const flags, jq = "github.com/urfave/cli", "github.com/itchyny/gojq"
	forbidden := map[string][]string{
		"github.com/runner-evidence/runner/schemas/...": {ebpf, schema, script, flags, jq, "github.com/runner-evidence/runner/cmd", "github.com/runner-evidence/runner/bpf"},
		"github.com/runner-evidence/runner/bpf":         {schema, script, flags, jq, "github.com/runner-evidence/runner/cmd"},
	}
	for _, tool := range tools {
		rules := []string{script, "github.com/runner-evidence/runner/schemas/testkit", "github.com/runner-evidence/runner/schemas/archive/archivetest"}
		if tool != "runner-capture" {
			rules = append(rules, ebpf, "github.com/runner-evidence/runner/bpf")
		}
		if tool != "runner-verify" {
			rules = append(rules, schema)
		}
		forbidden["github.com/runner-evidence/runner/cmd/"+tool] = rules
	}
	for pkg, rules := range forbidden {
		c := exec.Command("go", "list", "-deps", pkg)
		c.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", pkg, err)
		}
		for dep := range strings.Lines(string(out)) {
			dep = strings.TrimSpace(dep)
			for _, rule := range rules {
				if dep == rule || strings.HasPrefix(dep, rule+"/") {
					t.Errorf("%s links %s", pkg, dep)
				}
			}
		}
	}
}

// TestHouseElsewhere: every tool builds for systems that it cannot observe, and links there. It uses the user's build
// cache, so that only the first build is slow. For linux/arm64 they are only compiled: the lane of kernels has guests with it.
func TestHouseElsewhere(t *testing.T) {
	for target, to := range map[string]string{"darwin/amd64": t.TempDir(), "darwin/arm64": t.TempDir(), "windows/amd64": t.TempDir(), "linux/arm64": os.DevNull} {
		c := exec.Command("go", "build", "-o", to, "./...")
		goos, goarch, _ := strings.Cut(target, "/")
		c.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
	}
}

// TestHouseSizes: longer files are hard to read.
func TestHouseSizes(t *testing.T) {
	sources(t, func(path string, b []byte) {
		limit := 0
		switch filepath.Ext(path) {
		case ".go", ".c", ".h":
			limit = 500
		case ".sh", ".txtar":
			limit = 60
		}
		if filepath.Base(path) == "Makefile" {
			limit = 80
		}
		if n := bytes.Count(b, []byte("\n")); limit > 0 && n > limit {
			t.Errorf("%s has %d lines, the limit is %d", path, n, limit)
		}
	})
}

// TestHouseGo: Go files are formatted, and every exported name of a package that others
// import has a comment.
func TestHouseGo(t *testing.T) {
	sources(t, func(path string, b []byte) {
		if filepath.Ext(path) != ".go" {
			return
		}
		if again, err := format.Source(b); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s is not formatted: gofmt -w %s", path, path)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, b, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "main" {
			return
		}
		for _, d := range f.Decls {
			undocumented(t, path, d)
		}
	})
}

func undocumented(t *testing.T, path string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || !slices.Contains([]string{"Error", "Unwrap", "String", "Read", "Write", "Close"}, d.Name.Name)) {
			t.Errorf("%s: %s has no comment", path, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					t.Errorf("%s: %s has no comment", path, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && s.Type == nil && // a typed constant is explained at its type
					d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s: %s has no comment", path, s.Names[0].Name)
				}
			}
		}
	}
}

// TestHouseWords: no notes about unfinished work, and no keys.
func TestHouseWords(t *testing.T) {
	banned := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b|-----BEGIN [A-Z ]*PRIVATE KEY`)
	sources(t, func(path string, b []byte) {
		if path == "cmd/house_test.go" || path == "LICENSE" || strings.HasPrefix(path, "testdata/vectors/") {
			return
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			if m := banned.Find(line); m != nil {
				t.Errorf("%s:%d: %s", path, i+1, m)
			}
		}
	})
}

// TestHouseLicence: each C source names its licences, and each BPF object gives the kernel
// one that it accepts.
func TestHouseLicence(t *testing.T) {
	const c = "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)"
	sources(t, func(path string, b []byte) {
		if ext := filepath.Ext(path); ext != ".c" && ext != ".h" {
			return
		}
		if head, _, _ := bytes.Cut(b, []byte("\n\n")); !bytes.Contains(head, []byte(c)) {
			t.Errorf("%s does not begin with %s", path, c)
		}
	})
	objects, err := filepath.Glob("../bpf/internal/objects/*_bpfel.o")
	if err != nil || len(objects) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	for _, o := range objects {
		if b, err := os.ReadFile(o); err != nil || !bytes.Contains(b, []byte("Dual BSD/GPL\x00")) {
			t.Errorf("%s has no licence for the kernel: %v", o, err)
		}
	}
	if b, err := os.ReadFile("../LICENSE"); err != nil || !bytes.Contains(b, []byte("Apache License")) {
		t.Errorf("LICENSE: %v", err)
	}
}

// TestHouseObjects: the committed BPF objects were made from the committed sources.
func TestHouseObjects(t *testing.T) {
	const digests = "internal/objects/objects.sha256"
	b, err := os.ReadFile("../bpf/" + digests)
	if err != nil {
		t.Fatal("make generate writes it: ", err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		listed[name] = true
		src, err := os.ReadFile("../bpf/" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		if have := sha256.Sum256(src); hex.EncodeToString(have[:]) != sum {
			t.Errorf("bpf/%s has changed since the objects were made: make generate", name)
		}
	}
	for _, pattern := range []string{"probes/*.c", "probes/*.h", "internal/objects/*_bpfel.o", "internal/objects/*_bpfel.go", "internal/fewlines/main.go"} {
		files, err := filepath.Glob("../bpf/" + pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("no bpf/%s: %v", pattern, err)
		}
		for _, f := range files {
			if !listed[filepath.ToSlash(strings.TrimPrefix(f, filepath.FromSlash("../bpf/")))] {
				t.Errorf("%s is not in bpf/%s: make generate", f, digests)
			}
		}
	}
}

// TestHouseShell: every shell script is POSIX sh, and shellcheck finds nothing.
func TestHouseShell(t *testing.T) {
	var scripts []string
	sources(t, func(path string, b []byte) {
		if filepath.Ext(path) != ".sh" {
			return
		}
		scripts = append(scripts, path)
		if !bytes.HasPrefix(b, []byte("#!/bin/sh\n")) && !bytes.HasPrefix(b, []byte("# shellcheck shell=sh\n")) {
			t.Errorf("%s is not POSIX sh", path)
		}
	})
	testkit.Programs(t, "the shell scripts", "shellcheck")
	c := exec.Command("shellcheck", append([]string{"-x", ".ci/run"}, scripts...)...)
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHouseSchemas: every JSON Schema is JSON and has its own id.
func TestHouseSchemas(t *testing.T) {
	files, _ := filepath.Glob("../schemas/*.schema.json")
	ids := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			ID string `json:"$id"`
		}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if other := ids[s.ID]; s.ID == "" || other != "" {
			t.Errorf("%s: $id %q, also of %q", f, s.ID, other)
		}
		ids[s.ID] = fmt.Sprint(f)
	}
}

// TestHouseTools: every tool is in the list that these tests use, and the other way round.
// The Makefile takes the folders as they are.
func TestHouseTools(t *testing.T) {
	folders, _ := filepath.Glob("runner-*")
	listed := slices.Sorted(slices.Values(tools))
	if !slices.Equal(folders, listed) {
		t.Errorf("the folders %q, the list %q", folders, listed)
	}
}
