package tool

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestShellWord: a shell reads each word as it was, expands nothing of it, and a terminal gets no control character.
func TestShellWord(t *testing.T) {
	testkit.Programs(t, "words as bash reads them", "bash")
	for _, s := range []string{"", "plain/word-1.gz", "a b", "it's", "$(id)", "`id`", "x\ny", "\x1b[31m$(id)'\\", "\xff\xfe", "a\x012", "ä", "\u202eevil", "*?[!]~#&;|<>\""} {
		word := ShellWord(s)
		out, err := exec.Command("bash", "--norc", "-c", "printf %s "+word).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q as %s is read as %q, %v", s, word, out, err)
		}
		if strings.ContainsAny(word, "\n\x1b\x01\u202e") {
			t.Errorf("%q is printed raw: %q", s, word)
		}
	}
}
