//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// smuggled is one case of testdata/smuggle: what a client sends, and the expected result.
type smuggled struct {
	expect string // a reason code, or forwarded
	answer string // the id of the answer; none; eof: the input ends here
	input  string
}

func readSmuggled(t *testing.T, file string) (c smuggled) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		count := 1
		if n, ok := strings.CutPrefix(key, "repeat "); ok {
			key = "input"
			if count, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
		}
		switch key {
		case "comment":
		case "expect":
			c.expect = text
		case "answer":
			c.answer = text
		case "input":
			if text, err = strconv.Unquote(text); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			c.input += strings.Repeat(text, count)
		default:
			t.Fatalf("%s: %q", file, key)
		}
	}
	return c
}

// TestSmuggle: a refused message never reaches the server, is recorded once and
// answered under the right id, and the session continues.
func TestSmuggle(t *testing.T) {
	files, err := filepath.Glob("testdata/smuggle/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			if c := readSmuggled(t, file); c.answer == "eof" {
				unfinished(t, c)
			} else {
				smuggle(t, c)
			}
		})
	}
}

func smuggle(t *testing.T, c smuggled) {
	p := startProxy(t, readOnly, withFlags("--max-line", "64K"))
	canary := callLine(`"canary"`, "read_canary", `{}`)
	p.send(strings.TrimSuffix(c.input, "\n")) // send ends a line
	want := ""
	if c.expect == "forwarded" {
		want = c.input
	}
	var said []string
	p.send(canary)
	want += canary + "\n"
	for {
		line := p.receive()
		var a struct {
			ID     json.RawMessage `json:"id"`
			Error  *rpcError       `json:"error"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if string(a.ID) == `"canary"` {
			break
		}
		said = append(said, string(a.ID))
		if refused := a.Error != nil && a.Error.Data != nil; refused != strings.HasPrefix(c.expect, "M_") || refused && a.Error.Data.ReasonCode != c.expect {
			t.Errorf("the answer to %s is %s", c.expect, line)
		}
	}
	if c.answer == "none" && said != nil || c.answer != "none" && (len(said) != 1 || said[0] != c.answer) {
		t.Errorf("answers under the ids %q, want %s", said, c.answer)
	}
	if code, rest := p.end(); code != 0 || rest != "" {
		t.Errorf("exit %d, and %q", code, rest)
	}
	if got := p.seen(); got != want {
		t.Errorf("the server saw %q, want %q", testkit.Clip(got), testkit.Clip(want))
	}
	refused, decisions := p.entries("runner.policy.message_refused"), p.entries("assay.tool.decision")
	switch {
	case strings.HasPrefix(c.expect, "M_"):
		if len(refused) != 1 || refused[0]["reason_code"] != c.expect || refused[0]["direction"] != "client" || len(decisions) != 1 {
			t.Errorf("records %v, %d decisions", refused, len(decisions))
		}
	case strings.HasPrefix(c.expect, "P_"):
		if len(refused) != 0 || len(decisions) != 2 || decisions[0]["reason_code"] != c.expect || decisions[0]["tool"] != "write_file" {
			t.Errorf("records %v, decisions %v", refused, decisions)
		}
	default:
		if len(refused) != 0 {
			t.Errorf("records %v", refused)
		}
	}
}

// unfinished is a case whose input ends inside a line.
func unfinished(t *testing.T, c smuggled) {
	p := startProxy(t, allowAll)
	p.in.Write([]byte(c.input))
	if code, rest := p.end(); code != 0 || rest != "" || p.seen() != "" {
		t.Errorf("exit %d, said %q, the server saw %q", code, rest, p.seen())
	}
	if r := p.entries("runner.policy.message_refused"); len(r) != 1 || r[0]["reason_code"] != c.expect {
		t.Errorf("%v", r)
	}
}
