package cmd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// documents are the texts of the specification, by file name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, _ := filepath.Glob("../schemas/*.md")
	texts := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	if len(texts) < 6 {
		t.Fatalf("the specification has %d documents", len(texts))
	}
	return texts
}

// TestSpecificationExamples: the worked examples are recorded runs, whole, as the
// tools wrote them and take them. A marker names what follows it: a file of testdata,
// of which schema strings can select the lines; `log` and a collected log, whose lines
// are shown as they were written; or `archive` and a run, whose archive is packed and
// verified. -update rewrites the examples.
func TestSpecificationExamples(t *testing.T) {
	marked := regexp.MustCompile(`(?s)(<!-- example: ([^\n]*) -->\n)(.*?)(<!-- end -->\n)`)
	kinds := map[string]int{}
	for name, text := range documents(t) {
		fresh := marked.ReplaceAllStringFunc(text, func(text string) string {
			m := marked.FindStringSubmatch(text)
			what := strings.Fields(m[2])
			kinds[filepath.Base(name)]++
			return m[1] + example(t, what) + m[4]
		})
		if fresh == text {
			continue
		}
		if testkit.Update() {
			if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("an example of %s is not what the tools write (-update rewrites it)", name)
	}
	for _, name := range []string{"ARCHIVE.md", "STREAMS.md", "POLICY.md", "DERIVATION.md"} {
		if kinds[name] == 0 {
			t.Errorf("%s has no worked example", name)
		}
	}
}

func example(t *testing.T, what []string) string {
	t.Helper()
	switch what[0] {
	case "archive":
		return archiveExample(t, filepath.Join("..", what[1]))
	case "log":
		return codeBlock("json", writtenLines(t, filepath.Join("..", what[1])))
	}
	b, err := os.ReadFile(filepath.Join("..", what[0]))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(what[0], ".yaml") {
		return codeBlock("yaml", string(b))
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		var head struct{ Schema string }
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatal(err)
		}
		if len(what) == 1 || slices.Contains(what[1:], head.Schema) {
			lines = append(lines, line)
		}
	}
	return codeBlock("json", strings.Join(lines, ""))
}

func codeBlock(kind, text string) string {
	return "```" + kind + "\n" + strings.TrimSuffix(text, "\n") + "\n```\n"
}

// writtenLines are the lines of a collected log, as the command wrote them.
func writtenLines(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		l, err := schemas.ParseLogLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			continue // header, health or trailer
		}
		raw, err := schemas.Untext(l.Line)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", raw)
	}
	return out.String()
}

// archiveExample packs the archive of a recorded run, verifies it, and shows every
// member.
func archiveExample(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.tar.gz")
	if o := call(t, command(t, "runner-pack", "-o", path, filepath.Join(dir, "3-joined.ndjson"))); o.code != 0 {
		t.Fatal(o)
	}
	if o := call(t, command(t, "runner-verify", path)); o.code != 0 {
		t.Fatal(o)
	}
	var out strings.Builder
	identity, err := eachMember(path, func(name string, r io.Reader) error {
		b, err := io.ReadAll(r)
		fmt.Fprintf(&out, "`%s`, %d bytes\n\n%s\n", name, len(b), codeBlock("json", string(b)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sIts identity is `sha256:%x`.\n", out.String(), identity)
}

// TestSpecificationRules: what a reader MUST refuse names every rule id of
// runner-verify, and no other, and each of its points has one.
func TestSpecificationRules(t *testing.T) {
	o := call(t, command(t, "runner-verify", "--rules"))
	if o.code != 0 {
		t.Fatal(o)
	}
	known := map[string]bool{}
	for line := range strings.Lines(o.stdout) {
		known[strings.Fields(line)[0]] = true
	}
	// These are what a caller demands, not what an archive must be.
	delete(known, "require")
	delete(known, "assert")
	delete(known, "attestation")
	named := map[string]bool{}
	id := regexp.MustCompile("\\((?:`([a-z._]+)`)[^)]*\\)\\.?")
	for name, text := range documents(t) {
		_, section, ok := strings.Cut(text, "\n## What a reader MUST refuse\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if base := filepath.Base(name); !ok && !slices.Contains([]string{"README.md", "CHANGES.md", "SHOW.md", "LIMITS.md", "ATTESTATION.md", "PACKS.md", "SOAK.md", "DIFF.md", "OTEL.md", "PROC.md", "BOX.md", "NET.md", "CLOCK.md", "REPLAY.md", "GATE.md"}, base) { // they are of what is printed, or of other files
			t.Errorf("%s does not say what a reader must refuse", name)
		}
		if filepath.Base(name) != "STREAMS.md" {
			refusals, _, _ := strings.Cut(section, "\nThe details of rule ") // they are of rules that have ids
			if _, layers, there := strings.Cut(refusals, "\n*Policy layers.*"); there {
				refusals = layers // others refuse what is before
			}
			for _, rule := range regexp.MustCompile(`(?m)^[0-9]+\. .*$`).FindAllString(refusals, -1) {
				if id.FindString(rule) == "" {
					t.Errorf("%s: no id of runner-verify in %.60q", name, rule)
				}
			}
		}
		for _, m := range id.FindAllStringSubmatch(section, -1) {
			if filepath.Base(name) != "STREAMS.md" { // there they are classes of refusals
				named[m[1]] = true
			}
			if filepath.Base(name) != "STREAMS.md" && strings.Contains(m[1], ".") && !known[m[1]] {
				t.Errorf("%s names the rule %s, which runner-verify does not have", name, m[1])
			}
		}
	}
	for rule := range known {
		if !named[rule] {
			t.Errorf("no document names the rule %s of runner-verify", rule)
		}
	}
}
