//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestAcceptance runs every script that says of itself what it accepts, or that three
// runs are the same, on the real kernel.
func TestAcceptance(t *testing.T) {
	requireBPF(t)
	for _, s := range acceptances(t) {
		t.Run(filepath.Base(s), func(t *testing.T) {
			t.Parallel()
			script(t, "sh", s)
		})
	}
}

// TestAcceptanceTable: the table of scenarios names these scripts, each once, and no other.
func TestAcceptanceTable(t *testing.T) {
	b, err := os.ReadFile("../testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := bytes.Cut(b, []byte("\n| scenario "))
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| `([^`]+)` +\\|$").FindAllSubmatch(table, -1) {
		named = append(named, "../scripts/"+string(row[1])+".sh")
	}
	have := acceptances(t)
	slices.Sort(named)
	slices.Sort(have)
	if !slices.Equal(named, have) {
		t.Errorf("testdata/README.md names %q\nscripts that say what they accept: %q", named, have)
	}
}

// acceptances are the scripts whose head says so.
func acceptances(t *testing.T) (found []string) {
	t.Helper()
	scripts, err := filepath.Glob("../scripts/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("\n#   exit 0 accepted")) || bytes.Contains(b, []byte("\n#   exit 0 same")) {
			found = append(found, s)
		}
	}
	return found
}
