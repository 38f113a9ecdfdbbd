package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// unpacked packs a directory that holds an archive's members.
func unpacked(t *testing.T, dir string) []byte {
	a := content{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		a[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.tar(t)
}

// Recorded archives of another implementation are valid where intact. Three
// documents of the damaged ones have a stray line feed.
func TestRecordedArchives(t *testing.T) {
	intact, damaged := 0, 0
	err := filepath.WalkDir(testkit.Corpora(t, "assay/docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var b []byte
		switch d.Name() {
		case "archive.tar.gz":
			if b, err = os.ReadFile(path); err != nil {
				return err
			}
		case "archive-contents":
			b = unpacked(t, path)
		default:
			return nil
		}
		code, r := check(t, b)
		if !strings.Contains(path, "v1-arm-c") {
			intact++
			if code != 0 || !r.Valid {
				t.Errorf("%s: exit %d, %+v", path, code, r.Findings)
			}
			return nil
		}
		damaged++
		named := map[string]bool{}
		for _, f := range r.Findings {
			if f.Rule == archive.RuleDocumentForm && strings.Contains(f.Message, "final newline") {
				named[f.Member] = true
			}
		}
		if code != 1 || len(named) != 3 || !named[bundle.SurfaceName] || !named[bundle.ReportName] || !named[bundle.HealthName] {
			t.Errorf("%s: exit %d, named %v, expected the three members with a final newline", path, code, named)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if intact == 0 || damaged == 0 {
		t.Errorf("%d intact and %d damaged archives, expected some of both", intact, damaged)
	}
}

// Archives that the other implementation's library wrote from made-up inputs.
// Its writer checks no layer against another, so some inputs give archives that
// contradict themselves; every other one is valid.
func TestOracleArchives(t *testing.T) {
	refused := map[string]struct{ rule, why string }{
		"52-coverage-datagram-only": {ruleHealthNetwork, "the counters given say no connect was seen, the lines given have one"},
		"72-run-id-ok-long":         {archive.RuleEventsPair, "the events given are empty: nothing says that the run started or ended"},
	}
	files, err := filepath.Glob(filepath.Join(testkit.Corpora(t, "assay"), "_oracle/runner-core/*/archive.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d archives, %v", len(files), err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		code, r := check(t, b)
		if want, ok := refused[name]; ok {
			if code != 1 || strings.Join(rules(r), " ") != want.rule {
				t.Errorf("%s: exit %d, %+v, expected %s because %s", name, code, r.Findings, want.rule, want.why)
			}
			continue
		}
		if code != 0 {
			t.Errorf("%s: exit %d, %+v", name, code, r.Findings)
		}
	}
}
