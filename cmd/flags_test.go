package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// flagsOf are the flags that a tool's source makes: the names in composite literals of
// cli's flag types. A name made from a layer's is one flag for each layer with a log.
func flagsOf(t *testing.T, tool string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(tool + "/*.go")
	testkit.Must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		testkit.Must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && isFlag(c.Type) {
				for _, e := range c.Elts {
					kv := e.(*ast.KeyValueExpr)
					if key := kv.Key.(*ast.Ident).Name; key == "Name" || key == "Aliases" {
						names = append(names, namesIn(t, file, kv.Value)...)
					}
				}
			}
			return true
		})
	}
	return names
}

func isFlag(typ ast.Expr) bool {
	s, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "cli" && strings.HasSuffix(s.Sel.Name, "Flag")
}

func namesIn(t *testing.T, file string, e ast.Expr) (names []string) {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		name, err := strconv.Unquote(e.Value)
		testkit.Must(t, err)
		return []string{name}
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			names = append(names, namesIn(t, file, x)...)
		}
		return names
	case *ast.SelectorExpr: // the name of the layer at hand
		for _, l := range schemas.LogLayers() {
			names = append(names, l.Name)
		}
		return names
	case *ast.BinaryExpr:
		for _, name := range namesIn(t, file, e.X) {
			for _, suffix := range namesIn(t, file, e.Y) {
				names = append(names, name+suffix)
			}
		}
		return names
	}
	t.Fatalf("%s: the name of a flag is made in a way that this test does not read", file)
	return nil
}

// inHelp finds flags in a help text, ofOther those that it names of other tools.
var (
	inHelp  = regexp.MustCompile(`(?:^|[\s(,;])--?([a-z][a-z0-9-]*)`)
	ofOther = regexp.MustCompile(`(?:runner-)?(?:` + strings.ReplaceAll(strings.Join(tools, "|"), "runner-", "") + `) --?[a-z][a-z0-9-]*`)
)

// TestFlagsAndHelp: every flag of every tool is in its help, and every flag in its help is
// one that it takes.
func TestFlagsAndHelp(t *testing.T) {
	for _, tool := range tools {
		o := call(t, command(t, tool, "--help"))
		if o.code != 0 || o.stderr != "" {
			t.Fatalf("%s --help: %s", tool, o)
		}
		_, text, ok := strings.Cut(o.stdout, "\nFlags:\n")
		text, _, ok2 := strings.Cut(text, "\nExamples:\n")
		if !ok || !ok2 {
			t.Fatalf("the help of %s has no part Flags before a part Examples:\n%s", tool, o.stdout)
		}
		flags := append(flagsOf(t, tool), "help", "h", "version")
		if len(flags) < 4 {
			t.Fatalf("%s: only the flags %q were found", tool, flags)
		}
		var told []string
		for _, m := range inHelp.FindAllStringSubmatch(ofOther.ReplaceAllString(text, ""), -1) {
			told = append(told, m[1])
		}
		for _, f := range flags {
			if !slices.Contains(told, f) {
				t.Errorf("%s --%s is not in its help", tool, f)
			}
		}
		for _, f := range told {
			if !slices.Contains(flags, f) {
				t.Errorf("the help of %s has --%s, which it does not take", tool, f)
			}
		}
	}
}
