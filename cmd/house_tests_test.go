package cmd_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestHouseTestkit: what tests share is in schemas/testkit. A copy of it would drift: a skip
// with other words is not in the list that make test prints last.
func TestHouseTestkit(t *testing.T) {
	copies := map[string]string{
		`"SKIPPED, ` + `NOT TESTED`: "testkit.Skip, Missing or Note",
		`flag.Bool("` + `update"`:   "testkit.Update and testkit.Golden",
		"func " + "must(":           "testkit.Must",
	}
	used := 0
	sources(t, func(path string, b []byte) {
		dir := filepath.ToSlash(filepath.Dir(path))
		// The parties are a module of their own.
		if !strings.HasSuffix(path, "_test.go") || dir == "schemas/testkit" || dir == "testdata/parties" {
			return
		}
		for text, use := range copies {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s has %s: use %s", path, text, use)
			}
		}
		if bytes.Contains(b, []byte("/schemas/testkit\"")) {
			used++
		}
	})
	if used < 20 {
		t.Errorf("only %d files use schemas/testkit", used)
	}
}
