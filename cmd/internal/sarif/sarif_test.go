package sarif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	r := Report{Tool: "runner-x", Version: "v1", Rules: []Rule{{ID: "a"}, {ID: "b", Text: "what", Help: "do"}},
		Findings: []Finding{{Rule: "b", Level: LevelError, Message: "[x](http://evil) {0}\n\x1b[31m\u202e", File: "a b/%2e#?.json", Line: 3, Logical: "<b>", Fingerprint: "f"}}}
	var w bytes.Buffer
	if err := r.Write(&w); err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{"tool":{"driver":{"name":"runner-x","version":"v1","rules":[{"id":"a","shortDescription":{"text":""}},{"id":"b","shortDescription":{"text":"what"},"help":{"text":"do"}}]}},` +
		`"invocations":[{"executionSuccessful":true}],"results":[{"ruleId":"b","ruleIndex":1,"level":"error","message":{"text":"\\[x\\](http://evil) {{0}}\\n\\x1b\\[31m\\u202e"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%20b/%252e%23%3F.json"},"region":{"startLine":3}},"logicalLocations":[{"fullyQualifiedName":"<b>"}]}],"partialFingerprints":{"runnerFinding/v1":"f"}}]}]}` + "\n"
	if got := w.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// More findings than a reader takes are counted, not lost without a word.
func TestMany(t *testing.T) {
	r := Report{Tool: "x", Rules: []Rule{{ID: "a"}}}
	for i := range MaxFindings + 7 {
		r.Findings = append(r.Findings, Finding{Rule: "a", Level: LevelNote, Message: fmt.Sprint(i)})
	}
	var w bytes.Buffer
	if err := r.Write(&w); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs []struct{ Results []json.RawMessage }
	}
	if err := json.Unmarshal(w.Bytes(), &got); err != nil || len(got.Runs[0].Results) != MaxFindings || !strings.Contains(w.String(), "7 more findings are left out") {
		t.Errorf("%v, %d results", err, len(got.Runs[0].Results))
	}
	r.Findings = []Finding{{Rule: "none"}}
	if r.Write(&w) == nil {
		t.Error("a finding of no rule was written")
	}
}
