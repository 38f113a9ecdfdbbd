package gatepolicy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const (
	keyAlice = "MCowBQYDK2VwAyEAosBt8g3CmpEmistyBYIOgBid1omx+/79sugAM9H8sd0="
	keyBob   = "MCowBQYDK2VwAyEAr33bWqN/2+jE6s6s/Nu1s3vi5oJQzUvYT0S+tyM8vH4="
	keyP256  = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEODax3zolFsGojYw6Ts1HPv57ae8WMZkH/D9SHi9NJ8ys715nyJL/hCUMP9Y7zOXh0Znq+ARo465HUYKA9LWEHQ=="
	keyP384  = "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEuJ54LcdNFhzmX+gDqkAiLH8gp6rl18/MZQw8xx54L7w2W+PpNyWGp74zPqJUi07qlz05EHl2kZ+oFuqXLaM1YXss5N0UsegtaLvwSYUPhx9Xe7QsdNcQ/odQALNvHwqm"

	people = "approvals: {threshold: 1, keys: {alice: " + keyAlice + ", bob: " + keyBob + "}}\n"
)

// problem is a faulty file after its first line, and what is said of it. The schema does not see those that are beyond it.
type problem struct {
	text, want string
	beyond     bool
}

func ruled(rule string) string { return "rules: [{id: x, " + rule + "}]" }

func undone(more string) string {
	return "rollbacks: [{id: x, host: a.example, method: POST, path: /orders, " + more + "}]"
}

var problems = []problem{
	{"defualt: deny", `p.yaml:2:1: unknown key "defualt" in the policy; expected one of schema, version, default, approvals, rules, require, rollbacks; type default:`, false},
	{"version: 1.0", `p.yaml:2:10: version is the number "1.0"; expected a string; type "1.0"`, false},
	{"version: a b", `version is "a b"; expected 1 to 64 of A-Z a-z 0-9 _ . -`, false},
	{"default: ask", `default is "ask"; expected one of allow, deny, require_approval`, false},
	{"approvals: {threshold: 0}", "threshold is the number \"0\"; expected a number from 1 to 64", false},
	{"approvals: {threshold: two}", `threshold is the string "two"; expected a number from 1 to 64`, false},
	{"approvals: {threshold: 2, keys: {alice: " + keyAlice + "}}", "threshold is 2, and there is 1 key; expected at most 1: each key counts once", true},
	{"approvals: {keys: {}}", "keys is empty; expected names, each with its public key", false},
	{"approvals: {keys: [a]}", "keys is a list; expected names", false},
	{"approvals: {keys: {al ice: " + keyAlice + "}}", `the name of a key is "al ice"`, false},
	{"approvals: {keys: {alice: 1}}", "a key is the number", false},
	{"approvals: {keys: {alice: '?'}}", "the key of alice: it is not base64; expected the base64 of a public key, ed25519 or P-256", false},
	{"approvals: {keys: {alice: '-----BEGIN PUBLIC KEY-----'}}", "it has the first or the last line of a PEM file", false},
	{"approvals: {keys: {alice: " + keyAlice[:40] + "}}", "the key of alice: ", true},
	{"approvals: {keys: {alice: " + keyP384 + "}}", "an ECDSA key on P-384, expected ed25519 or P-256", true},
	{"approvals: {keys: {alice: " + keyAlice + ", bob: " + keyAlice + "}}", "p.yaml:2:94: the key of bob is that of alice; expected each key once", true},
	{"rules: {}", "rules is an object; expected a list", false},
	{"rules: [{allow: file}]", "a rule without id; expected the key id, which decisions name; type id: a-name", false},
	{"rules: [{id: x, allow: file, op: add}, {id: x, allow: file}]", "id x is that of the rule in line 2; expected an id of its own", true},
	{"rules: [{id: x, allow: file, op: add}]\nrequire: [{id: x, that: 'true'}]", "id x is that of the rule in line 2", true},
	{"rules: [{id: x}]", "a rule without allow, deny or require_approval; expected one of them", false},
	{ruled("allow: file, deny: file"), "a rule with both allow and deny; expected one of them", false},
	{ruled("allow: files"), `the class of allow is "files"; expected one of file, intent, network, call, any; type file`, false},
	{ruled("allow: []"), "allow is empty; expected at least one", false},
	{ruled("allow: [file, any]"), "any in a list; expected any alone: it is all classes; type allow: any", false},
	{ruled("allow: [file, file]"), `allow has "file" twice; expected each once`, false},
	{ruled("allow: file, host: a"), "the key host in a rule about file, which is a key of intent, network; expected one of path, op, kind, max_size, min_size, when", false},
	{ruled("allow: [file, intent], op: add"), "the key op in a rule about file, intent, which is a key of file; expected one of path, max_size, when", false},
	{ruled("allow: any, path: a"), "the key path in a rule about file, intent, network, call, which is a key of file, intent; expected one of when", false},
	{ruled("allow: call, url_path: /a"), "the key url_path in a rule about call", false},
	{ruled("allow: network, min_size: 1"), "the key min_size in a rule about network", false},
	{ruled("allow: file, paths: a"), `unknown key "paths" in the rule`, false},
	{ruled("allow: file, path: /etc"), `path "/etc": it has a component that no path has; expected a path below the workspace, such as docs/a.md, *.md or docs/**; type etc`, true},
	{ruled("allow: file, path: a/../b"), "it has a component that no path has", true},
	{ruled("allow: file, path: ''"), "it has 0 bytes, expected 1 to 1024", false},
	{ruled("allow: file, path: 'a**b'"), "it has ** beside other characters, which is a whole component: a/**/b", true},
	{ruled("allow: file, path: 'a{b,c}'"), `it has {, which is no wildcard here: \{ is the character`, true},
	{ruled("allow: file, path: 'a\\b'"), "it has a backslash, which is written as two", true},
	{ruled("allow: file, path: [a, a]"), `path has "a" twice`, false},
	{ruled("allow: file, op: create"), `op is "create"; expected one of add, delete, modify, replace, link, mode`, false},
	{ruled("allow: file, kind: directory"), `kind is "directory"; expected one of file, dir,`, false},
	{ruled("allow: file, max_size: 1MB"), `max_size is the string "1MB"; expected a number of bytes, such as 4096, 64KiB or 16MiB`, false},
	{ruled("allow: file, max_size: -1"), "max_size is the number", false},
	{ruled("allow: file, max_size: 1.5"), "max_size is the number", false},
	{ruled("allow: file, max_size: 9999999999999G"), "expected a number of bytes", true},
	{ruled("allow: file, when: '.pth'"), "when is not a jq program that may run here: there is no .pth, did you mean .path?", true},
	{ruled("allow: [file, call], when: '.tool == 1'"), "there is no .tool; the keys are .index", true},
	{ruled("allow: file, when: '.after.sise == 1'"), "there is no .sise in .after, did you mean .size?", true},
	{"require: [{id: x, that: '.evidence.complet'}]", "there is no .complet in .evidence, did you mean .complete?", true},
	{"require: [{id: x, that: 'all(.files[]; .pth == null)'}]", "there is no .pth in .files[], did you mean .path?", true},
	{ruled("allow: file, when: 'now > 1'"), "now is not available", true},
	{ruled("allow: file, when: '.a |'"), "when is not a jq program that may run here", true},
	{ruled("allow: file, when: ' '"), "or nothing but blanks", false},
	{ruled("allow: intent, type: 'http*'"), `type is "http*"; expected a type of intents such as files.write, or http.*`, false},
	{ruled("allow: intent, label: A"), `label is "A"`, false},
	{ruled("allow: intent, path: a, host: b"), "both path and host; expected one of them: path is of files.write, host of http.request", false},
	{ruled("allow: intent, type: http.request, path: a"), "the type files.write, whose key that is; type type: files.write", true},
	{ruled("allow: intent, type: files.write, url_path: /a"), "the type http.request, whose key that is", true},
	{ruled("allow: intent, host: 'https://a'"), `host is "https://a"; expected a name, *. and a name, or an address`, false},
	{ruled("allow: intent, host: 'a:80'"), "scheme, port and path are keys of their own", false},
	{ruled("allow: intent, host: 'a.*'"), "expected a name, *. and a name, or an address", false},
	{ruled("allow: intent, method: post"), `method is "post"; expected a method in upper case`, false},
	{ruled("allow: intent, url_path: a"), "it does not begin with a slash", false},
	{ruled("allow: intent, url_path: '/a?b=c'"), "it has one of ? % # ;", false},
	{ruled("allow: intent, url_path: /a//b"), "it has a component that no path has", true},
	{ruled("allow: network, decision: denied"), `decision is "denied"; expected one of allow, deny, replay, miss`, false},
	{ruled("allow: [network, call], decision: miss"), `decision is "miss"; expected one of allow, deny`, false},
	{ruled("allow: network, scheme: ftp"), `scheme is "ftp"`, false},
	{ruled("allow: network, port: 0"), "expected a number from 1 to 65535", false},
	{ruled("allow: network, status: 99"), "expected a number from 100 to 999", false},
	{ruled("allow: call, tool: 'a|b'"), `tool is "a|b"; expected the name of a tool`, true},
	{ruled("allow: file, by: alice"), "by in a rule without require_approval; expected no by: nobody is asked", false},
	{ruled("deny: file, count: 1"), "count in a rule without require_approval", false},
	{people + ruled("require_approval: file, by: alise"), `by has "alise", which is no key; expected names of approvals.keys: alice, bob; type alice`, true},
	{people + ruled("require_approval: file, count: 3"), "count is 3, and there are 2 keys", true},
	{people + ruled("require_approval: file, by: [alice], count: 2"), "count is 2, and there is 1 key", true},
	{strings.Replace(people, "1", "2", 1) + ruled("require_approval: file, by: [alice]"), "by has 1, and approvals.threshold is 2; expected the key count, or more names; type count: 1", true},
	{"rules: [{id: a, allow: file}, {id: b, deny: file, op: add}]", "no item reaches the rule b: the rule a before it takes all of its class", true},
	{"rules: [{id: a, allow: [file, call]}, {id: c, deny: [intent, network]}, {id: b, deny: any}]", "no item reaches the rule b", true},
	{"require: [{id: x}]", "a requirement without that; expected a jq program over the whole input", false},
	{"require: [{id: x, that: .evidnce}]", "there is no .evidnce, did you mean .evidence?", true},
	{"rollbacks: [{id: x, host: a.example}]", "a rollback without method", false},
	{undone("rollback: {method: PUT, path: /a}"), `method is "PUT"; expected one of DELETE, POST`, false},
	{undone("rollback: {path: /a}"), "a rollback without method; expected DELETE or POST; type method: DELETE", false},
	{undone("rollback: {method: DELETE}"), "a rollback without path", false},
	{undone("rollback: {method: DELETE, path: '/a?id={id}'}, id_from: 'json:$.id'"), "{id} is a whole component, and there is no query", false},
	{undone("rollback: {method: DELETE, path: '/a/x{id}'}, id_from: 'json:$.id'"), "{id} is a whole component", false},
	{undone("rollback: {method: DELETE, path: '/a/{id}'}"), "a path with {id}, and no id_from", false},
	{undone("rollback: {method: DELETE, path: /a}, id_from: 'json:$.id'"), "id_from, and no {id} in the path of the rollback", false},
	{undone("rollback: {method: DELETE, path: '/a/{id}'}, id_from: location"), `id_from has "location"; expected header:NAME in lower case, or json:$.NAME`, false},
	{undone("rollback: {method: DELETE, path: '/a/{id}'}, id_from: 'json:$.a[*]'"), "it leads to many places", true},
	{undone("rollback: {method: DELETE, path: '/a/../{id}'}, id_from: 'json:$.a'"), `path is "/a/../{id}"`, true},
	{undone("rollback: {method: DELETE, path: /a, headers: {Host: a}}"), `the name of a header is "Host"; expected a name in lower case`, false},
	{undone("rollback: {method: DELETE, path: /a, headers: {host: a}}"), "the header host; expected a header that does not follow from the rest of the request", false},
	{undone("rollback: {method: DELETE, path: /a, headers: {x: ' a'}}"), "printable ASCII without blanks at its ends", false},
	{undone("rollback: {method: DELETE, path: /a}, match: {json: {kind: a}}"), "it does not begin with $", false},
	{undone("rollback: {method: DELETE, path: /a}, match: {json: {$.kind: 1.5}}"), "expected a string, true or false, or a decimal integer", false},
}

// TestProblems: each fault of a file has its place, what was found, what was expected, and what to type; and the JSON
// Schema sees the same faults but for what a schema cannot say.
func TestProblems(t *testing.T) {
	s := policySchema(t)
	for _, x := range problems {
		text := head + x.text + "\n"
		_, err := Parse("p.yaml", []byte(text))
		var bad *strict.Problems
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), x.want) || len(bad.List) != 1 {
			t.Errorf("%s: %v, expected %q", x.text, err, x.want)
		}
		if err := s.Validate(asJSON(t, text)); (err == nil) != x.beyond {
			t.Errorf("%s: the schema says %v", x.text, err)
		}
	}
	for text, want := range map[string]string{
		"":                            "p.yaml:1:1: the file is empty; expected a gate policy; type schema: runner.gate_policy.v0",
		"default: deny":               "p.yaml:1:1: no schema; expected the key schema; type schema: runner.gate_policy.v0",
		"schema: runner.policy.v0":    `p.yaml:1:9: schema is "runner.policy.v0"; expected runner.gate_policy.v0`,
		"[]":                          "the policy is a list",
		head + "default: *x":          "expected",
		head + "default: deny\n---\n": "a second document",
	} {
		if _, err := Parse("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
	many := head + "rules:\n" + strings.Repeat("- {}\n", maxRules+1)
	if _, err := Parse("p.yaml", []byte(many)); err == nil || !strings.Contains(err.Error(), "more than 100 problems") {
		t.Error(err)
	}
	programs := head + "require:\n"
	for i := range maxPrograms + 1 {
		programs += "- {id: r" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ", that: 'true'}\n"
	}
	if _, err := Parse("p.yaml", []byte(programs)); err == nil || !strings.Contains(err.Error(), "more than 64 jq programs") {
		t.Error(err)
	}
}

// TestSchemaExamples: the JSON Schema takes what Parse takes, and its examples are policies.
func TestSchemaExamples(t *testing.T) {
	s := policySchema(t)
	form, _ := schemas.FormOf(schemas.SchemaGatePolicy)
	var doc struct{ Examples []json.RawMessage }
	testkit.Must(t, json.Unmarshal(form.JSONSchema(), &doc))
	if len(doc.Examples) == 0 {
		t.Error("no examples")
	}
	for _, ex := range doc.Examples {
		if _, err := Parse("example.json", ex); err != nil {
			t.Error(err)
		}
	}
	for _, text := range good {
		if err := s.Validate(asJSON(t, head+text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		parse(t, head+text)
	}
}

// good are policies that use all keys.
var good = []string{
	"", "default: require_approval\nversion: '2026-11'\n", people, "rules: []\n", "approvals: {threshold: 3}\n",
	"approvals:\n  keys:\n    eve: |\n      " + keyP256[:64] + "\n      " + keyP256[64:] + "\n",
	people + "rules: [{id: a, require_approval: any, by: [bob, alice], count: 2}]\n",
	"rules: [{id: a, deny: [file, intent], path: 'a/**', max_size: 64K, when: .index == 1}, {id: b, allow: [network, intent], scheme: [http, https], host: [a.example, '*.b', '::1', 10.0.0.1], port: 80, method: GET, url_path: [/, /a/], max_size: 1}]\n",
	"rules: [{id: a, allow: [network, call], decision: [allow, deny]}, {id: b, allow: call, tool: ['read_*', 'a\\[b\\]']}, {id: c, allow: network, status: 200}, {id: d, allow: [any]}]\n",
	"require: [{id: a, that: .evidence.complete}]\n",
	undone("match: {headers: {x-kind: order}, json: {$.kind: a, '$[\"b\"][0]': 1, $.c: true}}, id_from: ['header:x-id', 'json:$.id'], rollback: {method: POST, path: '/orders/{id}/cancel', headers: {x-reason: revert}}") + "\n",
	undone("rollback: {method: DELETE, path: /all/}") + "\n",
}

func policySchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	f, ok := schemas.FormOf(schemas.SchemaGatePolicy)
	if !ok {
		t.Fatal("gate policies have no form")
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(f.JSONSchema())))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	testkit.Must(t, c.AddResource(f.File, doc))
	return c.MustCompile(f.File)
}

// asJSON is what a file says, as the validator wants it.
func asJSON(t testing.TB, text string) any {
	t.Helper()
	var v any
	testkit.Must(t, yaml.Unmarshal([]byte(text), &v))
	b, err := json.Marshal(v)
	testkit.Must(t, err)
	x, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	testkit.Must(t, err)
	return x
}
