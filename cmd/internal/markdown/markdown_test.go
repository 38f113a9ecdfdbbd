package markdown

import (
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/usr/bin/git", "` /usr/bin/git `"},
		{"@all <b>#1</b>", "` @all <b>#1</b> `"},
		{"`` ` @all", "``` `` ` @all ```"},
		{"a\nb\x1b[0m\u202e", "` a\\nb\\x1b[0m\\u202e `"},
		{"", "(empty)"},
		{" ", "` \\x20 `"},
		{strings.Repeat("x", 50), "` " + strings.Repeat("x", 40) + "… `"},
	} {
		if got := Code(c.in, 40); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestBlock(t *testing.T) {
	got := Block("yaml", "a:  1\n  ```\n@all\u202e\nend")
	want := "````yaml\na:  1\n  ```\n@all\\u202e\nend\n````\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
