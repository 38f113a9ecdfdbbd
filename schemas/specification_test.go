package schemas

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// headings are the headings of one document, and the anchors that links use.
func headings(t *testing.T, file string) (titles, anchors map[string]bool) {
	t.Helper()
	b, err := os.ReadFile(file)
	testkit.Must(t, err)
	titles, anchors = map[string]bool{}, map[string]bool{}
	inCode := false
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		mark, title, ok := strings.Cut(strings.TrimSpace(line), " ")
		if inCode || !ok || strings.Trim(mark, "#") != "" {
			continue
		}
		title = strings.ReplaceAll(title, "`", "")
		titles[title] = true
		anchor := strings.ToLower(strings.ReplaceAll(title, " ", "-"))
		anchors[regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(anchor, "")] = true
	}
	return titles, anchors
}

// texts calls f for every text file of the repository that can quote the specification.
func texts(t *testing.T, f func(path, text string)) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && (n == ".git" || n == "bin" || n == "vectors" || n == "node_modules" || n == "runs") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || d.Name() == "LICENSE" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(b, []byte{0}) {
			f(filepath.ToSlash(path), string(b))
		}
		return err
	}))
}

// TestReferences: every place that quotes the specification names a document and a
// heading that exist, and every link inside of it leads somewhere.
func TestReferences(t *testing.T) {
	names, err := filepath.Glob("*.md")
	testkit.Must(t, err)
	titles, anchors := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, name := range names {
		titles[name], anchors[name] = headings(t, name)
	}
	// A comment may break a reference over two lines.
	breaks := regexp.MustCompile(`\n[ \t]*(//|#|\*|--)?[ \t]*`)
	quote := regexp.MustCompile(`\b([A-Z]+\.md), "([^"]+)"`)
	numbered := regexp.MustCompile(`\b(README\.md,|specification'?s?|schemas/[A-Z]+\.md,?) (section|§) ?[0-9]|\bsection 1?[0-9] form`)
	link := regexp.MustCompile(`\]\(([A-Za-z0-9_./-]*)#([A-Za-z0-9_-]+)\)`)
	found := 0
	texts(t, func(path, text string) {
		if strings.HasSuffix(path, "/specification_test.go") {
			return
		}
		flat := breaks.ReplaceAllString(text, " ")
		for _, m := range quote.FindAllStringSubmatch(flat, -1) {
			if titles[m[1]] == nil {
				continue // some other document
			}
			found++
			if !titles[m[1]][m[2]] {
				t.Errorf("%s quotes %s, which has no such heading", path, m[0])
			}
		}
		if m := numbered.FindString(flat); m != "" {
			t.Errorf("%s says %q: the specification has no numbered sections, quote a document and a heading", path, m)
		}
		if !strings.HasSuffix(path, ".md") {
			return
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := filepath.ToSlash(filepath.Join(filepath.Dir(path), m[1]))
			if m[1] == "" {
				target = path
			}
			name, ok := strings.CutPrefix(target, "../schemas/")
			if !ok {
				continue
			}
			if !anchors[name][m[2]] {
				t.Errorf("%s links to %s#%s, which does not exist", path, target, m[2])
			}
		}
	})
	if found < 20 {
		t.Errorf("found only %d references", found)
	}
}
