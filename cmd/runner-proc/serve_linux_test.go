package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// serveLines serves lines in the world where nothing is allowed to run.
func serveLines(t testing.TB, in string) (code int, answers []string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = app().Call(t.Context(), strings.NewReader(in), &out, &errs, []string{"serve", "--world", worldSandboxed})
	return code, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestServeDenies: in the world without a policy, each request is answered and nothing runs.
func TestServeDenies(t *testing.T) {
	const frame = `"FgAAAAEAAQAAAAIAAAAvYQAAAAAAAAAAAAAAABEAAAAB"`
	code, answers := serveLines(t, `{"id":1,"op":"run","frame":"GAAAAAEAAQAAAAIAAAAvYQAAAAAAAAAAAAAAABEAAAABAQAAAAAAAAAAAAAAAAAAAA=="}`+"\n"+`{"id":2,"op":"spawn","frame":`+frame+"}")
	if code != tool.ExitOK || len(answers) != 2 {
		t.Errorf("exit %d: %q", code, answers)
	}
	for _, a := range answers {
		if strings.Contains(a, `"handle":1`) || strings.Contains(a, "exit_code") {
			t.Error(a)
		}
	}
}

// FuzzServe: every line is answered, with its id, and no answer is without a form.
func FuzzServe(f *testing.F) {
	for _, s := range []string{`{"id":1,"op":"run","frame":"AAAA"}`, `{"id":"x","op":"wait","handle":65537}`, `{"op":"read","handle":1,"from":"stdout","max":1}`, `{"id":null,"op":"kill","signal":99}`, `[]`, `{"id":{"a":1},"op":"drop","handle":0}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") || line == "" {
			return
		}
		code, answers := serveLines(t, line+"\n")
		if code != tool.ExitOK || len(answers) != 1 || !json.Valid([]byte(answers[0])) || !strings.HasPrefix(answers[0], `{"id":`) {
			t.Errorf("%q: exit %d, %q", line, code, answers)
		}
	})
}
