package schemas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// literals calls f for every string of the Go sources that is neither a tag nor an
// import, tests and generated files aside.
func literals(t *testing.T, f func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && (n == ".git" || n == "bin" || n == "testdata" || n == "node_modules" || n == "objects") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				n.Tag = nil
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					if s, err := strconv.Unquote(n.Value); err == nil {
						f(filepath.ToSlash(path), s)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// vocabulary is every word of the tables that cannot be anything else: a plain
// English word such as read or end says nothing about what a string is.
func vocabulary() map[string]bool {
	words := map[string]bool{}
	add := func(list ...string) {
		for _, w := range list {
			if strings.ContainsAny(w, "_.:/") {
				words[w] = true
			}
		}
	}
	for _, c := range schemas.Counters {
		add(c.Name)
	}
	for _, f := range schemas.Facts {
		add(f.Name)
		add(f.Values...)
	}
	for _, n := range schemas.Notes {
		add(n.Code)
		for _, f := range n.Fields {
			add(f.Key)
		}
	}
	for _, r := range schemas.Reasons {
		add(r.Code)
	}
	for _, k := range schemas.Ambiguities() {
		add(k.Code)
		add(k.Whys...)
	}
	for _, f := range schemas.Filters {
		add(f.ID)
	}
	for _, o := range schemas.Outcomes {
		add(o.Name)
	}
	for _, l := range schemas.LogTypes {
		add(l.Type)
	}
	for _, e := range schemas.EventTypes {
		add(e.Name, e.Verb)
	}
	for _, o := range schemas.Operations {
		add(o.Name)
	}
	for _, f := range schemas.Forms() {
		add(f.Schema, f.Member, f.File)
	}
	for _, s := range schemas.Streams() {
		add(s.Name)
	}
	add(schemas.EnvKeys()...)
	add(schemas.SurfaceSets[:]...)
	return words
}

// shaped are the forms of words of the vocabulary: whatever looks like one must be one.
var shaped = regexp.MustCompile(`^(s[0-9]_[a-z_]+|[PMS]_[A-Z_]{3,}|ASSAY_RUNNER_[A-Z_]+|(assay\.)?runner\.[a-z_]+\.v[0-9]+|(tree|twin|user)\.[a-z_]+)$`)

// TestDefinedOnce: a word of the vocabulary is written in one place, which is in this
// package. Whoever needs it takes it from there.
func TestDefinedOnce(t *testing.T) {
	words := vocabulary()
	places := map[string][]string{}
	literals(t, func(file, text string) {
		word := strings.TrimSuffix(text, ":")
		if shaped.MatchString(word) && !words[word] {
			t.Errorf("%s has %q, which no table has", file, text)
		}
		if words[word] && !slices.Contains(exempt[word], file) {
			places[word] = append(places[word], file)
		}
	})
	for word, files := range places {
		if len(files) > 1 || !strings.HasPrefix(files[0], "../schemas/") {
			t.Errorf("%q is written in %s, expected once, in schemas", word, strings.Join(files, ", "))
		}
	}
}

// exempt are places where a word of the vocabulary is another word with the same
// spelling: the marks of raw events, a fact, and a value of the client's protocol.
var exempt = map[string][]string{
	"input_required": {"../cmd/runner-policy/from_server.go"},
	"io_uring":       {"../schemas/raw_event.go"},
	"network_rules":  {"../schemas/facts.go"},
	"path_fault":     {"../schemas/raw_event.go"},
	"path_truncated": {"../schemas/raw_event.go"},
	"user_fault":     {"../schemas/raw_event.go"},
	"user_truncated": {"../schemas/raw_event.go"},
}
