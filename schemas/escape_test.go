package schemas

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

func TestTextKnown(t *testing.T) {
	for _, c := range []struct{ raw, text string }{
		{"", ""},
		{"/etc/hosts", "/etc/hosts"},
		{`a\b`, `a\\b`},
		{"a\xff", `a\xff`},
		{`a\xff`, `a\\xff`},
		{"\xe2\x82", `\xe2\x82`},
		{"\xed\xa0\x80", `\xed\xa0\x80`}, // a surrogate is not UTF-8
		{"\xc0\x80", `\xc0\x80`},         // overlong
		{"\xf4\x90\x80\x80", `\xf4\x90\x80\x80`},
		{"é\u2028\U0001f600\ufffd", "é\u2028\U0001f600\ufffd"},
		{"a\n\"\x00\x7f", "a\n\"\x00\x7f"},
	} {
		if got := Text(c.raw); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.raw, got, c.text)
		}
		if back, err := Untext(c.text); err != nil || string(back) != c.raw {
			t.Errorf("Untext(%q) = %q, %v", c.text, back, err)
		}
	}
}

// A decoder accepts only one spelling of a name.
func TestUntextRefuses(t *testing.T) {
	for _, s := range []string{
		`\`, `a\`, `\x`, `\x4`, `\n`, `\xFF`, `\xgg`,
		`\x41`,     // a letter needs no escape
		`\xc3\xa9`, // these two bytes are a letter
		`\xff\xc3\xa9`, `\xc3\xc3\xa9`, `\\\x`, `\\\xf`, `\xef\xbf\xbd`,
		"\xff", // not UTF-8 at all
	} {
		if b, err := Untext(s); err == nil {
			t.Errorf("Untext(%q) = %q, want an error", s, b)
		}
	}
}

// checkText holds for every byte string; the fuzz target shares it.
func checkText(t *testing.T, raw []byte) {
	text := AppendText([]byte("x"), raw)[1:]
	if !utf8.Valid(text) {
		t.Fatalf("text of %q is not UTF-8: %q", raw, text)
	}
	back, err := Untext(string(text))
	if err != nil || !bytes.Equal(back, raw) {
		t.Fatalf("Untext(Text(%q)) = %q, %v", raw, back, err)
	}
	quoted := AppendQuote(nil, text)
	if direct := AppendTextQuote(nil, raw); !bytes.Equal(direct, quoted) {
		t.Fatalf("AppendTextQuote(%q) = %s, AppendQuote of its text = %s", raw, direct, quoted)
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil || s != string(text) {
		t.Fatalf("encoding/json reads %s as %q, %v", quoted, s, err)
	}
	if viaJSON, err := Marshal(string(text)); err != nil || !bytes.Equal(viaJSON, quoted) {
		t.Fatalf("Marshal writes %s, AppendQuote %s, %v", viaJSON, quoted, err)
	}
	out, ok := appendUntext(nil, raw)
	if want := ok && bytes.Equal(AppendText(nil, out), raw); IsText(raw) != want {
		t.Fatalf("IsText(%q) = %t", raw, !want)
	}
	// Any text that Untext takes is the one spelling of its bytes.
	if b, err := Untext(string(raw)); err == nil && Text(string(b)) != string(raw) {
		t.Fatalf("Untext accepts a second spelling %q of %q", raw, b)
	}
}

func TestTextEveryShortString(t *testing.T) {
	seen := map[string]string{}
	add := func(raw []byte) {
		text := Text(string(raw))
		if old, ok := seen[text]; ok && old != string(raw) {
			t.Fatalf("%q and %q both read %q", old, raw, text)
		}
		seen[text] = string(raw)
	}
	for a := range 256 {
		add([]byte{byte(a)})
		checkText(t, []byte{byte(a)})
		for b := range 256 {
			add([]byte{byte(a), byte(b)})
			checkText(t, []byte{byte(a), byte(b)})
		}
	}
}

func TestTextRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		checkText(t, randomBytes(r))
	}
}

// randomBytes prefers bytes that are difficult to escape.
func randomBytes(r *rand.Rand) []byte {
	pieces := []string{`\`, `\\`, `\x`, "x41", "ff", `"`, "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "\U0001f600", "\ufffd", "\xed\xa0\x80", "\xe2\x82", "/", "a", "usr/share"}
	var b []byte
	for range r.IntN(12) {
		if r.IntN(3) == 0 {
			b = append(b, byte(r.IntN(256)))
		} else {
			b = append(b, pieces[r.IntN(len(pieces))]...)
		}
	}
	return b
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", `a\b`, "a\xff", `\xff`, "\xe2\x82", "é\n\"\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(checkText)
}
