package schemas

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Whatever another implementation has archived parses, and both the Go parser
// and the JSON Schema say so.
func TestParsersTakeTheCorpus(t *testing.T) {
	for _, f := range Forms() {
		if f.Member == "" || f.Optional || f.Schema == SchemaKernelEvent {
			continue
		}
		t.Run(f.Member, func(t *testing.T) {
			s := compileForm(t, f.Schema)
			corpus(t, f.Schema, func(name string, b []byte) {
				// Inputs drawn by hand for a comparison script: no implementation
				// wrote them, and they lack keys that every writer writes.
				if strings.Contains(filepath.ToSlash(name), "/compare/") {
					return
				}
				one := func(b []byte) {
					if err := parseForm(f.Schema, b); err != nil {
						t.Errorf("%s: %v: %.200s", name, err, b)
					}
					if !schemaTakes(s, b) {
						t.Errorf("%s: the schema refuses %.200s", name, b)
					}
				}
				if f.Lines {
					eachLine(b, one)
				} else {
					one(b)
				}
			})
		})
	}
}

// beyondSchemas finds the faults that a JSON Schema cannot express: order, the
// text form of bytes, and values that repeat each other.
var beyondSchemas = regexp.MustCompile("is not sorted|is not a text|expected SESSION-SEQ|number [0-9]+ (after|is rule)")

// Mutated examples: the Go parsers and the JSON Schemas accept the same.
func TestDocumentParsersAgreeWithSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, f := range append(Forms(), DecisionLogForm) {
		switch f.Schema {
		case SchemaHeader, SchemaTrailer, SchemaRawEvent, SchemaKernelEvent, SchemaPolicyFile, SchemaPack, SchemaNetAllow, SchemaGatePolicy, SchemaGatePlan, SchemaGateApproval, SchemaGateResult, SchemaGateStatus, SchemaGateJournal, SchemaVerifyReport, SchemaAct, SchemaSuiteCase:
			continue
		}
		s := compileFile(t, f)
		var doc struct{ Examples []json.RawMessage }
		testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
		taken, refused := 0, 0
		for _, ex := range doc.Examples {
			var line bytes.Buffer
			testkit.Must(t, json.Compact(&line, ex))
			for range 1500 {
				ms := mutate(r, members(t, line.Bytes()))
				if maybe(r) && len(ms) > 0 {
					ms = mutate(r, ms)
				}
				b := join(ms)
				err := parseForm(f.Schema, b)
				ok := schemaTakes(s, b)
				if ok && err != nil && beyondSchemas.MatchString(err.Error()) {
					ok = false
				}
				if ok != (err == nil) {
					t.Fatalf("%s: schema accepts: %v, parser says: %v\n%s", f.File, ok, err, b)
				}
				if err == nil {
					taken++
				} else {
					refused++
				}
			}
		}
		t.Logf("%s: %d accepted, %d refused by both", f.Schema, taken, refused)
		if taken == 0 || refused == 0 {
			t.Errorf("%s: one-sided test", f.Schema)
		}
	}
}

// Whatever a parser takes, the schema takes as well, and no input makes either panic.
func FuzzDocuments(f *testing.F) {
	compiled := map[string]*jsonschema.Schema{}
	for _, form := range Forms() {
		switch form.Schema {
		case SchemaHeader, SchemaTrailer, SchemaPolicyFile, SchemaPack, SchemaNetAllow, SchemaGatePolicy, SchemaGatePlan, SchemaGateApproval, SchemaGateResult, SchemaGateStatus, SchemaGateJournal, SchemaVerifyReport, SchemaAct, SchemaSuiteCase: // parsed elsewhere, or never
			continue
		}
		compiled[form.Schema] = compileForm(f, form.Schema)
		var doc struct{ Examples []json.RawMessage }
		testkit.Must(f, json.Unmarshal(form.JSONSchema(), &doc))
		for _, ex := range doc.Examples {
			var line bytes.Buffer
			testkit.Must(f, json.Compact(&line, ex))
			f.Add(line.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for schema, s := range compiled {
			if parseForm(schema, b) == nil && !schemaTakes(s, b) {
				t.Errorf("%s: the parser takes it, the schema does not: %q", schema, b)
			}
		}
	})
}

// What the schema does not show: one message for each fault.
func TestDocumentMessages(t *testing.T) {
	health := `{"schema":"assay.runner.observation_health.v0","run_id":"r","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"absent","sdk_layer":"absent","cgroup_correlation":"clean","notes":[]}`
	surface := `{"schema":"assay.runner.capability_surface.v0","run_id":"r","filesystem_paths":["/a","/b"],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`
	manifest := `{"schema":"assay.runner.archive_manifest.v0","run_id":"r","files":{"a":{"path":"a","sha256":"sha256:` + strings.Repeat("0", 64) + `","bytes":1}}}`
	report := `{"schema":"assay.runner.correlation_report.v0","run_id":"r","status":"clean","bindings":[{"tool_call_id":"t","policy_decision":null,"kernel_event_count":1,"window":{"start":"a","end":"b"}}],"ambiguities":[]}`
	finished := `{"schema":"assay.runner.event.v0","run_id":"r","seq":1,"type":"run_finished","exit_code":0,"signal":null,"success":true}`
	stage := `{"schema":"runner.stage_health.v0","run_id":"r","stage":"s","in":1,"out":1,"filtered":{"a":1},"counters":{},"facts":{},"notes":[]}`
	for _, c := range []struct{ schema, doc, old, new, say string }{
		{SchemaHealth, health, `"complete"`, `"whole"`, `kernel_layer is "whole", expected one of complete, partial_ringbuf_drops, absent`},
		{SchemaHealth, health, `,"notes":[]`, ``, "key notes is missing"},
		{SchemaHealth, health, `"notes":[]`, `"notes":null`, "key notes is null"},
		{SchemaHealth, health, `"notes":[]`, `"notes":[null]`, "key notes[0] is null"},
		{SchemaHealth, health, `"notes":[]`, `"notes":[],"redaction":null`, "key redaction is null"},
		{SchemaHealth, health, `"notes":[]`, `"notes":[],"capture_origin":""`, "key capture_origin is empty"},
		{SchemaHealth, health, `"notes":[]`, `"notes":[],"network_protocol_coverage":"all"`, "network_protocol_coverage is"},
		{SchemaHealth, health, `"run_id":"r"`, `"run_id":"a/b"`, "run_id is"},
		{SchemaHealth, health, `health.v0`, `health.v1`, "schema is"},
		{SchemaHealth, health, `"linux"`, `""`, "platform is empty"},
		{SchemaHealth, health, `}`, `} {}`, ""},
		{SchemaHealth, health, `"ringbuf_drops":0`, `"ringbuf_drops":-1`, ""},
		{SchemaHealth, health, `"ringbuf_drops":0`, `"Ringbuf_drops":0`, ""},
		{SchemaSurface, surface, `"/a","/b"`, `"/b","/a"`, "filesystem_paths is not sorted"},
		{SchemaSurface, surface, `"/a","/b"`, `"/a","/a"`, "filesystem_paths is not sorted and unique"},
		{SchemaManifest, manifest, `"path":"a"`, `"path":"b"`, "expected the key"},
		{SchemaManifest, manifest, `sha256:0`, `sha256:G`, "64 lower-case hex digits"},
		{SchemaManifest, manifest, `"bytes":1`, `"bytes":-1`, "expected a length"},
		{SchemaManifest, manifest, `,"bytes":1`, ``, "key files.a.bytes is missing"},
		{SchemaReport, report, `,"end":"b"`, ``, "key bindings[0].window.end is missing"},
		{SchemaReport, report, `"clean"`, `"cleaner"`, "status is"},
		{SchemaReport, report, `"kernel_event_count"`, `"cgroup_id":null,"kernel_event_count"`, "cgroup_id is null"},
		{SchemaEvent, finished, `"seq":1`, `"seq":0`, "seq of run_finished is 0, expected 1"},
		{SchemaEvent, finished, `,"signal":null`, ``, "key signal is missing"},
		{SchemaEvent, finished, `run_finished`, `run_ended`, ""},
		{SchemaStageHealth, stage, `"a":1`, `"a":0`, "filtered.a is 0"},
		{SchemaStageHealth, stage, `"run_id":"r"`, `"run_id":"` + strings.Repeat("r", 129) + `"`, "at most 128"},
	} {
		if err := parseForm(c.schema, []byte(c.doc)); err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		bad := strings.Replace(c.doc, c.old, c.new, 1)
		err := parseForm(c.schema, []byte(bad))
		if err == nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", bad, err, c.say)
		}
	}
	long := strings.Replace(health, `"run_id":"r"`, `"run_id":"`+strings.Repeat("r", 300)+`"`, 1)
	if _, err := ParseHealth([]byte(long)); err != nil {
		t.Errorf("an archive's run id has no length limit: %v", err)
	}
}

// What is written reads back the same, and the key order is the contract's.
func TestControlLines(t *testing.T) {
	seven := 7
	for want, c := range map[string]Control{
		`{"schema":"runner.control.v0","op":"started","command":["a"],"agent_shim":"none","env_keys":[],"inherited_fds":2}`: {
			Schema: SchemaControl, Op: "started", Command: []string{"a"}, AgentShim: "none", InheritedFDs: 2},
		`{"schema":"runner.control.v0","op":"finished","exit_code":7,"signal":null}`: {
			Schema: SchemaControl, Op: "finished", ExitCode: &seven},
	} {
		for _, v := range []any{c, &c} {
			b, err := Marshal(v)
			if err != nil || string(b) != want {
				t.Errorf("got %s, %v, want %s", b, err, want)
			}
		}
		got, err := ParseControl([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Marshal(got); string(again) != want {
			t.Errorf("read back as %s", again)
		}
	}
}

func TestMarshalIsTheByteForm(t *testing.T) {
	sig := 9
	for want, v := range map[string]any{
		`{"schema":"s","run_id":"r","seq":1,"type":"t","exit_code":null,"signal":9,"success":false}`:                                            RunFinished{Schema: "s", RunID: "r", Seq: 1, Type: "t", Signal: &sig},
		`{"schema":"s","run_id":"r","stage":"","in":0,"out":0,"filtered":{},"counters":{"a":1,"b":18446744073709551615},"facts":{},"notes":[]}`: StageHealth{Schema: "s", RunID: "r", Counters: map[string]uint64{"b": 1<<64 - 1, "a": 1}},
		"\"<>&/\u2028\x7f\\u001f\\\"\\\\\"": "<>&/\u2028\x7f\x1f\"\\",
	} {
		if b, err := Marshal(v); err != nil || string(b) != want {
			t.Errorf("got %s, %v\nwant %s", b, err, want)
		}
	}
	if b, err := Marshal("\xff"); err == nil {
		t.Errorf("invalid UTF-8 is written: %q", b)
	}
	var x struct{ A int }
	for _, bad := range []string{`{"A":1,"A":1}`, `{"a":1}`, `{"A":1}{}`, `{"A":1.0}`, `{"A":01}`, "{\"A\":1,\"\xff\":1}"} {
		if err := Unmarshal([]byte(bad), &x); err == nil {
			t.Errorf("Unmarshal takes %s", bad)
		}
	}
}

// The struct tags steer what is required, so no field may lack one.
func TestEveryFieldHasAKey(t *testing.T) {
	for _, v := range []any{RunStarted{}, RunFinished{}, StageHealth{}, Health{}, SurfaceEntry{}, Window{}, Binding{}, Report{}, Surface{}, Manifest{}, ManifestFile{}, PolicyEvent{}, SDKEvent{},
		Process{}, LogLine{}, BindingEntry{}, AmbiguityEntry{}, NetworkRules{}, NetworkRule{}, FileRules{}, FileRule{}, LogHead{}, LogEntry[LogHead]{}} {
		for i := range reflect.TypeOf(v).NumField() {
			if f := reflect.TypeOf(v).Field(i); f.Tag.Get("json") == "" {
				t.Errorf("%T.%s has no json tag", v, f.Name)
			}
		}
	}
}

// TestSameMessage: of several faults in a map the same one is named each time.
func TestSameMessage(t *testing.T) {
	manifest, health := `{"schema":"assay.runner.archive_manifest.v0","run_id":"r","files":{`, `{"schema":"runner.stage_health.v0","run_id":"r","stage":"s","in":0,"out":0,"filtered":{`
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		comma := ","[:min(i, 1)]
		manifest += comma + `"` + name + `":{"path":"x","sha256":"","bytes":0}`
		health += comma + `"` + name + `":0`
	}
	for range 50 {
		if err := parseForm(SchemaManifest, []byte(manifest+"}}")); err == nil || !strings.Contains(err.Error(), `entry "a"`) {
			t.Fatal(err)
		}
		if err := parseForm(SchemaStageHealth, []byte(health+`},"counters":{},"facts":{},"notes":[]}`)); err == nil || !strings.Contains(err.Error(), "filtered.a is 0") {
			t.Fatal(err)
		}
	}
}
