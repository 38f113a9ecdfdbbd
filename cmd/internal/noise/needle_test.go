package noise

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A needle is in a path if the path contains its text.
func TestNeedle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{".so.", "/node_modules/", "/target/", "aab", "a", "\xff/"} {
		n := newNeedle(text)
		for range 20000 {
			path := ""
			for range r.IntN(4) {
				part := text
				if r.IntN(2) == 0 {
					part = text[r.IntN(len(text)):]
				}
				path += part[:r.IntN(len(part)+1)]
			}
			if got, want := n.in([]byte(path)), strings.Contains(path, text); got != want {
				t.Fatalf("%q in %q: %t", text, path, got)
			}
		}
	}
}
