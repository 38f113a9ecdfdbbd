package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// intentLine is one line of the log of intents.
func intentLine(seq int, kind, payload, rest string) string {
	return fmt.Sprintf(`{"schema":%q,"run_id":%q,"seq":%d,"intent_type":%q,"payload":%s%s}`+"\n", schemas.SchemaIntent, testRun, seq, kind, payload, rest)
}

var oneIntent = intentLine(0, schemas.IntentHTTPRequest, `{"method":"POST","url":"https://a.test/b?c=d"}`, `,"idempotency_key":"k"`)

// badIntents are second lines that end the layer, by why.
var badIntents = map[string]string{
	schemas.WhyJSON:     `{`,
	schemas.WhySchema:   `{"schema":"assay.runner.intent.v1"}`,
	schemas.WhyRunID:    strings.Replace(intentLine(1, "a.b", "{}", ""), testRun, "run_02", 1),
	schemas.WhySeq:      intentLine(2, "a.b", "{}", ""),
	schemas.WhyType:     intentLine(1, "write", "{}", ""),
	schemas.WhyField:    intentLine(1, schemas.IntentFilesWrite, `{"path":"../a","text":""}`, ""),
	schemas.WhyConflict: intentLine(1, "a.b", "{}", `,"idempotency_key":"k"`),
	schemas.WhySecret:   intentLine(1, schemas.IntentHTTPRequest, `{"method":"GET","url":"https://a.test/?token=12345"}`, ""),
}

// intentArgs writes the log of intents, if there is one, and returns the flag for it.
func (w world) intentArgs(t testing.TB) []string {
	t.Helper()
	if w.intents == "" {
		return nil
	}
	b := []byte(w.intents)
	if w.intentLog != nil {
		b = collect(t, schemas.StreamIntentLog, b, *w.intentLog)
	}
	name := filepath.Join(t.TempDir(), "intents")
	testkit.Must(t, os.WriteFile(name, b, 0o666))
	return []string{"--intents", name}
}

// TestIntents: intents are written before the kernel lines, in their one form, and counted; they change nothing that
// the other layers say.
func TestIntents(t *testing.T) {
	quiet := world{kernel: agent, policy: one, sdk: oneSDK}
	with := quiet
	with.intents = oneIntent + "\n" + intentLine(1, "mail.send", `{ "b":1.0, "a":"\u00e9" }`, `,"labels":["x"]`)
	a, b := quiet.run(t), with.run(t)
	want := oneIntent + intentLine(1, "mail.send", `{"a":"é","b":1.0}`, `,"labels":["x"]`)
	if text := string(b.out); !strings.Contains(text, want) || strings.Index(text, want) > strings.Index(text, schemas.SchemaKernelEvent) || !strings.Contains(text, `"intents":2`) {
		t.Errorf("no %s in %s", want, text)
	}
	if !slices.Equal(a.kernel, b.kernel) || !slices.Equal(a.policy, b.policy) || !slices.Equal(a.sdk, b.sdk) || !slices.Equal(a.all(), b.all()) || a.health.SDKLayer != b.health.SDKLayer {
		t.Error("intents change other layers")
	}
	if !slices.IsSortedFunc(b.health.Notes, func(a, b string) int { return cmp.Compare(noteRank(a), noteRank(b)) }) {
		t.Errorf("not in their order: %q", b.health.Notes)
	}
	notes := slices.DeleteFunc(slices.Clone(b.health.Notes), func(n string) bool { return n == "s6_intents: intents=2 self-reported" })
	if !slices.Equal(notes, a.health.Notes) {
		t.Errorf("notes %q, without intents %q", b.health.Notes, a.health.Notes)
	}
	quiet.intents = "\n"
	if c := quiet.run(t); !slices.Equal(c.all(), a.all()) || !slices.Equal(c.health.Notes, a.health.Notes) {
		t.Errorf("a command that wants nothing reads differently: %q", c.all())
	}
}

// TestIntentSecrets: each place in which a secret would be recorded ends the layer.
func TestIntentSecrets(t *testing.T) {
	for payload, secret := range map[string]bool{
		`{"method":"GET","url":"https://a.test/?access_token=abc"}`:                                      true,
		`{"method":"GET","url":"https://a.test/ghp_0123456789abcdef"}`:                                   true,
		`{"method":"GET","url":"https://a.test/","headers":{"x-note":"password=abc"}}`:                   true,
		`{"method":"GET","url":"https://a.test/","headers":{"x-note":"eyJhbGciOiJIUzI1NiJ9"}}`:           true,
		`{"method":"GET","url":"https://a.test/","headers":{"authorization":"x"}}`:                       true,
		`{"method":"GET","url":"https://a.test/?q=token","headers":{"x-a":"--token","x-b":"something"}}`: false,
	} {
		j := world{kernel: agent, intents: intentLine(0, schemas.IntentHTTPRequest, payload, "")}.run(t)
		if got := slices.Contains(j.all(), "intents_log_invalid:1:secret"); got != secret || strings.Contains(string(j.out), "a.test") == secret {
			t.Errorf("%s: %q", payload, j.all())
		}
	}
}
