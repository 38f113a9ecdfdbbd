package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestHostileNames: what text says of names is printable and takes one line each; a report has them as
// they are, and is valid JSON.
func TestHostileNames(t *testing.T) {
	a := world()
	for _, name := range []string{`\u001b[2J\u001b]0;t\u0007`, `\u202egnp`, `a\nerror    cicd-starter@1.0.0:forged`, `[x](http://x) @all <script>`, `\u2800`} {
		a[schemas.MemberKernel] += strings.Replace(open("read", "/h/NAME/.ssh/id_rsa"), "NAME", name, 1) + strings.Replace(line(2, "unix:/h/NAME"), "NAME", name, 1)
	}
	_, r := judged(t, a, "cicd-starter", "hermetic-replay")
	for _, text := range []string{string(r.text()), string(r.explain("cicd-starter:no-keys-read")), string(r.explain(explainScore))} {
		for line := range strings.Lines(text) {
			if at := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(c rune) bool { return !unicode.IsPrint(c) || c == '\u2800' }); at >= 0 || strings.HasPrefix(line, "error    cicd-starter@1.0.0:forged") {
				t.Errorf("%q", line)
			}
		}
	}
	b := written(t, r.reportJSON)
	again, err := schemas.ParseLintReport(b[:len(b)-1])
	testkit.Must(t, err)
	if c, failing := count(again.Results, pack.Error); c != r.report.Findings || failing == 0 {
		t.Errorf("%+v", c)
	}
	b = written(t, r.closureJSON)
	c, err := schemas.ParseClosure(b[:len(b)-1])
	testkit.Must(t, err)
	if c.Closure.Score != r.closure.Score || len(c.Closure.Dependencies) != 5 {
		t.Errorf("%+v", c.Closure)
	}
	b = []byte(strings.Replace(string(b), `"score":0.`, `"score":0.0`, 1))
	if _, err := schemas.ParseClosure(b[:len(b)-1]); err == nil || !strings.Contains(err.Error(), "score is") {
		t.Error(err)
	}
}

// written is what an output gets.
func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, write(&b))
	return b.Bytes()
}
