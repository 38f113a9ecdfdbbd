package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// said is all that a scan says.
type said struct {
	code, soft string
	idBad      bool
	vals       [fieldCount]Value
	tools      []ToolEntry
}

func (s *Scanner) said() said {
	out := said{code: s.broken, soft: s.doubtful, idBad: s.idBad, tools: append([]ToolEntry(nil), s.tools...)}
	if s.broken != "" {
		return said{code: s.broken, soft: ""} // how far it came depends on the chunks
	}
	for i, v := range s.vals {
		v.Text = append([]byte(nil), v.Text...)
		out.vals[i] = v
	}
	return out
}

// inChunks scans b in pieces of n bytes.
func inChunks(s *Scanner, b []byte, n int) said {
	s.Begin()
	for len(b) > 0 && s.Feed(b[:min(n, len(b))]) {
		b = b[min(n, len(b)):]
	}
	s.Finish()
	return s.said()
}

func TestScan(t *testing.T) {
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	many := func(name string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return b.String() + name
	}
	for _, c := range []struct{ line, code string }{
		{`{}`, ""},
		{" \t{ \t} \t", ""},
		{"{}\r", ""},
		{"{}\r ", schemas.ReasonBadJSON},
		{"{}\r\r", schemas.ReasonBadJSON},
		{"{\r}", schemas.ReasonBadJSON},
		{"\r{}", schemas.ReasonBadJSON},
		{"{}\x00", schemas.ReasonBadJSON},
		{"\xef\xbb\xbf{}", schemas.ReasonBadJSON},
		{``, schemas.ReasonBadJSON},
		{`{`, schemas.ReasonBadJSON},
		{`{}}`, schemas.ReasonBadJSON},
		{`{}{}`, schemas.ReasonBadJSON},
		{`{]`, schemas.ReasonBadJSON},
		{`[]`, schemas.ReasonBatch},
		{` [{}]`, schemas.ReasonBatch},
		{`1`, schemas.ReasonNotJSONRPC},
		{`"x"`, schemas.ReasonNotJSONRPC},
		{`null`, schemas.ReasonNotJSONRPC},
		{`x`, schemas.ReasonBadJSON},
		{`{"a"}`, schemas.ReasonBadJSON},
		{`{"a":}`, schemas.ReasonBadJSON},
		{`{"a":1,}`, schemas.ReasonBadJSON},
		{`{,}`, schemas.ReasonBadJSON},
		{`{a:1}`, schemas.ReasonBadJSON},
		{`{'a':1}`, schemas.ReasonBadJSON},
		{`{"a":[1,]}`, schemas.ReasonBadJSON},
		{`{"a":[,1]}`, schemas.ReasonBadJSON},
		{`{"a":[1}`, schemas.ReasonBadJSON},
		{`{"a":[]]`, schemas.ReasonBadJSON},
		{`{"a":tru}`, schemas.ReasonBadJSON},
		{`{"a":truex}`, schemas.ReasonBadJSON},
		{`{"a":True}`, schemas.ReasonBadJSON},
		{`{"a":NaN}`, schemas.ReasonBadJSON},
		{`{"a":01}`, schemas.ReasonBadJSON},
		{`{"a":-}`, schemas.ReasonBadJSON},
		{`{"a":+1}`, schemas.ReasonBadJSON},
		{`{"a":1.}`, schemas.ReasonBadJSON},
		{`{"a":.1}`, schemas.ReasonBadJSON},
		{`{"a":1e}`, schemas.ReasonBadJSON},
		{`{"a":1e+}`, schemas.ReasonBadJSON},
		{`{"a":0x1}`, schemas.ReasonBadJSON},
		{`{"a":1 2}`, schemas.ReasonBadJSON},
		{`{"a":[0,-0,1.5,1e9,1E-2,-0.0e+10,123456789012345678901234567890]}`, ""},
		{`{"a":[true,false,null,"",[],{}]}`, ""},
		{"{\"a\":\"\x1f\"}", schemas.ReasonBadJSON},
		{"{\"a\":\"\t\"}", schemas.ReasonBadJSON},
		{"{\"a\":\"\x7f\"}", ""},
		{`{"a":"\x41"}`, schemas.ReasonBadJSON},
		{`{"a":"\u12g4"}`, schemas.ReasonBadJSON},
		{`{"a":"\u123"}`, schemas.ReasonBadJSON},
		{`{"a":"\`, schemas.ReasonBadJSON},
		{`{"a":"\"\\\/\b\f\n\r\t\u00e9\uFFFF"}`, ""},
		{`{"a":"\ud83d\ude00"}`, ""},
		{`{"a":"\ud83d"}`, schemas.ReasonBadUTF8},
		{`{"a":"\ude00"}`, schemas.ReasonBadUTF8},
		{`{"a":"\ude00\ud83d"}`, schemas.ReasonBadUTF8},
		{`{"a":"\ud83d\ud83d\ude00"}`, schemas.ReasonBadUTF8},
		{`{"a":"\ud83d\n"}`, schemas.ReasonBadUTF8},
		{`{"a":"\ud83dx"}`, schemas.ReasonBadUTF8},
		{`{"\ud83d":1}`, schemas.ReasonBadUTF8},
		{"{\"a\":\"é€😀\u2028\"}", ""},
		{"{\"a\":\"\xff\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xc0\x80\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xc3\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xed\xa0\x80\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xe0\x9f\xbf\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xf4\x90\x80\x80\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xf5\x80\x80\x80\"}", schemas.ReasonBadUTF8},
		{"{\"a\":\"\xe2\x82", schemas.ReasonBadJSON},
		{`{"a":1,"a":2}`, schemas.ReasonDuplicateKey},
		{`{"a":1,"\u0061":2}`, schemas.ReasonDuplicateKey},
		{`{"x":{"y":[{"a":1,"a":1}]}}`, schemas.ReasonDuplicateKey},
		{`{"x":{"a":1,"A":1}}`, ""},
		{`{"a":1,"A":2}`, schemas.ReasonCaseKey},
		{`{"id":1,"ID":2}`, schemas.ReasonCaseKey},
		{`{"ID":2}`, schemas.ReasonCaseKey},
		{`{"ıd":2}`, schemas.ReasonCaseKey},
		{`{"paramſ":{}}`, schemas.ReasonCaseKey},
		{`{"param\u017f":{}}`, schemas.ReasonCaseKey},
		{`{"params":{"toKen":1,"to\u212aen":2}}`, schemas.ReasonCaseKey},
		{`{"params":{"toKen":1,"toKen":2}}`, schemas.ReasonDuplicateKey},
		{`{"params":{"NAME":1}}`, schemas.ReasonCaseKey},
		{`{"params":{"arguments":{"NAME":1,"name":2}}}`, ""},
		{`{"params":{"name":1,"na\u006de":1}}`, schemas.ReasonDuplicateKey},
		{"{" + many(`"k7":1}`), schemas.ReasonDuplicateKey},
		{"{" + many(`"K7":1}`), schemas.ReasonCaseKey},
		{`{"x":{` + many(`"k7":1}}`), schemas.ReasonDuplicateKey},
		{`{"x":{` + many(`"K7":1}}`), ""},
		{deep(maxDepth - 1), ""},
		{deep(maxDepth), schemas.ReasonTooDeep},
	} {
		s := &Scanner{allKeys: true}
		got := s.Line([]byte(c.line))
		if (got == schemas.ReasonDuplicateKey) != (c.code == schemas.ReasonDuplicateKey) && strings.Contains(c.line, "k99") && c.code == schemas.ReasonDuplicateKey && got == schemas.ReasonCaseKey {
			got = schemas.ReasonDuplicateKey // among many keys of a protocol object the two are not told apart
		}
		if got != c.code {
			t.Errorf("%q: %q, want %q", testkit.Clip(c.line), got, c.code)
		}
		whole := s.said()
		for n := range 9 {
			if cut := inChunks(&Scanner{allKeys: true}, []byte(c.line), n+1); !reflect.DeepEqual(cut, whole) {
				t.Errorf("%q in chunks of %d: %+v, want %+v", testkit.Clip(c.line), n+1, cut, whole)
			}
		}
	}
}

// A string that JavaScript has cut may end in half a surrogate pair. It may pass in
// results, but not in what the proxy compares.
func TestScanSurrogates(t *testing.T) {
	for line, code := range map[string]string{
		`{"result":{"content":[{"text":"\ud83d"}]}}`:       "",
		`{"result":{"content":[{"text":"\ud83d\\x\"y"}]}}`: "",
		`{"result":{"content":[{"text":"\ude00\ud83d"}]}}`: "",
		`{"result":{"content":[{"text":"\ud83d\ud83d"}]}}`: "",
		`{"result":{"content":[{"text":"\ud83d\q"}]}}`:     schemas.ReasonBadJSON,
		`{"result":{"\ud83d":1}}`:                          schemas.ReasonBadUTF8,
		`{"id":"\ud83d"}`:                                  schemas.ReasonBadUTF8,
		`{"method":"\ud83d"}`:                              schemas.ReasonBadUTF8,
	} {
		s := &Scanner{surrogate: true}
		if got := s.Line([]byte(line)); got != code {
			t.Errorf("%s: %q, want %q", line, got, code)
		}
		for n := range 5 {
			if got := inChunks(s, []byte(line), n+1); got.code != code {
				t.Errorf("%s in chunks of %d: %q, want %q", line, n+1, got.code, code)
			}
		}
	}
}

// What the Scanner notes is what a decoder reads.
func TestScanNotes(t *testing.T) {
	line := []byte(`{"jsonrpc":"2.0","id":"\u0061\"","method":"tools\/call","params":{"_meta":{"a":[1]} ,"name":"n\ud83d\ude00é","arguments":{"name":"x"},"requestState":"s"}}`)
	s := &Scanner{allKeys: true}
	if code := s.Line(line); code != "" {
		t.Fatal(code)
	}
	m, code := s.Message(line)
	if code != "" || m.Kind != Request || m.Method != MethodCall || m.ID != (ID{`sa"`, `"\u0061\""`}) {
		t.Errorf("%q %+v", code, m)
	}
	v := s.vals
	for f, want := range map[Field]string{FieldMeta: `{"a":[1]}`, FieldName: `"n\ud83d\ude00é"`, FieldArguments: `{"name":"x"}`, FieldParamsState: `"s"`} {
		if got := string(line[v[f].Start:v[f].End]); got != want {
			t.Errorf("field %d: %s, want %s", f, got, want)
		}
	}
	if string(v[FieldName].Text) != "n😀é" {
		t.Errorf("name %q", v[FieldName].Text)
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1.5e3,"\u00e9\n"]}}}`,
		`{"result":{"tools":[{"name":"a"},{"name":"b"},3,[],"x"],"isError":false},"jsonrpc":"2.0","id":"1"}`,
		"{\"a\":\"\xf0\x9f\x98\x80\xff\"}", `{"a":"\ud83d\ude00\ud83d"}`, `{"id":1,"ID":2}`, "{}\r", `[{}]`, `{"a":-0.0E+1}`,
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		b = bytes.ReplaceAll(b, []byte("\n"), nil)
		for _, client := range []bool{true, false} {
			s := &Scanner{allKeys: client, surrogate: !client, listTools: true}
			code := s.Line(b)
			whole := s.said()
			if s.broken == "" && (!json.Valid(b) || !utf8.Valid(b) || bytes.TrimLeft(b, " \t")[0] != '{') {
				t.Fatalf("takes what is not valid: %q", b)
			}
			if s.broken == schemas.ReasonBadJSON && json.Valid(b) && !bytes.Contains(b, []byte("\r")) {
				t.Fatalf("refuses valid JSON: %q", b)
			}
			if cut := inChunks(s, b, int(n)+1); !reflect.DeepEqual(cut, whole) {
				t.Fatalf("in chunks of %d: %+v, want %+v", n+1, cut, whole)
			}
			if code == "" {
				checkNotes(t, s, b)
			}
		}
	})
}

// checkNotes compares what was noted with a decoder's reading.
func checkNotes(t *testing.T, s *Scanner, b []byte) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	compareNote(t, s, b, top, "id", FieldID)
	compareNote(t, s, b, top, "method", FieldMethod)
	var in map[string]json.RawMessage
	if json.Unmarshal(top["params"], &in) == nil && in != nil {
		compareNote(t, s, b, in, "name", FieldName)
		compareNote(t, s, b, in, "arguments", FieldArguments)
	}
	in = nil
	if json.Unmarshal(top["result"], &in) == nil && in != nil {
		compareNote(t, s, b, in, "isError", FieldIsError)
		compareNote(t, s, b, in, "resultType", FieldResultType)
		var tools []json.RawMessage
		if json.Unmarshal(in["tools"], &tools) == nil && tools != nil {
			if len(tools) != len(s.tools) {
				t.Fatalf("%d tools, noted %d", len(tools), len(s.tools))
			}
			for i, r := range s.tools {
				if !bytes.Equal(bytes.TrimSpace(tools[i]), b[r.Start:r.End]) {
					t.Fatalf("tool %d is %s, noted %s", i, tools[i], b[r.Start:r.End])
				}
			}
		}
	}
}

func compareNote(t *testing.T, s *Scanner, b []byte, in map[string]json.RawMessage, key string, f Field) {
	v := s.vals[f]
	raw, ok := in[key]
	if ok != (v.Kind != 0) || ok && !bytes.Equal(bytes.TrimSpace(raw), b[v.Start:v.End]) {
		t.Fatalf("%s is %s, noted %c %s", key, raw, v.Kind, b[v.Start:v.End])
	}
	var text string
	if ok && v.Kind == '"' && limits[f] > 0 && !v.Cut && json.Unmarshal(raw, &text) == nil && text != string(v.Text) {
		t.Fatalf("%s is %q, noted %q", key, text, v.Text)
	}
}

func BenchmarkScan(b *testing.B) {
	for _, c := range []struct{ name, unit string }{
		{"plain", "The quick brown fox jumps over the lazy dog 0123456789. "},
		{"source", `	if err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n`},
		{"chinese", "敏捷的棕色狐狸跳过了懒狗。"},
		{"escaped", `\u654f\u6377\u7684`},
	} {
		unit := strings.ReplaceAll(c.unit, "\t", " ")
		line := []byte(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat(unit, (1<<20)/len(unit)) + `"}]},"jsonrpc":"2.0","id":1}`)
		benchmarkScan(b, c.name, line)
	}
}

func benchmarkScan(b *testing.B, name string, line []byte) { benchmarkBy(b, name, line, NewServer()) }

func benchmarkBy(b *testing.B, name string, line []byte, s *Scanner) {
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			if code := s.Line(line); code != "" {
				b.Fatal(code)
			}
		}
	})
}

// TestNullError: a null error beside a result is no error.
func TestNullError(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`:   "false",
		`{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`:   "false",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`:         "true",
		`{"jsonrpc":"2.0","id":1,"error":{},"result":{}}`:     schemas.ReasonNotJSONRPC,
		`{"jsonrpc":"2.0","id":null,"error":null,"result":1}`: schemas.ReasonBadID,
	} {
		s := NewServer()
		got := s.Line([]byte(line))
		if got == "" {
			if _, got = s.Message([]byte(line)); got == "" {
				got = fmt.Sprint(s.Failed())
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestSalvage: the ids of lines that programs wrote wrongly, and of no others.
func TestSalvage(t *testing.T) {
	for line, want := range map[string]string{
		"{\"id\":1,\"result\":\"\xff\"}":              "n1",
		`{"id":"a","result":{"x":NaN}}`:               "sa",
		`{"id":"NaN","result":-Infinity}`:             "sNaN",
		`[{"id":1,"result":1},{"id":2,"method":"x"}]`: "n1",
		`[{"id":1,"result":1},{"id":"2","error":{}}]`: "n1 s2",
		`{"id":1,"id":2,"result":1}`:                  "",
		`{"id":1,"ID":2,"result":1}`:                  "",
		`{"id":1,"result":1} x`:                       "",
		`{"id":1.0,"result":NaN}`:                     "",
		`{"result":NaN}`:                              "",
		`[`:                                           "",
	} {
		var got []string
		for _, id := range Salvage([]byte(line), true) {
			got = append(got, id.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
