package schemas

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Every schema file is in the table, compiles, and accepts its own examples; the
// Go parser of the form accepts them too.
func TestFormsAndExamples(t *testing.T) {
	text := specification(t)
	named := map[string]bool{}
	for _, f := range append(Forms(), DecisionLogForm) {
		named[f.File] = true
		// Policy and SDK lines are specified elsewhere; the archive's list names them.
		if !strings.Contains(text, f.Schema) && (f.Member == "" || !strings.Contains(text, f.Member)) {
			t.Errorf("the specification does not name %s", f.Schema)
		}
		var doc struct {
			ID       string            `json:"$id"`
			Examples []json.RawMessage `json:"examples"`
		}
		testkit.Must(t, json.Unmarshal(f.JSONSchema(), &doc))
		if want := "urn:runner:schema:" + strings.TrimSuffix(f.File, ".schema.json"); doc.ID != want {
			t.Errorf("%s: $id is %s, want %s", f.File, doc.ID, want)
		}
		if len(doc.Examples) == 0 {
			t.Errorf("%s has no examples", f.File)
		}
		s := compileFile(t, f)
		for _, ex := range doc.Examples {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(ex))
			testkit.Must(t, err)
			if err := s.Validate(v); err != nil {
				t.Errorf("%s: its example does not validate: %v", f.File, err)
			}
			if f.Schema != "" && v.(map[string]any)["schema"] != f.Schema {
				t.Errorf("%s: example of another schema", f.File)
			}
			var line bytes.Buffer
			testkit.Must(t, json.Compact(&line, ex))
			if err := parseForm(f.Schema, line.Bytes()); err != nil {
				t.Errorf("%s: the Go parser refuses the example: %v", f.File, err)
			}
		}
		if got, ok := FormOf(f.Schema); f.Schema != "" && (!ok || got != f) {
			t.Errorf("FormOf(%s) = %v", f.Schema, got)
		}
	}
	for _, f := range Reports { // TestReports looks at these
		named[f.File] = true
	}
	testkit.Must(t, fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !named[path] {
			t.Errorf("%s is in no form", path)
		}
		return err
	}))
	if _, ok := FormOf("runner.unknown.v0"); ok {
		t.Error("FormOf knows an unknown schema")
	}
}

// parseForm parses b with the Go parser of the schema.
func parseForm(schema string, b []byte) (err error) {
	switch schema {
	case SchemaHeader, SchemaTrailer: // package stream parses these
	case SchemaPolicyFile, SchemaPack, SchemaNetAllow, SchemaGatePolicy, SchemaGatePlan, SchemaGateApproval, SchemaGateResult, SchemaGateStatus, SchemaGateJournal: // packages of cmd/internal parse these
	case SchemaVerifyReport: // package verdict parses these
	case SchemaAct, SchemaSuiteCase: // package cmd/internal/acts writes these, and no tool reads them
	case SchemaRawEvent:
		err = NewRawParser(testRun).Parse(b, new(RawEvent))
	case SchemaKernelEvent:
		err = NewKernelParser(testRun).Parse(b, new(KernelEvent))
	case SchemaStageHealth:
		_, err = ParseStageHealth(b)
	case SchemaSurfaceEntry:
		_, err = ParseSurfaceEntry(b)
	case SchemaProcess:
		_, err = ParseProcess(b)
	case SchemaLogLine:
		_, err = ParseLogLine(b)
	case SchemaBinding:
		_, err = ParseBinding(b)
	case SchemaAmbiguity:
		_, err = ParseAmbiguity(b)
	case SchemaNetworkRules:
		_, err = ParseNetworkRules(b)
	case SchemaFileRules:
		_, err = ParseFileRules(b)
	case DecisionLogForm.Schema:
		_, err = ParseDecisionLine(b)
	case SchemaControl:
		_, err = ParseControl(b)
	case SchemaReady:
		_, err = ParseReady(b)
	case SchemaBaseEntry:
		_, err = ParseBaseEntry(b)
	case SchemaFileChange:
		_, err = ParseFileChange(b)
	case SchemaBox:
		_, err = ParseBox(b)
	case SchemaNetExchange:
		_, err = ParseNetExchange(b)
	case SchemaNetName:
		_, err = ParseNetName(b)
	case SchemaClock:
		_, err = ParseClock(b)
	case SchemaClockTick:
		_, err = ParseClockTick(b)
	case SchemaManifest:
		_, err = ParseManifest(b)
	case SchemaSurface:
		_, err = ParseSurface(b)
	case SchemaReport:
		_, err = ParseReport(b)
	case SchemaEvent:
		_, err = ParseEvent(b)
	case SchemaHealth:
		_, err = ParseHealth(b)
	default:
		for _, l := range Layers {
			if l.Schema == schema {
				_, err = l.Parse(b)
				return err
			}
		}
		for _, d := range RunDocuments {
			if d.Schema == schema {
				_, _, err = d.Parse(b)
				return err
			}
		}
		panic("no parser for " + schema)
	}
	return err
}
