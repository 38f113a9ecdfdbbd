package schemas

import "testing"

// TestMessages: what is wrong with a JSON text is said by its keys.
func TestMessages(t *testing.T) {
	decode := func(text string, v any) string {
		if err := Unmarshal([]byte(text), v); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, c := range [][2]string{
		{`{"schema":1}`, "key schema is a number, expected a text"},
		{`{"notes":{}}`, "key notes is an object, expected a list"},
		{`{"notes":["a",true]}`, "key notes[1] is true, expected a text"},
		{`{"ringbuf_drops":-1}`, "key ringbuf_drops is -1, expected an integer from 0 to 18446744073709551615"},
		{`{"ringbuf_drops":"1"}`, "key ringbuf_drops is a text, expected an integer from 0 to 18446744073709551615"},
		{`{"x":1}`, "unknown key x"},
		{`{"schema":"a","schema":"b"}`, "key schema is there twice"},
		{`{"schema":"a"`, "not valid JSON at byte 13: unexpected EOF"},
		{`{"schema":"a"}}`, "not valid JSON at byte 14: invalid character '}' after top-level value"},
		{`[]`, "the whole is a list, expected an object"},
		{`{"redaction":[]}`, "key redaction is a list, expected an object"},
	} {
		if got := decode(c[0], new(Health)); got != c[1] {
			t.Errorf("%s: %s, expected %s", c[0], got, c[1])
		}
	}
	if got := decode(`{"bindings":[{"window":1}]}`, new(Report)); got != "key bindings[0].window is a number, expected an object" {
		t.Error(got)
	}
	if got := decode(`{"files":{"a/b.c":{"bytes":"x"}}}`, new(Manifest)); got != "key files.a/b.c.bytes is a text, expected an integer" {
		t.Error(got)
	}
}
