package gatepolicy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// says is a policy that gives this answer to everything.
type says string

func (s says) Eval(context.Context, []byte) ([]byte, error) { return []byte(s), nil }

// does is a policy that is a function.
type does func(context.Context) ([]byte, error)

func (f does) Eval(ctx context.Context, _ []byte) ([]byte, error) { return f(ctx) }

const (
	yes      = `{"allowed":true,"requiresApproval":false,"reasons":[]}`
	item     = `{"index":0,"type":"http.request","allowed":true,"requiresApproval":false,"reasons":[],"approvalReasons":[]}`
	fetched  = `{"url":"https://a/","method":"GET","allowed":true,"reasons":[]}`
	good1    = `{"policyVersion":"3","bundle":` + yes + `,"intents":[` + item + `],"network":[` + fetched + `]}`
	wasmText = "the bytes of a module"
)

// TestAnswers: what an answer decides, and that each other form of one denies.
func TestAnswers(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(good1, old) {
			t.Fatal(old)
		}
		return strings.Replace(good1, old, new, 1)
	}
	for answer, want := range map[string]string{
		good1: "",
		with(`[`+item+`]`, `[`+item+`]`+`,"files":[],"calls":[]`): reasonUndecided,
		with(`[`+item+`]`, `[]`):                                  reasonUndecided,
		with(`[`+fetched+`]`, `[]`):                               reasonUndecided,
		with(`"url":"https://a/"`, `"url":"https://b/"`):          reasonUndecided,
		with(`[`+fetched+`]`, `[`+fetched+`,{"url":"https://a/","method":"GET","allowed":false,"reasons":["n"]}]`):                                                 "n",
		with(`[`+fetched+`]`, `[{"index":0,"url":"https://a/","method":"GET","allowed":true,"reasons":[],"requiresApproval":false}]`):                              "",
		with(`{"allowed":true,"requiresApproval":false,"reasons":[]}`, `{"allowed":false,"requiresApproval":false,"reasons":["b","a"]}`):                           "a b denied_by_bundle",
		with(`{"allowed":true,"requiresApproval":false,"reasons":[]}`, `{"allowed":false,"requiresApproval":false,"reasons":[]}`):                                  reasonBundle,
		with(`"http.request","allowed":true`, `"http.request","allowed":false`):                                                                                    reasonPolicy,
		with(`"http.request","allowed":true,"requiresApproval":false,"reasons":[]`, `"http.request","allowed":false,"requiresApproval":false,"reasons":["z","y"]`): "y z",
		"":                               "policy_error:wasm: there is no answer",
		"null":                           "policy_error:wasm: the answer has no policyVersion",
		"[]":                             "policy_error:wasm: the answer is no decision",
		"true":                           "policy_error:wasm: the answer is no decision",
		good1 + good1:                    "policy_error:wasm: the answer is no decision",
		`[{"result":` + good1 + `}]`:     "policy_error:wasm: the answer is no decision",
		with(`"policyVersion":"3",`, ``): "policy_error:wasm: the answer has no policyVersion",
		with(`"policyVersion":"3"`, `"policyVersion":3`):                               "policy_error:wasm: the answer is no decision",
		with(`"policyVersion":"3"`, `"policyVersion":"`+strings.Repeat("x", 65)+`"`):   "policy_error:wasm: policyVersion has 65 bytes, at most 64",
		with(`"bundle":`+yes+`,`, ``):                                                  "policy_error:wasm: the answer has no bundle",
		with(`"bundle":{"allowed":true,`, `"bundle":{`):                                "policy_error:wasm: bundle: the key allowed is missing",
		with(`"bundle":{"allowed":true,`, `"bundle":{"allowed":null,`):                 "policy_error:wasm: bundle: the key allowed is missing",
		with(`"bundle":{"allowed":true,`, `"bundle":{"allowed":"true",`):               "policy_error:wasm: the answer is no decision",
		with(`"bundle":{"allowed":true,`, `"bundle":{"Allowed":true,`):                 "policy_error:wasm: the answer is no decision",
		with(`"bundle":{"allowed":true,`, `"bundle":{"allowed":true,"index":0,`):       "policy_error:wasm: bundle: the key index, which this decision does not have",
		with(`"bundle":{"allowed":true,`, `"bundle":{"allowed":false,"allowed":true,`): "policy_error:wasm: the answer is no decision",
		with(`,"intents":[`+item+`]`, ``):                                              "policy_error:wasm: the answer has not both intents and network",
		with(`"intents":[`+item+`]`, `"intents":null`):                                 "policy_error:wasm: the decisions of the class intent are no list",
		with(`"intents":[`+item+`]`, `"intents":{}`):                                   "policy_error:wasm: the decisions of the class intent are no list",
		with(`"intents":[`, `"files":null,"intents":[`):                                "policy_error:wasm: the decisions of the class file are no list",
		with(`[`+item+`]`, `[`+item+`,`+item+`]`):                                      "policy_error:wasm: a decision of the class intent: number 2: index 0 is that of no item, or there twice",
		with(`"index":0,"type"`, `"index":1,"type"`):                                   "policy_error:wasm: a decision of the class intent: number 1: index 1 is that of no item",
		with(`"index":0,"type"`, `"type"`):                                             "policy_error:wasm: a decision of the class intent: number 1: the key index is missing",
		with(`"type":"http.request"`, `"type":"files.write"`):                          "policy_error:wasm: a decision of the class intent: number 1: index 0 is of another type",
		with(`,"approvalReasons":[]`, ``):                                              "policy_error:wasm: a decision of the class intent: number 1: the key approvalReasons is missing",
		with(`{"url":"https://a/"`, `{"index":0,"url":"https://b/"`):                   "policy_error:wasm: a decision of the class network: number 1: index 0 is another request",
		with(`"policyVersion"`, `"x":1,"policyVersion"`):                               "policy_error:wasm: the answer is no decision",
	} {
		d, needs := decide(t, NewWasm([]byte(wasmText), nil, says(answer)), all())
		got := strings.Join(d.Bundle.Reasons, " ")
		if want == "" && !d.Bundle.Allowed || want != "" && d.Bundle.Allowed || !strings.Contains(got, want) || len(needs) != 0 {
			t.Errorf("%s: %q, expected %q", answer, got, want)
		}
		if strings.HasPrefix(want, reasonError) && (d.Files[0].Allowed || d.Intents[0].Allowed || d.Network[0].Allowed || d.Calls[0].Allowed || d.PolicyVersion == "3") {
			t.Errorf("%s: %+v", answer, d)
		}
	}
	tcp := all()
	tcp.Network = []gate.Exchange{{Scheme: "tcp", Host: "a", Port: 1, URL: "tcp://a:1"}}
	for method, want := range map[string]bool{"": true, `"method":null,`: true, `"method":"",`: true, `"method":"GET",`: false} {
		d, _ := decide(t, NewWasm(nil, nil, says(with(`"url":"https://a/","method":"GET",`, `"url":"tcp://a:1",`+method))), tcp)
		if d.Bundle.Allowed != want {
			t.Errorf("%s: %+v", method, d)
		}
	}
	d, _ := decide(t, NewWasm(nil, nil, says(with(`{"allowed":true,"requiresApproval":false,"reasons":[]}`, `{"allowed":false,"requiresApproval":false,"reasons":["x"]}`))), all())
	if d.Files[0].Allowed || d.Calls[0].Allowed || !d.Intents[0].Allowed || d.Files[0].Reasons[0] != reasonBundle {
		t.Errorf("%+v", d)
	}
}

// TestEvaluators: an error, a panic, too late an answer and too long a one are denials; the end of the context is an error.
func TestEvaluators(t *testing.T) {
	for want, f := range map[string]does{
		"policy_error:wasm: no memory":                        func(context.Context) ([]byte, error) { return []byte(good1), errors.New("no memory") },
		"policy_error:wasm: it failed with an internal error": func(context.Context) ([]byte, error) { panic("x") },
		"policy_error:wasm: it takes longer than 20ms":        func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return []byte(good1), nil },
		"policy_error:wasm: the answer has more than 32 MiB":  func(context.Context) ([]byte, error) { return make([]byte, maxAnswer+1), nil },
	} {
		x := NewWasm([]byte(wasmText), []byte("{}"), f)
		if strings.Contains(want, "takes longer") { // the others have time
			x.bound = 20 * time.Millisecond
		}
		if d, _ := decide(t, x, all()); !slices.Contains(d.Bundle.Reasons, want) || d.PolicyVersion != x.Ref().Digest[7:19] {
			t.Errorf("%s: %+v", want, d)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if d, _, err := NewWasm(nil, nil, says(good1)).Decide(ended, all()); err == nil || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	// printf 'the bytes of a module' | sha256sum
	if r := NewWasm([]byte(wasmText), []byte("{}"), nil).Ref(); r.Kind != gate.PolicyWasm || r.Data != "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" || r.Digest != "sha256:939cce87ac131d956a85d6ad9c6d5ac46e4cabd31edbc7967ebd2d9f68f1712c" {
		t.Errorf("%+v", r)
	}
}

// script is a command that is a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy")
	testkit.Must(t, os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return name
}

// TestExec: a command gets the input, and its output is the decision if it ends well.
func TestExec(t *testing.T) {
	for text, want := range map[string]string{
		"cat >/dev/null; echo '" + good1 + "'": "",
		"echo '" + good1 + "'":                 "", // it need not read its input
		`case "$(cat)" in *'"runId":"r"'*'"files":[{"index":0,"op":"add"'*) echo '` + good1 + `';; esac`: "",
		"echo '" + good1 + "'; exit 1":     "policy_error:exec: the command ended with exit status 1",
		"echo '" + good1 + "'; kill -9 $$": "policy_error:exec: the command was killed by signal 9 (killed)",
		"true":                             "policy_error:exec: there is no answer",
		"yes":                              "policy_error:exec: the answer has more than 32 MiB",
		"sleep 100":                        "policy_error:exec: it takes longer than 1s",
		"sleep 100 & echo '" + good1 + "'": "", // what it leaves is ended
		"echo '" + good1 + "'; echo >>$0":  "policy_error:exec: its program, or a file that its words name, has changed",
	} {
		x, err := NewExec(script(t, text), nil)
		testkit.Must(t, err)
		if x.bound = externalTime; text == "sleep 100" {
			x.bound = time.Second
		}
		d, _ := decide(t, x, all())
		if got := strings.Join(d.Bundle.Reasons, " "); d.Bundle.Allowed != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, expected %q", text, got, want)
		}
	}
	for line, code := range map[string]int{"": tool.ExitUsage, "a | b": tool.ExitUsage, "/none/x": tool.ExitNotFound, "/": tool.ExitCannotRun} {
		var coded *tool.Error
		if _, err := NewExec(line, nil); !errors.As(err, &coded) || coded.Code != code {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestExecDigest: the digest of a command follows from its words and the files that they name, and a change of one is seen.
func TestExecDigest(t *testing.T) {
	file := script(t, "echo '"+good1+"'")
	digest := func(line string) string {
		x, err := NewExec(line, nil)
		testkit.Must(t, err)
		return x.Ref().Digest
	}
	first := digest("sh " + file)
	if first != digest("sh "+file) || first == digest("sh "+file+" x") || first == digest("sh -e "+file) || digest("sh a 'b c'") == digest("sh 'a b' c") {
		t.Error("digests of other commands are equal, or those of one are not")
	}
	x, err := NewExec("sh "+file, nil)
	testkit.Must(t, err)
	if d, _ := decide(t, x, all()); !d.Bundle.Allowed {
		t.Errorf("%+v", d)
	}
	testkit.Must(t, os.WriteFile(file, []byte("echo '"+good1+"' # edited\n"), 0o755))
	if d, _ := decide(t, x, all()); d.Bundle.Allowed || digest("sh "+file) == first {
		t.Errorf("%+v", d)
	}
}

// TestCombine: all policies must allow, and what they ask for is united.
func TestCombine(t *testing.T) {
	if _, err := Combine(); err == nil {
		t.Error("no policy is one")
	}
	asks := NewWasm([]byte(wasmText), nil, says(strings.Replace(good1, `"http.request","allowed":true,"requiresApproval":false`, `"http.request","allowed":true,"requiresApproval":true`, 1)))
	_, alone := decide(t, asks, all())
	if marshal(t, alone) != `[{"why":"policy wasm","count":1,"keys":[]}]` {
		t.Errorf("%+v", alone)
	}
	p := parse(t, head+"version: v1\ndefault: allow\n"+strings.Replace(people, "threshold: 1", "threshold: 2", 1)+"rules: [{id: no, deny: call, tool: bad}, {id: ask, require_approval: file, by: [bob], count: 1}]\n")
	q := parse(t, head+"version: v2\ndefault: allow\nrules: [{id: net, deny: network}]\n")
	c, err := Combine(p, asks, q)
	testkit.Must(t, err)
	in := all()
	in.Calls = append(in.Calls, call(1, "bad", "allow"))
	d, needs := decide(t, c, in)
	if d.PolicyVersion != "v1+3+v2" || d.Bundle.Allowed || !d.Bundle.RequiresApproval || marshal(t, d.Bundle.Reasons) != `["denied_by_rule:net","denied_by_rule:no"]` {
		t.Errorf("%+v", d)
	}
	if !d.Intents[0].RequiresApproval || d.Network[0].Rule != "net" || d.Network[0].Allowed || d.Calls[1].Rule != "no" || !d.Calls[0].Allowed || d.Files[0].Rule != "ask" {
		t.Errorf("%+v", d)
	}
	if len(needs) != 2 || needs[0].Why != "policy wasm" || needs[0].Count != 2 || len(needs[0].Keys) != 2 || needs[1].Why != "rule ask" || needs[1].Count != 1 || len(needs[1].Keys) != 1 {
		t.Errorf("%+v", needs)
	}
	if refs := c.Refs(); len(refs) != 3 || refs[0].Kind != gate.PolicyYAML || refs[0].Digest != p.digest || refs[1].Kind != gate.PolicyWasm || len(c.Keys()) != 2 {
		t.Errorf("%+v", refs)
	}
	// One policy alone says the same as before it was joined with itself, but for its version.
	twice, err := Combine(p, p)
	testkit.Must(t, err)
	one, _ := decide(t, p, in)
	both, more := decide(t, twice, in)
	if both.PolicyVersion = one.PolicyVersion; marshal(t, one) != marshal(t, both) || len(more) != 1 {
		t.Errorf("%s\n%s", marshal(t, one), marshal(t, both))
	}
}
