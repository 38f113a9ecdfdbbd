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
	do("runner-pack --pack cicd-starter -o run.tar.gz \"$1\"; runner-attest --generate-key ci.pem; runner-attest --key ci.pem run.tar.gz >run.intoto.jsonl", joined)
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
	// Who has the key can sign what is not so; it is refused all the same. The digest of the closure is that of
	// what runner-lint writes.
	for value, lie := range map[string]string{
		"predicate.closure.digest":                 `.predicate.closure.digest="sha256:" + "0" * 64`,
		"predicate.closure.score":                  `.predicate.closure.score=1`,
		"predicate.signals.file_contents":          `.predicate.signals.file_contents="captured"`,
		"predicate.packs has 2 values":             `.predicate.packs+=.predicate.packs`,
		"predicate.packs[0].version":               `.predicate.packs[0].version="9.0.0"`,
		"predicate.observation_health.notes has 0": `.predicate.observation_health.notes=[]`,
		"predicate.exit_code":                      `.predicate.exit_code=3`,
		"about something else":                     `.subject[].digest.sha256="0" * 64`,
		"of which nothing can be compared":         `.predicateType="https://slsa.dev/provenance/v1"`,
	} {
		if out := do(signLie, lie); !strings.Contains(out, value) || !strings.Contains(out, "exit 1") {
			t.Errorf("%s: %s", lie, out)
		}
	}
	if out := do(`runner-lint --closure c.json run.tar.gz >/dev/null; jq -cj .closure c.json | sha256sum`); !strings.Contains(statement, `"digest":"sha256:`+strings.Fields(out)[0]+`"`) {
		t.Errorf("runner-lint gives the closure %s", out)
	}
}

// signLie changes the body of the statement, signs it with openssl, and lets runner-verify judge it.
const signLie = `
jq -cj "$1" body >lie
{ printf 'DSSEv1 %d %s %d ' 28 application/vnd.in-toto+json "$(wc -c <lie)"; cat lie; } >signed
openssl pkeyutl -sign -inkey ci.pem -rawin -in signed -out sig
printf '{"payloadType":"application/vnd.in-toto+json","payload":"%s","signatures":[{"sig":"%s"}]}\n' "$(base64 -w0 lie)" "$(base64 -w0 sig)" >lie.jsonl
runner-verify --attestation lie.jsonl --public-key ci.pem.pub run.tar.gz 2>&1 || echo "exit $?"
`
