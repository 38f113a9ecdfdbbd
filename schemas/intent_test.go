package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// intentLine is a line with this type, payload and rest.
func intentLine(kind, payload, rest string) string {
	return `{"schema":"` + SchemaIntent + `","run_id":"` + testRun + `","seq":0,"intent_type":"` + kind + `","payload":` + payload + rest + `}`
}

const withKey = `,"idempotency_key":"k 1"`

// TestIntentForm: whatever order, blanks and escapes a line was written with, it is written in one form, and no number
// loses a digit.
func TestIntentForm(t *testing.T) {
	for in, want := range map[string]string{
		`{ "z" : 1.50, "a":[ -0, 1E+400e ],"A":{"c":null,"b":true} }`:                         "",
		`{ "z" : 1.50, "a":[ -0, 1E+3, 12345678901234567890123.0 ],"A":{"c":null,"b":true} }`: `{"A":{"b":true,"c":null},"a":[-0,1E+3,12345678901234567890123.0],"z":1.50}`,
		`{"\u0061\/":"\u00e9\u001f\t\ud83d\ude00"}`:                                           `{"a/":"é\u001f\t😀"}`,
		`{"é":1,"z":2,"😀":3,"":4,"\uffff":5}`:                                                 "{\"\":4,\"z\":2,\"é\":1,\"\uffff\":5,\"😀\":3}",
		`{}`: `{}`,
	} {
		i, err := ParseIntent([]byte(intentLine("mail.send", in, "")))
		if want == "" {
			if err == nil {
				t.Errorf("%s is taken", in)
			}
			continue
		}
		if err != nil || string(i.Payload) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", in, err, i.Payload, want)
			continue
		}
		line, err := Marshal(i)
		if again := intentLine("mail.send", want, ""); err != nil || string(line) != again {
			t.Errorf("written as\n%s, %v\nwant\n%s", line, err, again)
		}
	}
	one := uint64(0)
	i, err := ParseIntent([]byte(intentLine("x.y", "{}", `,"amount":0,"labels":["a","b"]`)))
	if err != nil || !reflect.DeepEqual(i, &Intent{Schema: SchemaIntent, RunID: testRun, IntentType: "x.y", Payload: []byte("{}"), Labels: []string{"a", "b"}, Amount: &one}) {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestIntentRefused: each fault has its reason and a message that says what was expected.
func TestIntentRefused(t *testing.T) {
	const file, get = `{"path":"a","text":""}`, `{"method":"GET","url":"https://h/"}`
	at := func(payload, old, new string) string { return strings.Replace(payload, old, new, 1) }
	for _, c := range []struct{ why, line, say string }{
		{WhyJSON, `{`, ""},
		{WhyJSON, `null`, "expected one object"},
		{WhyJSON, `[]`, ""},
		{WhyJSON, intentLine("a.b", `{"x":1,"x":2}`, ""), ""},
		{WhyJSON, intentLine("a.b", `{"x":"\ud800"}`, ""), ""},
		{WhyJSON, intentLine("a.b", "{\"x\":\"\xff\"}", ""), ""},
		{WhySchema, `{}`, "expected \"assay.runner.intent.v0\""},
		{WhySchema, at(intentLine("a.b", "{}", ""), "intent.v0", "intent.v1"), "schema is"},
		{WhyRunID, at(intentLine("a.b", "{}", ""), testRun, "a/b"), "run_id is"},
		{WhyField, at(intentLine("a.b", "{}", ""), `"seq":0,`, ""), "key seq is missing"},
		{WhyField, at(intentLine("a.b", "{}", ""), `"seq":0`, `"seq":null`), "key seq is null"},
		{WhyField, at(intentLine("a.b", "{}", ""), `"seq":0`, `"seq":0.0`), ""},
		{WhyField, intentLine("a.b", "{}", `,"note":1`), ""},
		{WhyType, intentLine("", "{}", ""), "intent_type is"},
		{WhyType, intentLine("files", "{}", ""), "intent_type is"},
		{WhyType, intentLine("Files.Write", "{}", ""), "intent_type is"},
		{WhyType, intentLine(strings.Repeat("a", 63)+".b", "{}", ""), "intent_type is"},
		{WhyField, intentLine("a.b", "[]", ""), "payload: expected an object"},
		{WhyField, intentLine("a.b", "{}", `,"idempotency_key":""`), "idempotency_key is"},
		{WhyField, intentLine("a.b", "{}", `,"idempotency_key":" a"`), "idempotency_key is"},
		{WhyField, intentLine("a.b", "{}", `,"idempotency_key":"é"`), "idempotency_key is"},
		{WhyField, intentLine("a.b", "{}", `,"idempotency_key":"`+strings.Repeat("a", 257)+`"`), "idempotency_key is"},
		{WhyField, intentLine("a.b", "{}", `,"labels":[]`), "0 labels"},
		{WhyField, intentLine("a.b", "{}", `,"labels":["b","a"]`), "labels is not sorted"},
		{WhyField, intentLine("a.b", "{}", `,"labels":["B"]`), "label is"},
		{WhyField, intentLine("a.b", "{}", `,"amount":-1`), ""},
		{WhyField, intentLine("a.b", "{}", `,"amount":1.0`), ""},
		{WhyField, intentLine("a.b", "{}", `,"amount":9007199254740992`), "amount is"},
		{WhyField, intentLine("a.b", `{"x":1e400}`, ""), "beyond a 64-bit float"},
		{WhyField, intentLine("a.b", strings.Repeat(`{"a":`, 15)+"[]"+strings.Repeat("}", 15), ""), "too many objects"},
		{WhyField, intentLine("a.b", `{"x":"`+strings.Repeat("a", MaxLogLine)+`"}`, ""), "at most 65536"},

		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":"","base64":""`), ""), "both text and base64"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `,"text":""`, ``), ""), "neither text nor base64"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"base64":"YR=="`), ""), "base64"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"base64":"YQ"`), ""), "base64"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":null`), ""), "text is null"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":1`), ""), "text is not a string"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":"","mode":512`), ""), "mode is 512"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":"","mode":4.0`), ""), "mode is"},
		{WhyField, intentLine(IntentFilesWrite, at(file, `"text":""`, `"text":"","owner":0`), ""), "the key \"owner\""},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "GET", "POST"), ""), "POST without idempotency_key"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "GET", "CONNECT"), withKey), "method is"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "GET", "get"), ""), "method is"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"text":"","json":1}`), ""), "both text and json"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":[]}`), ""), "headers is not an object"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"Accept":"a"}}`), ""), "in lower case"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"accept":"a\r\nx: y"}}`), ""), "printable ASCII"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"accept":["a"]}}`), ""), "printable ASCII"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"host":"a"}}`), ""), "for who sends"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"x-http-method-override":"DELETE"}}`), ""), "for who sends"},
		{WhyField, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"x_original_url":"/admin"}}`), ""), "for who sends"},
		{WhySecret, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"authorization":"Bearer x"}}`), ""), "secret header authorization"},
		{WhySecret, intentLine(IntentHTTPRequest, at(get, "}", `,"headers":{"x-api-key":"x"}}`), ""), "secret header x-api-key"},
	} {
		_, err := ParseIntent([]byte(c.line))
		var f *LineFault
		if !errors.As(err, &f) || f.Why != c.why || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") && c.why != WhyJSON {
			t.Errorf("%.300s\n got %v, want %s %q", c.line, err, c.why, c.say)
		}
	}
}

// TestIntentPaths: a path stays below the directory, whatever it is made of.
func TestIntentPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"a": true, "a/b/..c": true, "...": true, ".a/b.": true, "é": true, `\xff`: true, `\\`: true, "a b": true, "\n": true,
		strings.Repeat("a", 255): true, strings.Repeat("a/", 2047) + "a": true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/./b": false, "a/..": false, "../a": false,
		`\x41`: false, `\`: false, "a\x00b": false, strings.Repeat("a", 256): false, strings.Repeat("a/", 2048) + "a": false,
	} {
		quoted := AppendQuote(nil, path)
		i, err := ParseIntent([]byte(intentLine(IntentFilesWrite, `{"path":`+string(quoted)+`,"base64":"AP8=","mode":0}`, "")))
		if (err == nil) != ok {
			t.Errorf("%.40q: %v, want taken %v", path, err, ok)
			continue
		}
		if err != nil {
			continue
		}
		if w, err := i.FileWrite(); err != nil || !reflect.DeepEqual(w, &IntentFileWrite{Path: path, Content: []byte{0, 255}}) {
			t.Errorf("%+v, %v", w, err)
		}
		if _, err := i.HTTPRequest(); err == nil {
			t.Error("a file to write is a request")
		}
	}
	i, err := ParseIntent([]byte(intentLine(IntentFilesWrite, `{"text":"é","path":"a"}`, "")))
	testkit.Must(t, err)
	if w, err := i.FileWrite(); err != nil || w.Mode != 0o644 || string(w.Content) != "é" {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestIntentURLs: a URL has one spelling, and leads where a rule that reads it thinks.
func TestIntentURLs(t *testing.T) {
	for u, ok := range map[string]bool{
		"http://h": true, "https://h.example:8443/a/b?c=d&e=%2F": true, "http://127.0.0.1/": true, "http://[::1]:80/x": true, "https://h/a@b:c": true,
		"https://h/a..b/...": true, "https://h?q": true, "https://h/a//b": true,
		"": false, "/a": false, "ftp://h/": false, "HTTP://h/": false, "https://H/": false, "https:///a": false, "https://u@h/": false, "https://u:p@h/": false,
		"https://h/#f": false, "https://h/a b": false, "https://h/\n": false, "https://h:0/": false, "https://h:65536/": false, "https://h:/": false,
		"https://h/%zz": false, "https://h/é": false, "https://h/a/../b": false, "https://h/.": false, "https://h/%2e%2E/b": false, "https://h\\@g/": false,
		"http://[::1": false, "http://[::ffff:102:304]/": false, "http://[fe80::1]/": true, "http://[0:0::1]/": false, "http://[::ffff:1.2.3.4%25a]/": false, "http://[1.2.3.4]/": false,
	} {
		quoted := AppendQuote(nil, u)
		_, err := ParseIntent([]byte(intentLine(IntentHTTPRequest, `{"method":"HEAD","url":`+string(quoted)+`}`, "")))
		if (err == nil) != ok {
			t.Errorf("%q: %v, want taken %v", u, err, ok)
		}
	}
}

// TestIntentRequest: what a request is made of.
func TestIntentRequest(t *testing.T) {
	for body, want := range map[string]*IntentRequest{
		``:                         {Headers: []Header{{"accept", "a"}, {"x-note", ""}}},
		`,"text":""`:               {Headers: []Header{{"accept", "a"}, {"x-note", ""}}, Body: []byte{}},
		`,"base64":"AA=="`:         {Headers: []Header{{"accept", "a"}, {"x-note", ""}}, Body: []byte{0}},
		`,"json":{"b":1.0,"a":[]}`: {Headers: []Header{{"accept", "a"}, {"content-type", "application/json"}, {"x-note", ""}}, Body: []byte(`{"a":[],"b":1.0}`)},
		`,"json":null`:             {Headers: []Header{{"accept", "a"}, {"content-type", "application/json"}, {"x-note", ""}}, Body: []byte(`null`)},
	} {
		i, err := ParseIntent([]byte(intentLine(IntentHTTPRequest, `{"method":"M-SEARCH","url":"https://h/","headers":{"x-note":"","accept":"a"}`+body+`}`, withKey)))
		testkit.Must(t, err)
		want.Method, want.URL = "M-SEARCH", "https://h/"
		if r, err := i.HTTPRequest(); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", body, r, err, want)
		}
		if _, err := i.FileWrite(); err == nil {
			t.Error("a request is a file to write")
		}
	}
	for _, name := range []string{"authorization", "proxy-authorization", "x-authorization", "cookie", "set-cookie", "cookie2", "x-auth", "auth", "api-key", "x_api_key", "apikey", "x-csrf-token", "x-amz-security-token", "db-password", "my-credentials", "x-secret", "access-key"} {
		if !SecretHeader(name) && !intentRefused.MatchString(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	for _, name := range []string{"accept", "content-type", "author", "x-authority", "user-agent", "if-match", "x-request-id", "compass", "keyboard", "x-tokens-left", "oauth-scope"} {
		if SecretHeader(name) {
			t.Errorf("%s is a secret", name)
		}
	}
}

// TestIntentSchemaForms: the JSON Schema has the forms of the parser.
func TestIntentSchemaForms(t *testing.T) {
	f, _ := FormOf(SchemaIntent)
	patterns := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["pattern"].(string); ok {
				patterns[p] = true
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	var tree any
	testkit.Must(t, json.Unmarshal(f.JSONSchema(), &tree))
	walk(tree)
	for _, form := range []string{intentTypeForm, intentKeyForm, intentLabelForm, intentMethodForm, intentURLForm, intentHeaderForm, intentValueForm, base64Form, intentRefusedForm, intentSecretForm} {
		if !patterns[form] {
			t.Errorf("%s has no pattern %s", f.File, form)
		}
	}
}

// randomPayload is a payload of a known type, or nearly one.
func randomPayload(r *rand.Rand, kind string) string {
	all := map[string][]string{
		IntentFilesWrite:  {`"path":"a/b"`, `"path":"é"`, `"path":"../a"`, `"path":"a/"`, `"text":"x"`, `"base64":"AA=="`, `"base64":"A"`, `"mode":420`, `"mode":600`, `"mode":"a"`, `"x":1`},
		IntentHTTPRequest: {`"method":"GET"`, `"method":"POST"`, `"method":"CONNECT"`, `"method":"x"`, `"url":"https://h/a?b"`, `"url":"http://[::1]/"`, `"url":"https://u@h/"`, `"headers":{}`, `"headers":{"accept":"x"}`, `"headers":{"Accept":"x"}`, `"headers":{"cookie":"x"}`, `"headers":{"host":"x"}`, `"headers":{"x-rewrite-url":"x"}`, `"headers":{"x-method":"x"}`, `"headers":{"a":1}`, `"headers":{"a":" x"}`, `"text":""`, `"base64":""`, `"json":{"b":1,"a":2}`, `"json":null`, `"text":null`},
	}[kind]
	var list []string
	taken := map[string]bool{}
	for range r.IntN(6) {
		m := pick(r, all...)
		if key, _, _ := strings.Cut(m, ":"); !taken[key] {
			taken[key] = true
			list = append(list, m)
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

// TestIntentParserAgreesWithSchema: the parser takes a payload exactly if the JSON Schema does.
func TestIntentParserAgreesWithSchema(t *testing.T) {
	s := compileForm(t, SchemaIntent)
	r := rand.New(rand.NewPCG(19, 20))
	taken, refused := 0, 0
	for range 20000 {
		kind := pick(r, IntentFilesWrite, IntentHTTPRequest)
		line := []byte(intentLine(kind, randomPayload(r, kind), pick(r, "", withKey)))
		_, err := ParseIntent(line)
		if ok := schemaTakes(s, line); ok != (err == nil) {
			t.Fatalf("schema accepts: %v, parser says: %v\n%s", ok, err, line)
		}
		if err == nil {
			taken++
		} else {
			refused++
		}
	}
	if taken < 500 || refused < 500 {
		t.Errorf("one-sided test: %d taken, %d refused", taken, refused)
	}
}

// FuzzIntent: what the parser takes, the JSON Schema takes; it is written in one form, which reads back the same; and
// two decoders see the same values in it.
func FuzzIntent(f *testing.F) {
	form, _ := FormOf(SchemaIntent)
	s := compileForm(f, SchemaIntent)
	var doc struct{ Examples []json.RawMessage }
	testkit.Must(f, json.Unmarshal(form.JSONSchema(), &doc))
	for _, e := range doc.Examples {
		f.Add([]byte(e))
	}
	r := rand.New(rand.NewPCG(21, 22))
	for range 30 {
		kind := pick(r, IntentFilesWrite, IntentHTTPRequest)
		f.Add([]byte(intentLine(kind, randomPayload(r, kind), withKey)))
	}
	f.Add([]byte(intentLine("a.b", `{"\u0061":[1.50,-0,1E5,"\ud83d\ude00"],"A":{}}`, `,"labels":["a"],"amount":7`)))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		i, err := ParseIntent(line)
		if !bytes.Equal(line, before) {
			t.Fatal("ParseIntent changed the line")
		}
		if err != nil {
			var fault *LineFault
			if layer, _ := LayerOf(LayerIntents); !errors.As(err, &fault) || !slices.Contains(layer.Log.Whys, fault.Why) {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		if !schemaTakes(s, line) {
			t.Fatalf("the parser takes it, the schema does not: %q", line)
		}
		b, err := Marshal(i)
		testkit.Must(t, err)
		again, err := ParseIntent(b)
		if err != nil || !reflect.DeepEqual(again, i) {
			t.Fatalf("written and read again: %v\n%s\n%s", err, line, b)
		}
		if c, _ := Marshal(again); !bytes.Equal(b, c) {
			t.Fatalf("two forms\n%s\n%s", b, c)
		}
		if got, want := numbersOf(t, b), numbersOf(t, line); !reflect.DeepEqual(got, want) {
			t.Fatalf("other values\n%v\n%v", got, want)
		}
	})
}

// numbersOf decodes a line with a general decoder that keeps the text of numbers.
func numbersOf(t *testing.T, line []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	testkit.Must(t, d.Decode(&v))
	return v
}
