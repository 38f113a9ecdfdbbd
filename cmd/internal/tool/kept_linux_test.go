package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestKeptInBetween: a file that somebody else makes after the first look, even just before the rename, is replaced only if it is what
// the tool writes.
func TestKeptInBetween(t *testing.T) {
	defer func() { beforeReplace, renameat2 = func(string) {}, unix.Renameat2 }()
	for name, x := range map[string]struct {
		first  string // before the first look
		then   string // before the commit
		late   string // before the rename
		folder bool   // late is a directory
		force  bool
		want   string
	}{
		"nothing there":          {want: "ours new"},
		"ours":                   {first: "ours old", want: "ours new"},
		"ours, made meanwhile":   {then: "ours other", want: "ours new"},
		"theirs, made meanwhile": {then: "theirs", want: "theirs"},
		"theirs, at the end":     {first: "ours old", late: "theirs", want: "theirs"},
		"ours, at the end":       {first: "ours old", late: "ours other", want: "ours new"},
		"a folder, at the end":   {first: "ours old", folder: true, want: "a folder"},
		"gone, at the end":       {first: "ours old", late: "-", want: "ours new"},
		"theirs, but with force": {then: "theirs", force: true, want: "ours new"},
	} {
		for _, flags := range []bool{true, false} {
			for opener, open := range openers() {
				path := filepath.Join(t.TempDir(), "out")
				put := func(s string) {
					if s != "" {
						os.Remove(path)
					}
					if s != "" && s != "-" {
						testkit.Must(t, os.WriteFile(path, []byte(s), 0o600))
					}
				}
				renameat2 = unix.Renameat2
				if !flags {
					renameat2 = func(int, string, int, string, uint) error { return unix.EINVAL }
				}
				beforeReplace = func(string) {
					if put(x.late); x.folder {
						os.Remove(path)
						testkit.Must(t, os.Mkdir(path, 0o700))
					}
				}
				put(x.first)
				testkit.Must(t, Replaceable(x.force, path, "of this tool", Begins("ours")))
				put(x.then)
				f, err := open(path)
				testkit.Must(t, err)
				_, err = f.Write([]byte("ours new"))
				testkit.Must(t, err)
				err = f.Commit()
				f.Abort()
				got := "a folder"
				if b, e := os.ReadFile(path); e == nil {
					got = string(b)
				}
				if got != x.want || (err == nil) != (x.want == "ours new") || err != nil && !x.folder && !strings.Contains(err.Error(), "it is kept") {
					t.Errorf("%s, %s, flags %t: %q, %v", name, opener, flags, got, err)
				}
				if left := names(t, filepath.Dir(path)); left != "out" {
					t.Errorf("%s, %s, flags %t: there are %s", name, opener, flags, left)
				}
			}
		}
	}
}
