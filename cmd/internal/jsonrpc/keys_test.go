package jsonrpc

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
)

// folds is the rule of the specification: two characters are one letter if simple case
// folding makes them equal, and the Turkish letters without and with a dot are an i too.
func folds(r, letter rune) bool {
	turkish := func(r rune) rune {
		if r == 'ı' || r == 'İ' {
			return 'i'
		}
		return r
	}
	return strings.EqualFold(string(turkish(r)), string(turkish(letter)))
}

// TestCaseKeys tries every character of Unicode in the place of one letter of a known key:
// exactly those that some reader takes for the letter are refused.
func TestCaseKeys(t *testing.T) {
	for _, c := range []struct {
		before, after string
		letter        rune
	}{
		{`{"`, `d":1}`, 'i'},
		{`{"param`, `":{}}`, 's'},
		{`{"params":{"tas`, `":{}}}`, 'k'},
		{`{"result":{"is`, `rror":true}}`, 'E'},
	} {
		client, server := NewClient(), NewServer()
		for r := rune(0x20); r <= unicode.MaxRune; r++ {
			if !utf8.ValidRune(r) || r == '"' || r == '\\' {
				continue
			}
			if c.letter != 'i' && unicode.SimpleFold(r) == r && r > unicode.MaxLatin1 {
				continue // it was tried with the first letter
			}
			want := ""
			if r != c.letter && folds(r, c.letter) {
				want = schemas.ReasonCaseKey
			}
			line := []byte(c.before + string(r) + c.after)
			if got := client.Line(line); got != want {
				t.Fatalf("client: %s: %q, want %q", line, got, want)
			}
			if got := server.Line(line); got != want {
				t.Fatalf("server: %s: %q, want %q", line, got, want)
			}
		}
	}
}

// TestFold: two other keys of the client, in one of the protocol's objects, are compared by
// the same rule, few of them and many.
func TestFold(t *testing.T) {
	for _, c := range []struct{ a, b, reason string }{
		{"x", "X", schemas.ReasonCaseKey},
		{"ix", "ıx", schemas.ReasonCaseKey},
		{"ıx", "İx", schemas.ReasonCaseKey},
		{"ß", "ẞ", schemas.ReasonCaseKey},
		{"ß", "ss", ""},
		{"ﬀ", "ff", ""},
		{"x", "x ", ""},
		{"é", "e\u0301", ""},
	} {
		for _, many := range []string{"", manyOtherKeys()} {
			line := `{` + many + `"` + c.a + `":1,"` + c.b + `":2}`
			if got := NewClient().Line([]byte(line)); got != c.reason {
				t.Errorf("%q and %q: %q, want %q", c.a, c.b, got, c.reason)
			}
			if got := NewClient().Line([]byte(`{"other":` + line + `}`)); got != "" {
				t.Errorf("%q and %q in another object: %q", c.a, c.b, got)
			}
		}
	}
}

func manyOtherKeys() string {
	var b strings.Builder
	for r := 'Ā'; r < 'Ā'+2*manyKeys; r += 2 {
		b.WriteString(`"` + string(r) + `-":0,`)
	}
	return b.String()
}
