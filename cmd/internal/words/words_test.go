package words

import (
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		"nice -n 19": "nice|-n|19", `  a  "b c"  'd "e'`: `a|b c|d "e`, `a\ b`: "a b", `""`: "", `"\$HOME" '$HOME'`: "$HOME|$HOME", `x"y"'z'`: "xyz", "": "",
	} {
		list, err := Split(in)
		if err != nil || strings.Join(list, "|") != want {
			t.Errorf("%q gives %q, %v", in, list, err)
		}
	}
	for _, in := range []string{"a $HOME", "a | b", "a; b", `"open`, "'open", `end\`, "a > b", "`a`", "*.c", "a\nb"} {
		if list, err := Split(in); err == nil {
			t.Errorf("%q gives %q", in, list)
		}
	}
	if list, err := Split(`""`); err != nil || len(list) != 1 {
		t.Errorf("an empty word is one: %q, %v", list, err)
	}
}
