package arguments

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestRules: the rules are those of the specification, in its order.
func TestRules(t *testing.T) {
	var ids, want []string
	for _, r := range redactions {
		ids = append(ids, r.id)
	}
	for _, r := range schemas.Redactions {
		want = append(want, r.ID)
	}
	if ids = slices.Compact(ids); !slices.Equal(ids, want) {
		t.Errorf("%q, expected %q", ids, want)
	}
}

// TestRedact: secrets go, what is next to them stays, and ordinary arguments are left alone.
func TestRedact(t *testing.T) {
	const secret = "S3cr3tValue"
	for _, c := range []struct{ argv, want string }{
		{"ls -la /tmp/token", "ls -la /tmp/token"},
		{"login --password " + secret + " -u me", "login --password [redacted option] -u me"},
		{"login --password=" + secret, "login --password=[redacted option]"},
		{"gh --github-token " + secret, "gh --github-token [redacted option]"},
		{"x -token " + secret, "x -token [redacted option]"},
		{"x --client_secret=" + secret, "x --client_secret=[redacted option]"},
		{"x --passwords-file f", "x --passwords-file f"},
		{"x --author me --password-stdin y", "x --author me --password-stdin y"},
		{"env GITHUB_TOKEN=" + secret + " sh", "env GITHUB_TOKEN=[redacted variable] sh"},
		{"env PGPASSWORD=" + secret, "env PGPASSWORD=[redacted variable]"},
		{"curl https://me:" + secret + "@host/a@b", "curl https://[redacted userinfo]@host/a@b"},
		{"curl https://host/?a=1&access_token=" + secret + "&b=2", "curl https://host/?a=1&access_token=[redacted variable]&b=2"},
		{"curl Authorization:Bearer_" + secret, "curl Authorization:[redacted header]"},
		{"curl X-API-Key:" + secret, "curl X-API-Key:[redacted header]"},
		{"x ghp_0123456789abcdefghij", "x [redacted token]"},
		{"x a=AKIAIOSFODNN7EXAMPLE,b", "x a=[redacted token],b"},
		{"x risk-assessment-of-things-and-more", "x risk-assessment-of-things-and-more"},
		{"x -----BEGIN_PRIVATE_KEY", "x [redacted key]"},
	} {
		var argv [][]byte
		for _, a := range strings.Fields(c.argv) {
			argv = append(argv, []byte(a))
		}
		if got := strings.Join(Redact(argv, nil), " "); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.argv, got, c.want)
		}
	}
	for script, want := range map[string]string{
		`curl -H "Authorization: Bearer ` + secret + `" x`:           `curl -H "Authorization: [redacted header]`,
		"mysql --password " + secret + " db":                         "mysql --password [redacted option] db",
		"--db-password=two words " + secret:                          "--db-password=[redacted option]",
		"TOKEN=two words " + secret:                                  "TOKEN=[redacted variable]",
		"TOKEN='" + secret + "' run":                                 "TOKEN=[redacted variable] run",
		"say [redacted option] and " + schemas.RedactionMark:         "say [redacted marker]",
		"a\xff--token=" + secret:                                     `a\xff--token=[redacted variable]`,
		"cat <<E\n-----BEGIN ANY KEY-----\n" + secret + "\n-----END": "cat <<E\n[redacted key]",
	} {
		got := Redact([][]byte{[]byte("sh"), []byte("-c"), []byte(script)}, nil)[2]
		if strings.Contains(got, secret) {
			t.Errorf("%q keeps the secret: %q", script, got)
		}
		if script[0] != 'a' && got != want {
			t.Errorf("%q\n got %q\nwant %q", script, got, want)
		}
	}
}

// TestDescribe: what each mode records, of whole, cut and unread arguments; who has the key can check a digest.
func TestDescribe(t *testing.T) {
	key := Key("0123456789abcdef")
	raw := []byte("/usr/bin/x\x00--token\x00abc\x00\x00")
	n := uint32(len(raw))
	sum := func(s string) string {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(s))
		return hex.EncodeToString(h.Sum(nil))
	}
	for _, c := range []struct {
		d    Describer
		read []byte
		all  uint32
		want string
	}{
		{Describer{Mode: schemas.ArgvNone}, raw, n, ""},
		{Describer{Mode: schemas.ArgvHash}, nil, 0, ""},
		{Describer{Mode: schemas.ArgvHash}, raw, n, `{"name":"x","count":4,"bytes":24}`},
		{Describer{Mode: schemas.ArgvHash, Key: key}, raw[:11], 11, `{"name":"x","count":1,"bytes":11,"digests":["` + sum("/usr/bin/x") + `"]}`},
		{Describer{Mode: schemas.ArgvFull}, raw, n, `{"name":"x","count":4,"bytes":24,"argv":["/usr/bin/x","--token","[redacted option]",""]}`},
		{Describer{Mode: schemas.ArgvFull, Key: key}, raw, n, `{"name":"x","count":4,"bytes":24,"argv":["/usr/bin/x","--token","[redacted option hmac-sha256:` + sum("abc") + `]",""]}`},
		{Describer{Mode: schemas.ArgvFull}, raw[:15], n, `{"name":"x","count":1,"bytes":24,"unread":13,"argv":["/usr/bin/x"]}`},
		{Describer{Mode: schemas.ArgvFull}, nil, n, `{"count":0,"bytes":24,"unread":24}`},
	} {
		got := ""
		if a := c.d.Describe(c.read, c.all); a != nil {
			testkit.Must(t, a.Check())
			b, err := schemas.Marshal(a)
			testkit.Must(t, err)
			got = string(b)
		}
		if got != c.want {
			t.Errorf("%s of %q:\n got %s\nwant %s", c.d.Mode, c.read, got, c.want)
		}
	}
}

// TestReadKey: a key is hex digits, and there are enough of them.
func TestReadKey(t *testing.T) {
	for text, ok := range map[string]bool{strings.Repeat("0a", 32) + "\n": true, strings.Repeat("0a", 8): false, "": false, strings.Repeat("zz", 32): false} {
		file := filepath.Join(t.TempDir(), "key")
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
		key, err := ReadKey(file)
		if (err == nil) != ok || ok && !slices.Equal(key, []byte(strings.Repeat("\n", 32))) {
			t.Errorf("%q: %v, %v", text, key, err)
		}
	}
	if key, err := ReadKey(""); key != nil || err != nil {
		t.Error(key, err)
	}
}

// FuzzRedact: no argument makes it fail, and what it gives is in text form. What a rule does not look at has no match.
func FuzzRedact(f *testing.F) {
	f.Add([]byte("--token=x"), []byte("\xff[redacted "))
	for _, shortest := range []string{"[redacted ", "-----BEGIN", "Cookie:\v", "a://@", "a://x@", "-pass=x", "-pass x", "-pass=\"", "pass=x", "sk-0123456789ab", "eyJ0123456789ab"} {
		f.Add([]byte(shortest), []byte(shortest+shortest))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, text := range Redact([][]byte{a, b}, nil) {
			if _, err := schemas.Untext(text); err != nil {
				t.Error(fmt.Sprintf("%q", text), err)
			}
		}
		for _, r := range redactions {
			for _, text := range [][]byte{a, b} {
				if got, want := r.matches(text), r.pattern.Regexp().FindAllSubmatchIndex(text, -1); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %q: %v, expected %v", r.id, text, got, want)
				}
			}
		}
	})
}
