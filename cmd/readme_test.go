package cmd_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestGoldenReadme: what README.md shows of a recorded run is what runner-show prints of its
// archive. A marker names the run, and the word with which the part begins that is shown, up to
// the next empty line; … is for what is left out. -update rewrites it.
func TestGoldenReadme(t *testing.T) {
	const path = "../README.md"
	text := string(testkit.Read(t, path))
	marked := regexp.MustCompile(`(?s)(<!-- shown: (\S+) (\S+) -->\n).*?(<!-- end -->\n)`)
	found := 0
	fresh := marked.ReplaceAllStringFunc(text, func(part string) string {
		found++
		m := marked.FindStringSubmatch(part)
		return m[1] + shown(t, m[2], m[3]) + m[4]
	})
	if found != 2 {
		t.Errorf("%s shows %d recorded runs", path, found)
	}
	testkit.Golden(t, path, []byte(fresh))
}

// TestReadmePolicies: each policy file that the README shows is one, as printed; the first decides what the README says
// of it. A first guess of a new user is answered with one that is as small.
func TestReadmePolicies(t *testing.T) {
	text, dir := string(testkit.Read(t, "../README.md")), t.TempDir()
	check := func(policy string) outcome {
		testkit.Write(t, filepath.Join(dir, "policy.yaml"), []byte(policy))
		c := command(t, "runner-policy", "--check", "policy.yaml")
		c.Dir = dir
		return call(t, c)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md shows %d policies", len(blocks))
	}
	for i, b := range blocks {
		if o := check(b[1]); o.code != 0 || i == 0 && !strings.Contains(o.stdout, "without one a call is denied\n  1. read: allow read_*\n") {
			t.Errorf("%s%v", b[1], o)
		}
	}
	o := check("schema: runner.policy.v0\ntools:\n  read_file: allow\n")
	_, rest, _ := strings.Cut(o.stderr, "printf '")
	hint, _, _ := strings.Cut(rest, "'")
	if o.code != 3 || !strings.Contains(o.stderr, "; type rules:") || strings.ReplaceAll(hint, `\n`, "\n") != blocks[0][1] {
		t.Error(o)
	}
}

func shown(t *testing.T, run, word string) string {
	t.Helper()
	dir := t.TempDir()
	if o := call(t, command(t, "runner-pack", "-o", filepath.Join(dir, "run.tar.gz"), filepath.Join("../testdata/runs", run, "3-joined.ndjson"))); o.code != 0 {
		t.Fatal(o)
	}
	c := command(t, "runner-show", "run.tar.gz")
	c.Dir = dir
	o := call(t, c)
	if o.code != 0 {
		t.Fatal(o)
	}
	head, rest, _ := strings.Cut(o.stdout, "\n")
	_, part, ok := strings.Cut(rest, "\n"+word)
	if !ok {
		t.Fatalf("no line begins with %s: %v", word, o)
	}
	part, _, _ = strings.Cut(part, "\n\n")
	return codeBlock("text", "$ runner-show run.tar.gz\n"+head+"\n…\n"+word+part+"\n…")
}
