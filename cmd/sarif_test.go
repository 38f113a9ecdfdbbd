package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The official JSON Schema of SARIF 2.1.0 with its errata, as a Go module has it. It is not ours to copy.
const (
	sarifModule = "github.com/securego/gosec/v2@v2.30.0"
	sarifFile   = "report/sarif/testdata/sarif-schema-2.1.0.json"
	sarifDigest = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
)

func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := exec.Command("go", "mod", "download", "-json", sarifModule)
	c.Dir = t.TempDir()
	b, err := c.Output()
	if err != nil {
		testkit.Skip(t, "SARIF against its official schema", sarifModule, ": ", err)
	}
	var module struct{ Dir string }
	testkit.Must(t, json.Unmarshal(b, &module))
	b = testkit.Read(t, filepath.Join(module.Dir, sarifFile))
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != sarifDigest {
		t.Fatalf("%s is %x", sarifFile, sum)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	testkit.Must(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	testkit.Must(t, compiler.AddResource("urn:sarif", doc))
	s, err := compiler.Compile("urn:sarif")
	testkit.Must(t, err)
	return s
}

// TestSARIFSchema: what the tools write as SARIF is SARIF by its official schema: with findings and without,
// with lines of a lock file and without, of comparisons that are inconclusive.
func TestSARIFSchema(t *testing.T) {
	s := sarifSchema(t)
	dir := t.TempDir()
	run := func(name string) string { return packed(t, name, filepath.Join(dir, name+".tar.gz")) }
	one, other, partial := run("kernel-only"), run("tool-denied-but-done"), run("ringbuf-pressure")
	lock := filepath.Join(dir, "a lock #1.json")
	if o := call(t, command(t, "runner-diff", "--write-lock", lock, one)); o.code != 0 {
		t.Fatal(o)
	}
	written := filepath.Join(dir, "lint.sarif")
	results := 0
	for _, c := range [][]string{
		{"runner-diff", "--format", "sarif", one, one}, {"runner-diff", "--format", "sarif", one, other}, {"runner-diff", "--format", "sarif", one, partial},
		{"runner-diff", "--format", "sarif", "--lock", lock, one}, {"runner-diff", "--format", "sarif", "--lock", lock, other},
		{"runner-lint", "--force", "--sarif", written, one},
		{"runner-lint", "--force", "--sarif", written, "--pack", "agent-baseline", "--pack", "record-keeping", "--pack", "hermetic-replay", "--pack", "cicd-starter", partial},
	} {
		o := call(t, command(t, c[0], c[1:]...))
		if o.code != 0 && o.code != 1 && o.code != 4 {
			t.Fatalf("%q: %v", c, o)
		}
		b := []byte(o.stdout)
		if c[0] == "runner-lint" {
			b = testkit.Read(t, written)
			testkit.Must(t, os.Remove(written))
		}
		results += bytes.Count(b, []byte(`"ruleIndex"`))
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		testkit.Must(t, err)
		if err := s.Validate(v); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
	if results == 0 {
		t.Error("no document has a finding")
	}
}
