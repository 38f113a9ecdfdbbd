//go:build linux

package cmd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// harSchemas is the npm package with the JSON Schemas of the HTTP Archive format 1.2, and its digest.
const (
	harSchemas = "har-schema@2.0.0"
	harDigest  = "Oqluz6zhGX8cyRaTQlFMPw80bSJVG2x/cFb8ZPhUILGgHka9SsokCCOQgpveePerqidZOrT14ipqfJb7ILcW5Q=="
)

// harSchema compiles them.
func harSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	testkit.Programs(t, "the schema of HTTP archives from npm", "npm")
	dir := t.TempDir()
	fetch := exec.Command("npm", "pack", "--silent", harSchemas, "--pack-destination", dir)
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		testkit.Skip(t, "HTTP archives by their schema", err, string(out))
	}
	b := testkit.Read(t, filepath.Join(dir, "har-schema-2.0.0.tgz"))
	if sum := sha512.Sum512(b); base64.StdEncoding.EncodeToString(sum[:]) != harDigest {
		t.Fatal("npm gives another package")
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		if !strings.HasPrefix(h.Name, "package/lib/") || path.Ext(h.Name) != ".json" {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(r)
		testkit.Must(t, err)
		testkit.Must(t, c.AddResource("http://har.test/"+path.Base(h.Name), doc))
	}
	s, err := c.Compile("http://har.test/har.json")
	testkit.Must(t, err)
	return s
}

// TestHARSchema: what runner-net har prints is an HTTP archive by the schema that others wrote.
func TestHARSchema(t *testing.T) {
	testkit.Programs(t, "requests of all kinds", "curl")
	schema := harSchema(t)
	c := callers(t)[0]
	s := serve(t, c)
	out := filepath.Join(c.dir(t), "r")
	script := `for u in count gzip events cut big; do curl -s -o /dev/null http://plain.test/$u; done; curl -s -o /dev/null -H 'Cookie: a=b' -d 'x=1&y=2' 'https://secure.test/echo?q=a+b&q=c'; curl -s -o /dev/null --data-binary @/bin/true http://plain.test/echo; curl -s -o /dev/null http://other.test/; true`
	if o := call(t, c.net(t, slices.Concat([]string{"record", "-o", out}, s.flags, []string{"--", "sh", "-c", script})...)); o.code != 0 {
		t.Fatal(o)
	}
	har := call(t, command(t, "runner-net", "har", out))
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(har.stdout))
	testkit.Must(t, err)
	if err := schema.Validate(v); har.code != 0 || err != nil {
		t.Errorf("%d: %v", har.code, err)
	}
	broken, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(har.stdout, `"httpVersion"`, `"httpversion"`, 1)))
	testkit.Must(t, err)
	if schema.Validate(broken) == nil {
		t.Error("the schema takes anything")
	}
}
