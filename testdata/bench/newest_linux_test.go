package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/bench/emulated"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

func TestKernelRows(t *testing.T) {
	all := kernelRows()
	if sorted := slices.Sorted(slices.Values(all)); len(slices.Compact(sorted)) != len(all) {
		t.Errorf("a name is there twice: %q", all)
	}
	some := emulatedRows()
	for _, what := range []string{rowTrue, rowBeside(1, "shared"), rowOutside(outsideCall, 30, "shared"), rowOutside(outsideOpen, 1, "own"), rowMany(4), rowGrep()} {
		if !slices.Contains(some, what) {
			t.Errorf("%q is not measured on an emulated machine", what)
		}
	}
	if what := rowOutside(outsideCall, 30, "own"); slices.Contains(some, what) || !slices.Contains(all, what) {
		t.Errorf("%q: %q", what, some)
	}
}

// TestNamesUsed: each name of names.go is that of a row that some section adds, so a value that is recorded under it has its place.
func TestNamesUsed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	testkit.Must(t, err)
	named, used := map[string]bool{}, map[string]bool{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		testkit.Must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			switch {
			case !ok || !strings.HasPrefix(id.Name, "row") || id.Name == "row":
			case path == "names.go":
				named[id.Name] = true
			case !strings.HasSuffix(path, "_test.go"):
				used[id.Name] = true
			}
			return true
		})
	}
	if len(named) == 0 {
		t.Fatal("no name was found")
	}
	for name := range named {
		if !used[name] {
			t.Errorf("no section adds a row %s", name)
		}
	}
}

func TestWithNewest(t *testing.T) {
	r := emulated.Result{Kernel: "7.3", Rows: []emulated.Row{{What: "a", Value: "1.30"}}}
	for _, c := range []struct {
		what   string
		kernel bool
		want   string
	}{{"a", true, "1.30"}, {"a", false, "1.30"}, {"b", true, ""}, {"b", false, same}} {
		rows := []row{{what: c.what}}
		if withNewest(rows, c.kernel, r); rows[0].newest != c.want {
			t.Errorf("%+v: %q", c, rows[0].newest)
		}
	}
	tab := table{newest: newestHead(r)}
	tab.add(row{what: "a", measured: "2ms", newest: "1.30", verdict: "met"})
	if text := tab.String(); !strings.Contains(text, "on 7.3") || !strings.Contains(text, "1.30") {
		t.Error(text)
	}
}

// TestWriteLines: a guest records only what it measured whole, and a row that it could not measure is a failure.
func TestWriteLines(t *testing.T) {
	var out bytes.Buffer
	testkit.Must(t, writeLines(&out, []row{
		{what: "  a", ratio: "1.50", value: "1.40", of: "CPU time", spread: "1.50..1.50", between: "1.30..1.50", verdict: "missed"},
		{what: "a peer", ratio: "9"}, {what: "b", value: "0.10", verdict: incomplete, note: "3 dropped"}, {what: "c", note: "why", failed: true},
	}))
	var got []string
	for l := range bytes.Lines(out.Bytes()) {
		g, err := guest.Parse(l)
		testkit.Must(t, err)
		s := g.Check + ": " + string(g.Result) + " " + g.Detail
		if g.Cost != nil {
			s += "; " + strings.Join([]string{g.Cost.What, g.Cost.Value, g.Cost.Of, g.Cost.Spread}, "|")
		}
		got = append(got, s)
	}
	want := []string{"a: ok 1.40 CPU time;   a|1.40|CPU time|1.30..1.50", "b: failed " + incomplete + " 3 dropped", "c: failed why"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}
