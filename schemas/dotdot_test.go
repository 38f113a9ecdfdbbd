package schemas

import (
	"slices"
	"strings"
	"testing"
)

func TestHasDotDot(t *testing.T) {
	// Every text of up to seven of the characters that matter, against the plain definition.
	var each func(text string)
	each = func(text string) {
		want := slices.Contains(strings.Split(text, "/"), "..")
		if got := HasDotDot([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if len(text) < 7 {
			for _, c := range []string{"/", ".", "a"} {
				each(text + c)
			}
		}
	}
	each("")
}
