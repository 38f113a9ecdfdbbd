package schemas

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// fenced returns the lines of all code blocks of a kind, with their line numbers.
func fenced(t *testing.T, file, kind string) (lines []string, at []int) {
	t.Helper()
	b, err := os.ReadFile(file)
	testkit.Must(t, err)
	inside := false
	for i, line := range strings.Split(string(b), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```"+kind
		case inside:
			lines, at = append(lines, line), append(at, i+1)
		}
	}
	return lines, at
}

// TestQuotedLines: every line in a json block of the specification is one that its
// JSON Schema and its Go parser accept.
func TestQuotedLines(t *testing.T) {
	names, err := filepath.Glob("*.md")
	testkit.Must(t, err)
	compiled := map[Form]*jsonschema.Schema{}
	total := 0
	for _, name := range names {
		lines, at := fenced(t, name, "json")
		for i, line := range lines {
			var head struct{ Schema, SpecVersion string }
			if err := json.Unmarshal([]byte(line), &head); err != nil {
				t.Errorf("%s:%d: %v", name, at[i], err)
				continue
			}
			form, ok := FormOf(head.Schema)
			if head.SpecVersion != "" {
				form, ok = DecisionLogForm, true
			}
			if !ok {
				t.Errorf("%s:%d: schema %q is none of the specification", name, at[i], head.Schema)
				continue
			}
			total++
			if compiled[form] == nil {
				compiled[form] = compileFile(t, form)
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			testkit.Must(t, err)
			if err := compiled[form].Validate(doc); err != nil {
				t.Errorf("%s:%d: %v", name, at[i], err)
			}
			run := regexp.MustCompile(`"run_id":"([^"]*)"`).FindStringSubmatch(line)
			if err := parseForm(form.Schema, []byte(strings.Replace(line, run0(run), `"run_id":"`+testRun+`"`, 1))); err != nil {
				t.Errorf("%s:%d: the Go parser refuses the line: %v", name, at[i], err)
			}
		}
	}
	if total < 20 {
		t.Errorf("only %d lines", total)
	}
}

func run0(match []string) string {
	if match == nil {
		return "\x00" // in no line
	}
	return match[0]
}

// TestVectorTables: the tables of test vectors name every file, and nothing else,
// with the class that the file has.
func TestVectorTables(t *testing.T) {
	row := regexp.MustCompile("^\\| `([^`]+)` \\|(?: ([a-z_]+) \\|)? ([^|]+) \\|$")
	for folder, file := range map[string]string{"stream": "STREAMS.md", "bundle": "ARCHIVE.md"} {
		b, err := os.ReadFile(file)
		testkit.Must(t, err)
		_, table, ok := strings.Cut(string(b), "<!-- vectors: "+folder+" -->\n")
		table, _, ok2 := strings.Cut(table, "<!-- end -->")
		if !ok || !ok2 {
			t.Errorf("%s has no table of the vectors in %s", file, folder)
			continue
		}
		listed := map[string]string{}
		for line := range strings.Lines(table) {
			if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				if _, twice := listed[m[1]]; twice {
					t.Errorf("%s: %s is listed twice", file, m[1])
				}
				listed[m[1]] = m[2]
			}
		}
		dir := filepath.Join("..", "testdata", "vectors", folder)
		entries, err := os.ReadDir(dir)
		testkit.Must(t, err)
		for _, e := range entries {
			class, there := listed[e.Name()]
			if !there {
				t.Errorf("%s does not list the vector %s/%s", file, folder, e.Name())
			}
			delete(listed, e.Name())
			if folder == "bundle" {
				continue // the name begins with the class
			}
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			testkit.Must(t, err)
			if want := []byte("expect: " + class + "\n"); !bytes.HasPrefix(content, want) {
				t.Errorf("%s: the class of %s is not %q", file, e.Name(), class)
			}
		}
		for name := range listed {
			t.Errorf("%s lists %s, which is not in %s", file, name, dir)
		}
	}
}
