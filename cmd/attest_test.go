package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The commands of schemas/ATTESTATION.md check a signature with jq and openssl, without our code.
func TestSignatureByHand(t *testing.T) {
	for _, program := range []string{"jq", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			testkit.Missing(t, program+" is not installed: no other program checked a signature")
		}
	}
	b, err := os.ReadFile("../schemas/ATTESTATION.md")
	testkit.Must(t, err)
	_, text, _ := strings.Cut(string(b), "```sh\n")
	commands, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("the specification shows no commands")
	}
	dir := t.TempDir()
	do := func(script string, args ...string) string {
		t.Helper()
		c := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	joined, err := filepath.Abs("../testdata/runs/kernel-only/3-joined.ndjson")
	testkit.Must(t, err)
	do("runner-pack -o run.tar.gz \"$1\"; runner-attest --generate-key ci.pem; runner-attest --key ci.pem run.tar.gz >run.intoto.jsonl", joined)
	if out := do(commands); !strings.Contains(out, "Verified Successfully") {
		t.Errorf("%s", out)
	}
	// What is in the statement is what other programs measure.
	body := do("cat body; sha256sum run.tar.gz; gunzip -c run.tar.gz | sha256sum; gunzip -c run.tar.gz | tar xOf - manifest.json | sha256sum")
	statement, sums, _ := strings.Cut(body, "}}}")
	for _, line := range strings.Split(strings.Trim(sums, "}\n"), "\n") {
		if sum := strings.Fields(line)[0]; !strings.Contains(statement, `"sha256":"`+sum+`"`) {
			t.Errorf("no subject has %s", line)
		}
	}
}
