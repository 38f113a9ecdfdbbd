package cmd_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHouseGolden: `make golden` rewrites the golden files of every package that has some.
func TestHouseGolden(t *testing.T) {
	o := call(t, command(t, "sh", "../scripts/golden.sh", "--list"))
	if o.code != 0 {
		t.Fatal(o)
	}
	var want []string
	sources(t, func(file string, b []byte) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && rewritesGolden(c) {
				want = append(want, path.Dir(filepath.ToSlash(file)))
			}
			return true
		})
	})
	slices.Sort(want)
	want = slices.Compact(want)
	if have := strings.Fields(o.stdout); !slices.Equal(have, want) || len(want) == 0 {
		t.Errorf("make golden rewrites the golden files of %q\nthere are some in %q", have, want)
	}
}

// rewritesGolden: the call defines the flag -update, or uses the one of package testkit.
func rewritesGolden(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch x, _ := s.X.(*ast.Ident); {
	case x == nil || len(c.Args) == 0 && s.Sel.Name != "Update":
		return false
	case x.Name == "flag":
		name, ok := c.Args[0].(*ast.BasicLit)
		return ok && name.Value == `"update"`
	case x.Name == "testkit":
		return s.Sel.Name == "Update" || strings.HasPrefix(s.Sel.Name, "Golden")
	}
	return false
}

// TestHouseCorpora: testdata/README.md names each package whose tests read data outside of
// the repository.
func TestHouseCorpora(t *testing.T) {
	readme, err := os.ReadFile("../testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := bytes.Cut(readme, []byte("## Data outside of the repository"))
	outside := regexp.MustCompile(`testkit\.[C]orpora\(`) // [C]: not this file
	found := 0
	sources(t, func(file string, b []byte) {
		if strings.HasSuffix(file, "_test.go") && outside.Match(b) {
			found++
			if pkg := path.Dir(filepath.ToSlash(file)); !bytes.Contains(table, []byte("`"+pkg+"`")) {
				t.Errorf("testdata/README.md does not say that %s reads data outside of the repository", pkg)
			}
		}
	})
	if found == 0 {
		t.Error("no test reads data outside of the repository: correct testdata/README.md and this test")
	}
}

// TestHouseMoreTests: the tests that make test leaves to make test-more are tests of today.
func TestHouseMoreTests(t *testing.T) {
	list, err := os.ReadFile("../scripts/lib/more-tests")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	sources(t, func(file string, b []byte) {
		if strings.HasSuffix(file, "_test.go") {
			tests = append(tests, b...)
		}
	})
	named := regexp.MustCompile(`(?m)^(Test\w+) +\S.*$`).FindAllSubmatch(list, -1)
	for _, name := range named {
		if !bytes.Contains(tests, []byte("\nfunc "+string(name[1])+"(t *testing.T)")) {
			t.Errorf("scripts/lib/more-tests has %s, which is no test", name[1])
		}
	}
	if lines := bytes.Count(list, []byte("\n")); len(named) == 0 || len(named)+2 != lines {
		t.Errorf("scripts/lib/more-tests has %d lines, %d of them name a test and say why it is there, 2 are the comment", lines, len(named))
	}
}

// TestHouseImportable: a module elsewhere can import every package of the contract by the
// path that go.mod gives, with what is in the module cache and nothing from a network.
func TestHouseImportable(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list := command(t, "go", "list", "-f", `{{.ImportPath}} {{.Module.Path}} {{.Module.GoVersion}}`, "./schemas/...")
	list.Dir = root
	o := call(t, list)
	if o.code != 0 {
		t.Fatal(o)
	}
	var imports, module, version string
	for l := range strings.Lines(o.stdout) {
		var name string
		if _, err := fmt.Sscan(l, &name, &module, &version); err != nil {
			t.Fatal(l, err)
		}
		imports += fmt.Sprintf("import _ %q\n", name)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/elsewhere\n\ngo %s\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", version, module, module, root),
		"go.sum":  string(sums),
		"main.go": "package main\n\n" + imports + "\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "build", "-o", os.DevNull, ".")
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s%s", err, out, imports)
	}
}
