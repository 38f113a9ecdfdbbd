//go:build linux

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAcceptance runs every acceptance script on the real kernel.
func TestAcceptance(t *testing.T) {
	requireBPF(t)
	for _, a := range acceptances(t) {
		t.Run(strings.Join(a, " "), func(t *testing.T) {
			t.Parallel()
			script(t, "sh", append([]string{"../scripts/acceptance/" + a[0] + ".sh"}, a[1:]...)...)
		})
	}
}

// TestAcceptanceTable: the table of scenarios names each of these scripts once, and no other.
func TestAcceptanceTable(t *testing.T) {
	b, err := os.ReadFile("../testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := bytes.Cut(b, []byte("\n| scenario "))
	var named, have []string
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| `([^`]+)` +\\|$").FindAllSubmatch(table, -1) {
		named = append(named, string(row[1]))
	}
	for _, a := range acceptances(t) {
		have = append(have, strings.Join(a, " "))
	}
	slices.Sort(named)
	slices.Sort(have)
	if !slices.Equal(named, have) {
		t.Errorf("testdata/README.md names %q\nscripts/acceptance has %q", named, have)
	}
}

// acceptances are the scripts in scripts/acceptance, each with its arguments: the one that
// repeats a scenario is in the list once for each scenario that it knows.
func acceptances(t *testing.T) (found [][]string) {
	t.Helper()
	scripts, err := filepath.Glob("../scripts/acceptance/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no acceptance scripts: ", err)
	}
	for _, path := range scripts {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".sh")
		switch {
		case bytes.Contains(b, []byte("\n#   exit 0 accepted")):
			found = append(found, []string{name})
		case bytes.Contains(b, []byte("\n#   exit 0 same")):
			o := call(t, command(t, "sh", path, "--list"))
			for _, scenario := range strings.Fields(o.stdout) {
				found = append(found, []string{name, scenario})
			}
		default:
			t.Errorf("%s does not say what its exit codes mean", path)
		}
	}
	return found
}
