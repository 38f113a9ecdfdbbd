package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// A pipe line that a parser accepts is written again with the same bytes.
func TestPipeLinesAreCanonical(t *testing.T) {
	for _, f := range append(Forms(), DecisionLogForm) {
		parse := map[string]func([]byte) (any, error){
			SchemaProcess:      func(b []byte) (any, error) { return ParseProcess(b) },
			SchemaLogLine:      func(b []byte) (any, error) { return ParseLogLine(b) },
			SchemaBinding:      func(b []byte) (any, error) { return ParseBinding(b) },
			SchemaAmbiguity:    func(b []byte) (any, error) { return ParseAmbiguity(b) },
			SchemaNetworkRules: func(b []byte) (any, error) { return ParseNetworkRules(b) },
			SchemaFileRules:    func(b []byte) (any, error) { return ParseFileRules(b) },
			SchemaTime:         func(b []byte) (any, error) { return ParseTime(b) },
			SchemaPolicyEvent:  func(b []byte) (any, error) { return ParsePolicyEvent(b) },
			SchemaReport:       func(b []byte) (any, error) { return ParseReport(b) },
		}[f.Schema]
		if parse == nil {
			continue
		}
		var doc struct{ Examples []json.RawMessage }
		testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
		for _, ex := range doc.Examples {
			var line bytes.Buffer
			testkit.Must(t, json.Compact(&line, ex))
			v, err := parse(line.Bytes())
			testkit.Must(t, err)
			if again, err := Marshal(v); err != nil || !bytes.Equal(again, line.Bytes()) {
				t.Errorf("read and written: %s, %v\nexpected          %s", again, err, line.Bytes())
			}
		}
	}
}

// A process record has two writers: one is fast.
func TestProcessAppend(t *testing.T) {
	for i := range 1 << 4 {
		p := Process{Schema: SchemaProcess, RunID: "run_1", PID: 7, KernelPID: 1<<32 - 1}
		for bit, set := range []func(){func() { p.Depth = 3 }, func() { p.StartNS = 1<<64 - 1 }, func() { p.EndNS = 5 }, func() { p.NSPID, p.PIDNS = 2, 1<<32-1 }} {
			if i>>bit&1 == 1 {
				set()
			}
		}
		want, err := Marshal(p)
		testkit.Must(t, err)
		if got := p.AppendJSON(nil); !bytes.Equal(got, want) {
			t.Errorf("appended %s\nexpected %s", got, want)
		}
	}
}

// One message for each fault that only a decision line can have.
func TestDecisionLineMessages(t *testing.T) {
	const head = `{"specversion":"1.0","id":"0123456789abcdef-1","type":"assay.tool.decision","source":"runner-policy","data":{"session":"0123456789abcdef","seq":1,`
	allow := head + `"call":0,"attempt":1,"tool":"read_file","decision":"allow","reason_code":"P_ALLOW_DEFAULT","tool_call_id":"tc_1","tool_call_id_source":"callId","policy_digest":"sha256:` +
		strings.Repeat("0", 64) + `","start_ns":5,"targets":[],"targets_cut":false}}`
	deny := strings.NewReplacer(`"allow"`, `"deny"`, "P_ALLOW_", "P_DENY_", `"start_ns":5`, `"start_ns":5,"end_ns":6,"outcome":"denied"`).Replace(allow)
	for _, c := range []struct{ line, old, new, say string }{
		{allow, `def-1`, `def-2`, "expected SESSION-SEQ"},
		{allow, `"0123456789abcdef",`, `"0123456789abcdeF",`, "16 lower-case hex digits"},
		{allow, `"source":"runner-policy"`, `"source":"other"`, "source is"},
		{allow, `"1.0"`, `"1.1"`, "specversion is"},
		{allow, `P_ALLOW_DEFAULT`, `P_DENY_DEFAULT`, "reason_code is"},
		{allow, `"start_ns":5`, `"start_ns":5,"end_ns":6`, "only about to begin"},
		{allow, `"start_ns":5`, `"start_ns":5,"outcome":"completed"`, "only about to begin"},
		{allow, `"attempt":1`, `"attempt":0`, "attempt is 0"},
		{allow, `"call":0,`, ``, "key data.call is missing"},
		{allow, `"seq":1,`, ``, "key data.seq is missing"},
		{allow, `sha256:0`, `sha256:G`, "policy_digest is"},
		{allow, `"targets":[]`, `"targets":[` + manyTargets(65, 2) + `]`, "65 targets, at most 64"},
		{allow, `"targets":[]`, `"targets":[` + manyTargets(64, 257) + `]`, "more than 16384 bytes"},
		{allow, `"targets":[]`, `"targets":["/b","/a"]`, "not in byte order"},
		{allow, `"targets":[]`, `"targets":["/a","/a"]`, "repeated"},
		{allow, `"targets":[]`, `"targets":[""]`, "is empty"},
		{allow, `"targets":[]`, `"targets":["/\\x"]`, "escaped byte string"},
		{allow, `assay.tool.decision`, `runner.policy.call_started`, "type is"},
		{deny, `"end_ns":6,`, ``, "a denial without end_ns"},
		{deny, `"outcome":"denied"`, `"outcome":"completed"`, "a denial without"},
		{deny, `P_DENY_DEFAULT`, `P_ALLOW_RULE`, "reason_code is"},
	} {
		if _, err := ParseDecisionLine([]byte(c.line)); err != nil {
			t.Fatal(err)
		}
		bad := strings.Replace(c.line, c.old, c.new, 1)
		if _, err := ParseDecisionLine([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want %q", bad, err, c.say)
		}
	}
}

// One message for each fault of a binding and of network rules.
func TestPipeLineMessages(t *testing.T) {
	binding := `{"schema":"runner.binding.v0","run_id":"r","binding":{"tool_call_id":"t","policy_decision":"allow","kernel_event_count":1,"window":{"start":"a","end":"b"},"kernel_scope":"run","kernel_effects":["exec /b","read /a"]}}`
	rules := `{"schema":"runner.network_rules.v0","policy_digest":"sha256:` + strings.Repeat("0", 64) + `","default":"deny","rules":[` +
		`{"number":1,"id":"a","action":"allow","family":"inet","prefix":"10.0.0.0/8","path":"","ports":[[80,81]],"protocols":["tcp"],"on":["connect"]},` +
		`{"number":2,"id":"b","action":"deny","family":"unix","prefix":"","path":"/run/x","ports":[],"protocols":[],"on":["connect"]}]}`
	files := `{"schema":"runner.file_rules.v0","policy_digest":"sha256:` + strings.Repeat("0", 64) + `","files_default":"deny","exec_default":"allow","rules":[` +
		`{"number":1,"id":"a","action":"allow","path":"/a/b","on":["read","write"]},{"number":2,"id":"b","action":"deny","path":"/","on":["exec"]}]}`
	line := `{"schema":"runner.log_line.v0","run_id":"r","seq":0,"line":"a"}`
	for _, c := range []struct{ schema, doc, old, new, say string }{
		{SchemaBinding, binding, `"exec /b","read /a"`, `"read /a","exec /b"`, "not sorted and unique"},
		{SchemaBinding, binding, `"exec /b","read /a"`, ``, "kernel_effects is empty"},
		{SchemaBinding, binding, `"exec /b"`, `""`, "kernel_effects[0] is empty"},
		{SchemaBinding, binding, `"run"`, `"cgroup"`, "kernel_scope is"},
		{SchemaBinding, binding, `"]}}`, `"],"kernel_effects_cut":false}}`, "kernel_effects_cut is empty"},
		{SchemaBinding, binding, `"kernel_event_count":1,`, ``, "kernel_event_count is missing"},
		{SchemaLogLine, line, `"a"`, `"\\q"`, "is not a text"},
		{SchemaFileRules, files, `"files_default":"deny"`, `"files_default":""`, "files_default is"},
		{SchemaFileRules, files, `"exec_default":"allow",`, ``, "exec_default is missing"},
		{SchemaFileRules, files, `/a/b`, `a/b`, "expected an absolute path"},
		{SchemaFileRules, files, `/a/b`, `/a/../b`, `expected "/b"`},
		{SchemaFileRules, files, `/a/b`, `/a/`, `expected "/a"`},
		{SchemaFileRules, files, `/a/b`, `//`, `expected "/"`},
		{SchemaFileRules, files, `/a/b`, `/\\x41`, "is not a text"},
		{SchemaFileRules, files, `/a/b`, `/\u0000`, "holds a NUL"},
		{SchemaFileRules, files, `/a/b`, strings.Repeat("/abc", 1024), "at most 4095"},
		{SchemaFileRules, files, `/a/b`, `/` + strings.Repeat("x", 256), "a name of 256 bytes"},
		{SchemaFileRules, files, `["exec"]`, `["exec","read"]`, "a section of its own"},
		{SchemaFileRules, files, `["exec"]`, `["run"]`, "on is"},
		{SchemaFileRules, files, `["exec"]`, `[]`, "on is empty"},
		{SchemaFileRules, files, `"write"`, `"read"`, "read twice"},
		{SchemaFileRules, files, `"number":2`, `"number":1`, `number 1 is rule "a" above`},
		{SchemaNetworkRules, rules, `10.0.0.0/8`, `10.0.0.0`, "expected ADDRESS/BITS"},
		{SchemaNetworkRules, rules, `"inet"`, `"inet6"`, "expected ADDRESS/BITS of family inet6"},
		{SchemaNetworkRules, rules, `[80,81]`, `[81,80]`, "is not sorted"},
		{SchemaNetworkRules, rules, `"tcp"`, `"sctp"`, "protocols is"},
		{SchemaNetworkRules, rules, `["connect"]`, `[]`, "on is empty"},
		{SchemaNetworkRules, rules, `/run/x`, `/run/../x`, `expected "/x"`},
		{SchemaNetworkRules, rules, `/run/x`, `run/x`, "expected /PATH or @NAME"},
		{SchemaNetworkRules, rules, `/run/x`, `/` + strings.Repeat("x", 107), "at most 107"},
		{SchemaNetworkRules, rules, `/run/x`, `\\`, "is not a text"},
		{SchemaNetworkRules, rules, `"number":2`, `"number":0`, "number is 0"},
		{SchemaNetworkRules, rules, `"number":1`, `"number":3`, "number 2 after 3"},
		{SchemaNetworkRules, rules, `"number":2`, `"number":1`, `number 1 is rule "a" above`},
		{SchemaNetworkRules, rules, `"ports":[],`, ``, "key rules[1].ports is missing"},
		{SchemaNetworkRules, rules, `"protocols":[],"on":["connect"]`, `"protocols":[],"on":["bind"]`, "family unix with bind"},
	} {
		if err := parseForm(c.schema, []byte(c.doc)); err != nil {
			t.Fatal(err)
		}
		bad := strings.Replace(c.doc, c.old, c.new, 1)
		if err := parseForm(c.schema, []byte(bad)); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want %q", bad, err, c.say)
		}
	}
}

// A report that is read element by element is checked as strictly.
func TestLargeReport(t *testing.T) {
	one := `{"tool_call_id":"t","policy_decision":"allow","kernel_event_count":1,"window":{"start":"a","end":"b"}}`
	doc := `{"schema":"assay.runner.correlation_report.v0","run_id":"r","status":"clean","bindings":[` +
		strings.Repeat(one+",", 1000) + one + `],"ambiguities":[]}`
	read := func(doc string) (*Report, error) {
		r, fault, err := ReadReport(strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		return r, fault
	}
	r, err := read(doc)
	if whole, wholeErr := ParseReport([]byte(doc)); err != nil || wholeErr != nil || !reflect.DeepEqual(r, whole) {
		t.Fatal(err, wholeErr)
	}
	many := strings.Replace(doc, one, one+strings.Repeat(","+one, MaxBindings), 1)
	codes := strings.Replace(doc, `"ambiguities":[`, `"ambiguities":["x"`+strings.Repeat(`,"x"`, MaxAmbiguities), 1)
	for _, long := range []string{many, codes, strings.Replace(doc, `"start":"a"`, `"start":"`+strings.Repeat("a", maxReportPart)+`"`, 1), strings.Replace(doc, `"start":"a"`, `"start":`+strings.Repeat("[", 20), 1)} {
		if _, err := read(long); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
	}
	for _, edit := range [][2]string{
		{`"kernel_event_count":1,`, ``}, {`"kernel_event_count":1`, `"kernel_event_count":null`}, {`"start":"a"`, `"start":null`},
		{`"end":"b"}`, `"end":"b"},"kernel_effects":[]`}, {`"end":"b"}`, `"end":"b"},"kernel_effects_cut":false`}, {`"end":"b"}`, `"end":"b"},"kernel_scope":"x"`},
		{`"bindings":[`, `"x":1,"bindings":[`}, {`,"ambiguities":[]`, ``}, {`,"policy`, `, "policy`}, {`"clean"`, `"best"`}, {`[]}`, `[]}x`}, {`[]}`, `[]`}, {`"t"`, `1`}, {`{"tool`, `{},{"tool`}, {`{"tool`, `null,{"tool`},
	} {
		if _, err := read(strings.Replace(doc, edit[0], edit[1], 1)); err == nil {
			t.Errorf("%q for %q is accepted", edit[1], edit[0])
		}
	}
}

// manyTargets are n targets of so many bytes, as JSON.
func manyTargets(n, size int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"%c%s"`, 0x100+i, strings.Repeat("x", size-2)))
	}
	return strings.Join(list, ",")
}
