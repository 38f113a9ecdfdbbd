package cmd_test

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKindsTable: the workload kinds makes every call of the table of system calls, on
// each architecture, so that a call cannot be recorded and never be tested. The ends of forks
// are in the table for another reason.
func TestKindsTable(t *testing.T) {
	table, err := os.ReadFile("../bpf/probes/table.h")
	if err != nil {
		t.Fatal(err)
	}
	for arch, prefix := range map[string]string{"amd64": "X86_64_", "arm64": "ARM64_"} {
		made := callsIn(t, "../testdata/workload/kinds", arch)
		rows := rowsOf(string(table), prefix)
		if len(rows) < 40 {
			t.Errorf("%s: only %d calls in the table: correct this test", arch, len(rows))
		}
		for _, row := range rows {
			if !slices.Contains(made, row) {
				t.Errorf("%s: no workload makes the call %s", arch, row)
			}
		}
	}
}

// rowsOf are the calls with lines of one way of calling: those of its own rows, and of the macros
// that its table names.
func rowsOf(table, prefix string) (calls []string) {
	row := regexp.MustCompile(`\[(\w+?)_?(?:##_)?(\w+)\] = (?:D\(\w+, (?:OPEN|EXEC|PATH|SOCK),|S\()`)
	for part := range strings.SplitSeq(table, "\n\n") {
		macro, _, _ := strings.Cut(strings.TrimPrefix(part[max(0, strings.Index(part, "#define ")):], "#define "), "(")
		if !strings.Contains(part, "A##_") || !strings.Contains(table, macro+"("+strings.TrimSuffix(prefix, "_")+")") {
			continue
		}
		for _, m := range row.FindAllStringSubmatch(part, -1) {
			calls = append(calls, m[2])
		}
	}
	return calls
}

// callsIn are the names of the system calls that the files for one architecture make.
func callsIn(t *testing.T, dir, arch string) (calls []string) {
	t.Helper()
	wrappers := map[string]string{"OpenByHandleAt": "OPEN_BY_HANDLE_AT", "ForkExec": "EXECVE"}
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files in ", dir, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !builtFor(t, f, file, arch) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if name, ok := strings.CutPrefix(s.Sel.Name, "SYS_"); ok {
					calls = append(calls, name)
				} else if name := wrappers[s.Sel.Name]; name != "" {
					calls = append(calls, name)
				}
			}
			return true
		})
	}
	return calls
}

func builtFor(t *testing.T, f *ast.File, name, arch string) bool {
	t.Helper()
	for _, other := range []string{"amd64", "arm64"} {
		if strings.HasSuffix(name, "_"+other+".go") && other != arch {
			return false
		}
	}
	for _, g := range f.Comments {
		for _, c := range g.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			e, err := constraint.Parse(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			return e.Eval(func(tag string) bool { return tag == "linux" || tag == arch })
		}
	}
	return true
}
