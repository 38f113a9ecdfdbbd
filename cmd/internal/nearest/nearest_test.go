package nearest

import "testing"

func TestWord(t *testing.T) {
	words := []string{"kernel", "policy", "processes", "report", "run"}
	for word, want := range map[string]string{"kernl": "kernel", "Policy": "policy", "process": "processes", "rnu": "run", "zebra": "", "proc": "processes", "Pol": "policy", "re": "", "": "", "assert": ""} {
		if got := Word(word, words); got != want {
			t.Errorf("%q is like %q, expected %q", word, got, want)
		}
	}
}

// TestBeginnings: the only word that begins so is nearer than one that differs by more than a letter.
func TestBeginnings(t *testing.T) {
	words := []string{"archive", "argv", "policy", "policy-log", "force"}
	for word, want := range map[string]string{"arch": "archive", "argb": "argv", "polic": "policy", "poli": "policy", "for": "force", "ar": ""} {
		if got := Word(word, words); got != want {
			t.Errorf("%q is like %q, expected %q", word, got, want)
		}
	}
}
