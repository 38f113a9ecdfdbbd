// Package arguments makes of what a program was started with what a record says of it.
package arguments

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Key is the key of digests; nil is none.
type Key []byte

// Digest is the HMAC-SHA256 of text, in hex.
func (k Key) Digest(text []byte) string {
	h := hmac.New(sha256.New, k)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// Mark stands for a text that a rule took out.
func (k Key) Mark(id string, text []byte) []byte {
	b := append([]byte(schemas.RedactionMark), id...)
	if k != nil {
		b = append(append(b, schemas.RedactionDigest...), k.Digest(text)...)
	}
	return append(b, schemas.RedactionEnd...)
}

// secretName is how the name of an option or variable ends whose value is a secret.
const secretName = `(?:[A-Za-z0-9_.-]*(?:password|passwd|passphrase|token|secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|credentials?)|pass|auth|bearer)`

// value is a value in a word: quoted, or up to a blank or a quote.
const value = `("[^"]*"?|'[^']*'?|[^\s"'&;|]+)`

// redaction is one rule with the pattern whose first group is what it takes out. A text that has not all of needs, or not as many bytes
// as least, has no match: most arguments are short words, for which no pattern has to be compiled.
type redaction struct {
	id      string
	needs   []string
	least   int
	pattern *pattern.Pattern
}

func (r *redaction) matches(text []byte) [][]int {
	if len(text) < r.least {
		return nil
	}
	for _, n := range r.needs {
		if !bytes.Contains(text, []byte(n)) {
			return nil
		}
	}
	return r.pattern.Regexp().FindAllSubmatchIndex(text, -1)
}

// shortestName is the length of the shortest word that secretName has.
const shortestName = len("pass")

// keyBegins is how a key in PEM form begins (RFC 7468).
const keyBegins = "-----BEGIN"

// redactions are the rules of schemas.Redactions, in their order.
var redactions = []redaction{
	{schemas.RedactMarker, []string{schemas.RedactionMark}, 0, pattern.New(`(?s)(` + regexp.QuoteMeta(schemas.RedactionMark) + `.*)`)},
	{schemas.RedactKey, []string{keyBegins}, 0, pattern.New(`(?s)(` + keyBegins + `.*)`)},
	{schemas.RedactHeader, []string{":"}, len("cookie:x"), pattern.New(`(?is)(?:^|[^A-Za-z0-9-])(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token|private-token)\s*:\s*(.+)`)},
	{schemas.RedactUserinfo, []string{"://", "@"}, 0, pattern.New(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s"']*)@`)},
	{schemas.RedactOption, []string{"-", "="}, 1 + shortestName, pattern.New(`(?is)^--?` + secretName + `=(.+)$`)},
	{schemas.RedactOption, []string{"-"}, 1 + shortestName + len("=x"), pattern.New(`(?i)(?:^|[\s"'=(])--?` + secretName + `(?:=|\s+)` + value)},
	{schemas.RedactVariable, []string{"="}, shortestName, pattern.New(`(?is)^` + secretName + `=([^"'&;|]+)$`)},
	{schemas.RedactVariable, []string{"="}, shortestName, pattern.New(`(?i)(?:^|[^A-Za-z0-9_.-])` + secretName + `=` + value)},
	{schemas.RedactToken, nil, len("sk-") + 12, pattern.New(`(?:^|[^A-Za-z0-9_])((?:gh[pousr]_|github_pat_|glpat-|sk-|sk_live_|rk_live_|xox[abprs]-|AKIA|ASIA|AIza|eyJ|npm_|pypi-|hf_|SG\.)[A-Za-z0-9_.-]{12,})`)},
}

// before is an option, as a whole argument, whose value is the next one.
var before = pattern.New(`(?i)^--?` + secretName + `$`)

// Redact returns the arguments as texts, without secrets.
func Redact(argv [][]byte, k Key) []string {
	list := make([]string, len(argv))
	for i, a := range argv {
		if i > 0 && bytes.HasPrefix(argv[i-1], []byte("-")) && before.Match(argv[i-1]) {
			list[i] = schemas.Text(string(k.Mark(schemas.RedactOption, a)))
			continue
		}
		list[i] = k.text(a)
	}
	return list
}

// text is one argument without secrets. What a rule has taken out, and its mark, no later rule looks at.
func (k Key) text(a []byte) string {
	type part struct {
		text []byte
		done bool
	}
	parts := []part{{text: a}}
	for i := range redactions {
		r := &redactions[i]
		var next []part
		for _, p := range parts {
			if p.done {
				next = append(next, p)
				continue
			}
			at := 0
			for _, m := range r.matches(p.text) {
				if m[2] == m[3] {
					continue
				}
				next = append(next, part{text: p.text[at:m[2]]}, part{k.Mark(r.id, p.text[m[2]:m[3]]), true})
				at = m[3]
			}
			next = append(next, part{text: p.text[at:]})
		}
		parts = next
	}
	var b bytes.Buffer
	for _, p := range parts {
		b.Write(p.text)
	}
	return schemas.Text(b.String())
}
