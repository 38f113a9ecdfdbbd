package policy

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// each calls f for every policy file in a folder of testdata.
func each(t *testing.T, folder string, f func(t *testing.T, name string, b []byte)) {
	t.Helper()
	files, _ := filepath.Glob("testdata/" + folder + "/*")
	n := 0
	for _, file := range files {
		if filepath.Ext(file) == ".txt" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) { f(t, filepath.Base(file), b) })
	}
	if n == 0 {
		t.Fatalf("no files in testdata/%s", folder)
	}
}

// What is wrong with a bad file is said in exactly these words, all of it at once.
func TestMessages(t *testing.T) {
	for _, folder := range []string{"form", "beyond", "text"} {
		each(t, folder, func(t *testing.T, name string, b []byte) {
			p, err := Parse(name, b)
			var problems *strict.Problems
			if !errors.As(err, &problems) || p != nil {
				t.Fatalf("Parse gives %v, %v", p, err)
			}
			for _, x := range problems.List {
				if x.File != name || x.Line < 1 || x.Column < 1 || x.What == "" {
					t.Errorf("incomplete: %+v", x)
				}
			}
			testkit.Golden(t, "testdata/"+folder+"/"+name+".txt", []byte(err.Error()+"\n"))
		})
	}
}

// What a good file means is said in exactly these words.
func TestExplain(t *testing.T) {
	each(t, "good", func(t *testing.T, name string, b []byte) {
		p, err := Parse(name, b)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		p.Explain(&out)
		testkit.Golden(t, "testdata/good/"+name+".txt", []byte(out.String()))
		n, hasNetwork := p.Network()
		f, hasFiles := p.Files()
		if hasNetwork && n.Check() != nil || hasFiles && f.Check() != nil {
			t.Errorf("the kernel's side would refuse it: %v, %v", n.Check(), f.Check())
		}
	})
}

// schema compiles the JSON Schema of policy files.
func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	f, ok := schemas.FormOf(schemas.SchemaPolicyFile)
	if !ok {
		t.Fatal("policy files have no form")
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(f.JSONSchema())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(f.File, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(f.File)
}

// asJSON is what a policy file says, as the validator wants it.
func asJSON(t testing.TB, b []byte) any {
	t.Helper()
	var v any
	if json.Unmarshal(b, &v) != nil {
		if err := yaml.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	x, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The JSON Schema and Parse agree except for what a schema cannot say.
func TestSchemaAgrees(t *testing.T) {
	f, _ := schemas.FormOf(schemas.SchemaPolicyFile)
	s := schema(t)
	takes := func(t *testing.T, b []byte) error { return s.Validate(asJSON(t, b)) }
	for folder, want := range map[string]bool{"good": true, "beyond": true, "form": false} {
		each(t, folder, func(t *testing.T, name string, b []byte) {
			if err := takes(t, b); (err == nil) != want {
				t.Errorf("the schema says %v", err)
			}
		})
	}
	// Every faulty rule is faulty for the schema by itself, so that one does not hide another.
	for _, file := range []string{"rules", "conditions", "network", "files", "exec"} {
		b, err := os.ReadFile("testdata/form/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for name, one := range single(t, b) {
			_, perr := Parse(name, one)
			if serr := takes(t, one); (serr == nil) != (perr == nil) {
				t.Errorf("%s\nParse says: %v\nthe schema says: %v", one, perr, serr)
			}
		}
	}
	var examples struct{ Examples []json.RawMessage }
	if err := json.Unmarshal(f.JSONSchema(), &examples); err != nil || len(examples.Examples) == 0 {
		t.Fatal(err)
	}
	for _, ex := range examples.Examples {
		if _, err := Parse("example.json", ex); err != nil {
			t.Error(err)
		}
	}
}

// single makes files of a file's rules, conditions and list elements, one in each.
func single(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	var v map[string]any
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	var visit func(list []any, emit func(item any))
	visit = func(list []any, emit func(any)) {
		for _, item := range list {
			emit(item)
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			for k, x := range m {
				inner, ok := x.([]any)
				if !ok || len(inner) < 2 {
					continue
				}
				visit(inner, func(one any) {
					alone := map[string]any{}
					for k2, x2 := range m {
						alone[k2] = x2
					}
					alone[k] = []any{one}
					emit(alone)
				})
			}
		}
	}
	top := func(section map[string]any, wrap func(map[string]any) map[string]any) {
		list, _ := section["rules"].([]any)
		visit(list, func(item any) {
			file := wrap(map[string]any{"rules": []any{item}})
			file["schema"] = schemas.SchemaPolicyFile
			b, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			out["one-"+string(rune('a'+len(out)%26))+".json"+string(b)] = b
		})
	}
	top(v, func(m map[string]any) map[string]any { return m })
	for _, name := range []string{"network", "files", "exec"} {
		if n, ok := v[name].(map[string]any); ok {
			top(n, func(m map[string]any) map[string]any { return map[string]any{name: m} })
		}
	}
	return out
}

func TestDigest(t *testing.T) {
	b := []byte("schema: runner.policy.v0\n")
	p, err := Parse("p.yaml", b)
	if err != nil {
		t.Fatal(err)
	}
	// printf 'schema: runner.policy.v0\n' | sha256sum
	const want = "sha256:32dde326705fe2c7cea0b2a4602a71de75e2aea648c3345557b2479a55b7eced"
	if p.Digest != want {
		t.Errorf("digest is %s", p.Digest)
	}
	q, err := Parse("p.yaml", append(b, '\n'))
	if err != nil || q.Digest == p.Digest {
		t.Errorf("another file has the same digest: %v", err)
	}
	if p.HasToolRules {
		t.Error("a file without default and rules says nothing of tools")
	}
	if _, ok := p.Network(); ok {
		t.Error("a file without network section has network rules")
	}
}

func TestOpen(t *testing.T) {
	p, err := Open("testdata/good/network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := p.Network(); n.PolicyDigest != p.Digest {
		t.Error("the rules for the kernel have another digest")
	}
	var problems *strict.Problems
	var coded *tool.Error
	if _, err := Open("testdata/form/schema.yaml"); !errors.As(err, &problems) || !errors.As(err, &coded) || coded.Code != tool.ExitInput {
		t.Errorf("Open gives %v", err)
	}
	for name, want := range map[string]string{"testdata/none.yaml": "there is no policy file testdata/none.yaml", "testdata": "cannot read testdata: "} {
		if _, err := Open(name); err == nil || errors.As(err, &problems) || !errors.As(err, &coded) || coded.Code != tool.ExitIO || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Open of %s gives %v", name, err)
		}
	}
	if _, err := Parse("big", make([]byte, strict.MaxFile+1)); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file gives %v", err)
	}
}

// A file with very many problems names the first of them and says that there are more.
func TestManyProblems(t *testing.T) {
	_, err := Parse("p.yaml", []byte("schema: runner.policy.v0\nrules:\n"+strings.Repeat("  - {}\n", 500)))
	var problems *strict.Problems
	if !errors.As(err, &problems) || len(problems.List) != strict.MaxProblems || !problems.Cut {
		t.Fatalf("have %d problems", len(problems.List))
	}
	if !strings.HasSuffix(err.Error(), "p.yaml: more than 100 problems") {
		t.Error(err)
	}
}

// The network section counts addresses, not rules.
func TestTooManyAddresses(t *testing.T) {
	text := func(n int) []byte {
		return []byte("schema: runner.policy.v0\nnetwork: {rules: [{id: a, deny: [" +
			strings.Repeat("10.0.0.1, ", n-1) + "10.0.0.1]}]}\n")
	}
	if _, err := Parse("p", text(schemas.MaxNetworkRules)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p", text(schemas.MaxNetworkRules+1)); err == nil || !strings.Contains(err.Error(), "more than 256 addresses") {
		t.Errorf("one more gives %v", err)
	}
}

// The sections files and exec count their paths together.
func TestTooManyPaths(t *testing.T) {
	text := func(n int) []byte {
		return []byte("schema: runner.policy.v0\nfiles: {rules: [{id: a, deny: /a}]}\nexec: {rules: [{id: b, deny: [" + strings.Repeat("/b, ", n-2) + "/b]}]}\n")
	}
	if _, err := Parse("p", text(schemas.MaxFilePaths)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p", text(schemas.MaxFilePaths+1)); err == nil || strings.Count(err.Error(), "more than 128 paths in all") != 1 {
		t.Errorf("one more gives %v", err)
	}
}

// Rules are for the places where links lead and for the names of the links: what does not
// exist stays as it is, and what cannot be known is an error.
func TestResolveFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, os.MkdirAll(dir+"/real/sub", 0o755))
	testkit.Must(t, os.Symlink("real", dir+"/link"))
	testkit.Must(t, os.Symlink("loop", dir+"/loop"))
	p := rules(t, "files: {rules: [{id: a, deny: ["+dir+"/link/sub/new/x, "+dir+"/real]}, {id: b, allow: "+dir+"/none/y}]}\nexec: {rules: [{id: c, deny: "+dir+"/link}]}\n")
	f, _ := p.Files()
	got, err := ResolveFiles(f)
	testkit.Must(t, err)
	var list []string
	for _, r := range got.Rules {
		list = append(list, r.ID+" "+strings.TrimPrefix(r.Path, dir))
	}
	if want := "a /real/sub/new/x, a /link/sub/new/x, a /real, b /none/y, c /real, c /link"; strings.Join(list, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(list, ", "), want)
	}
	for _, bad := range []string{dir + "/loop/x", "/proc/self/root/x"} {
		f, _ := rules(t, "exec: {rules: [{id: c, deny: "+bad+"}]}\n").Files()
		if _, err := ResolveFiles(f); err == nil || !strings.Contains(err.Error(), "rule c: path "+bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The example of the specification is a policy.
func TestSpecificationExample(t *testing.T) {
	b, err := os.ReadFile("../../../schemas/POLICY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```yaml\nschema: runner.policy.v0\n")
	example, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("the specification shows no policy file")
	}
	p := rules(t, example)
	n, ok := p.Network()
	f, ok2 := p.Files()
	if !ok || len(n.Rules) != 2 || len(p.rules) != 1 || !ok2 || f.Numbers() != 3 {
		t.Errorf("it says %+v", p)
	}
}
