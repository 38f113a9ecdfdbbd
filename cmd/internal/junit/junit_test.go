package junit

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	hostile := "]]><x a=\"1\">&\x00\x1b[31m\u202e\ufffe"
	s := Suite{Name: "runner-x", Cases: []Case{{Name: "ok", Class: "c"}, {Name: hostile, Class: hostile, Outcome: Failed, Message: hostile, Text: hostile},
		{Name: "e", Outcome: Broken}, {Name: "s", Outcome: Skipped}}}
	var w bytes.Buffer
	if err := s.Write(&w); err != nil {
		t.Fatal(err)
	}
	got := w.String()
	for _, want := range []string{`<testsuite name="runner-x" tests="4" failures="1" errors="1" skipped="1">`, `<testcase classname="c" name="ok"></testcase>`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	elements := 0
	d := xml.NewDecoder(&w)
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := token.(xml.StartElement); ok {
			elements++
		}
	}
	if elements != 9 || strings.ContainsAny(got, "\x00\x1b\u202e") {
		t.Errorf("%d elements in %s", elements, got)
	}
}
