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
