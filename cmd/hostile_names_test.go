package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// hostileName is Markdown, HTML, XML, commands of a terminal and of a CI system, marks of direction, and a mention.
const hostileName = "evil`x`**b**[l](x:h)<script>x</script>]]>\x1b[2J\u009b2J\xff\u202e\u2066|\r\n@all\n::error::x"

// hostileForms are the calls of all tools that read an archive, by tool and form. IN is the archive, BASE another one,
// OUT the file of a form that is no standard output. shows: the form has names of files, programs or tools.
var hostileForms = []struct {
	tool, form string
	shows      bool
	args       string
}{
	{"runner-show", "text", true, "IN"},
	{"runner-show", "text", true, "--all --color always IN"},
	{"runner-show", "text", true, "--tree IN"},
	{"runner-show", "text", true, "--list IN"},
	{"runner-show", "text", false, "--filtered IN"},
	{"runner-show", "lines", true, "--json IN"},
	{"runner-show", "html", true, "--html - IN"},
	{"runner-show", "html", true, "--html OUT IN"},
	{"runner-diff", "text", true, "BASE IN"},
	{"runner-diff", "text", true, "IN BASE"},
	{"runner-diff", "text", false, "--exact BASE IN"},
	{"runner-diff", "markdown", true, "--format markdown BASE IN"},
	{"runner-diff", "json", true, "--format sarif BASE IN"},
	{"runner-diff", "xml", true, "--format junit BASE IN"},
	{"runner-diff", "json", true, "--format json BASE IN"},
	{"runner-diff", "json", true, "--report OUT BASE IN"},
	{"runner-diff", "json", true, "--write-lock OUT IN"},
	{"runner-lint", "text", false, "--pack agent-baseline --pack hermetic-replay IN"},
	{"runner-lint", "text", false, "--explain closure.score IN"},
	{"runner-lint", "json", false, "--pack agent-baseline --pack hermetic-replay --json IN"},
	{"runner-lint", "json", false, "--report OUT IN"},
	{"runner-lint", "json", false, "--closure OUT IN"},
	{"runner-lint", "json", false, "--sarif OUT IN"},
	{"runner-lint", "xml", false, "--junit OUT IN"},
	{"runner-soak", "text", false, "--target IN"},
	{"runner-soak", "json", false, "--json --target IN"},
	{"runner-soak", "json", false, "--report OUT --target IN"},
	{"runner-soak", "json", false, "--surface OUT --target IN"},
	{"runner-soak", "xml", false, "--junit OUT --target IN"},
	{"runner-attest", "signed", false, "--key KEY IN"},
	{"runner-attest", "signed", true, "--key KEY --predicate runtime-trace IN"},
	{"runner-attest", "signed", true, "--key KEY --predicate runtime-trace --format sigstore-bundle -o OUT IN"},
	{"runner-otel", "otlp", true, "--traces OUT IN"},
	{"runner-otel", "otlp", true, "--logs OUT IN"},
	{"runner-otel", "json", false, "--mapping-report OUT IN"},
	{"runner-verify", "text", true, "IN"},
	{"runner-verify", "text", true, "-v IN"},
	{"runner-verify", "text", true, "--explain IN"},
	{"runner-verify", "json", true, "--json IN"},
	{"runner-verify", "text", true, "--assert .kernel|map(.value)|reverse|error IN"},
}

// TestHostileNamesEverywhere: a name in a record is a name in every form of every tool.
func TestHostileNamesEverywhere(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	in, base := hostileArchive(t, dir), packed(t, "kernel-only", at("base.tar.gz"))
	if o := call(t, command(t, "runner-attest", "--generate-key", at("KEY"))); o.code != 0 {
		t.Fatal(o)
	}
	for i, f := range hostileForms {
		t.Run(fmt.Sprintf("%s %s", f.tool, f.args), func(t *testing.T) {
			out := at(fmt.Sprintf("out%d", i))
			o := call(t, command(t, f.tool, strings.Fields(strings.NewReplacer("OUT", out, "IN", in, "BASE", base, "KEY", at("KEY")).Replace(f.args))...))
			if o.code == 2 || o.code == 3 || o.code == 5 {
				t.Fatal(o)
			}
			text := o.stdout
			if strings.Contains(f.args, "OUT") {
				inert(t, "text", o.stdout)
				text = string(testkit.Read(t, out))
			}
			inert(t, "text", o.stderr)
			inert(t, f.form, text)
			if f.form == "signed" {
				text = statement(t, text) // JSON, which is not shown as it is
			}
			if all := text + o.stderr; f.shows != strings.Contains(all, "evil") && f.shows {
				t.Errorf("the name is not there: %s", testkit.Clip(all))
			}
		})
	}
}

// colors are the commands of a terminal that a tool itself writes.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// inert checks that a form has nothing of a name that its reader would act on.
func inert(t *testing.T, form, text string) {
	t.Helper()
	text = colors.ReplaceAllString(text, "")
	raws := []string{"\x1b", "\r", "\n@all", "\n::error", "\u009b", "\u202e", "\u2066"}
	if form == "otlp" { // for programs: JSON escapes what is below a blank (schemas/OTEL.md)
		form, raws = "lines", raws[:4]
	}
	for _, raw := range raws {
		if strings.Contains(text, raw) {
			t.Errorf("%q is there as it is: %s", raw, testkit.Clip(text))
		}
	}
	if !utf8.ValidString(text) {
		t.Error("not UTF-8")
	}
	switch form {
	case "json", "lines", "signed":
		d := json.NewDecoder(strings.NewReader(text))
		for n := 0; ; n++ {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) && (n == 1 || n > 0 && form == "lines") {
				break
			} else if err != nil || form != "lines" && n > 0 {
				t.Fatalf("document %d: %v", n, err)
			}
		}
	case "xml":
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			testkit.Must(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
				t.Error("a name is an element")
			}
		}
	case "html":
		if strings.Contains(text, "<script>x") || strings.Contains(text, "evil`x`**b**[l](x:h)<") {
			t.Error("a name is an element")
		}
	case "markdown":
		for line := range strings.Lines(text) {
			if rest := codeSpan.ReplaceAllString(line, ""); strings.Contains(rest, "evil") && !strings.HasPrefix(line, "    ") {
				t.Errorf("a name is outside of a code span: %s", line)
			}
		}
	}
}

// codeSpan is one whose text has single backticks.
var codeSpan = regexp.MustCompile("`` .*? ``")

// statement is the text that an envelope or a bundle signs.
func statement(t *testing.T, text string) string {
	var v struct {
		Payload  string
		Envelope struct{ Payload string } `json:"dsseEnvelope"`
	}
	testkit.Must(t, json.Unmarshal([]byte(text), &v))
	b, err := base64.StdEncoding.DecodeString(v.Payload + v.Envelope.Payload)
	testkit.Must(t, err)
	return string(b)
}

// hostileArchive is a recorded run with a tool call, whose file, program, tool and arguments have the name, and its intents too.
func hostileArchive(t *testing.T, dir string) string {
	t.Helper()
	quoted := func(s string) string {
		b, err := schemas.Marshal(s)
		testkit.Must(t, err)
		return string(b[1 : len(b)-1])
	}
	once := quoted(string(schemas.Text(hostileName)))
	logged := quoted(string(schemas.Text(quoted(strings.ToValidUTF8(hostileName, "")))))
	for name, by := range map[string]string{"1-raw.ndjson": once, "policy.log.ndjson": logged, "sdk.log.ndjson": logged} {
		b := testkit.Read(t, filepath.Join("../testdata/runs/tool-times", name))
		for _, word := range []string{"input.txt", "mcp-server", "read_file"} {
			b = bytes.ReplaceAll(b, []byte(word), []byte(by))
		}
		end := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
		seal := regexp.MustCompile(`"sha256":"[0-9a-f]*"`).ReplaceAll(b[end:], fmt.Appendf(nil, `"sha256":"%x"`, sha256.Sum256(b[:end])))
		write(t, filepath.Join(dir, name), string(b[:end])+string(seal))
	}
	hostileIntents(t, filepath.Join(dir, "intents.log.ndjson"), logged)
	windows, logs := logFlags(dir)
	in, out := filepath.Join(dir, "1-raw.ndjson"), ""
	for i, c := range [][]string{append([]string{"runner-normalize"}, windows...), append([]string{"runner-correlate"}, logs...), {"runner-pack", "-o", filepath.Join(dir, "in.tar.gz")}} {
		o := call(t, command(t, c[0], append(c[1:], in)...))
		if o.code != 0 {
			t.Fatalf("%s: %v", c[0], o)
		}
		inert(t, "text", o.stderr)
		in, out = filepath.Join(dir, fmt.Sprintf("stage%d", i)), o.stdout
		write(t, in, out)
	}
	return filepath.Join(dir, "in.tar.gz")
}
