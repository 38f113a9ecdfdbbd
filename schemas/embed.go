package schemas

import "embed"

//go:embed *.schema.json
var files embed.FS

// Form says which file describes a schema string and where such data lies in an
// archive.
type Form struct {
	Schema string // schema string of the line or document
	File   string // name of the JSON Schema file in this directory
	Member string // archive member; "" when it lives only in pipes
	Lines  bool   // one object a line; otherwise the member is one object
}

// Forms are all lines and documents of the contract.
var Forms = [...]Form{
	{SchemaHeader, "stream-header-v0.schema.json", "", true},
	{SchemaTrailer, "stream-trailer-v0.schema.json", "", true},
	{SchemaRawEvent, "raw-event-v0.schema.json", "", true},
	{SchemaStageHealth, "stage-health-v0.schema.json", "", true},
	{SchemaSurfaceEntry, "surface-entry-v0.schema.json", "", true},
	{SchemaControl, "control-v0.schema.json", "", true},
	{SchemaProcess, "process-v0.schema.json", "", true},
	{SchemaLogLine, "log-line-v0.schema.json", "", true},
	{SchemaBinding, "binding-v0.schema.json", "", true},
	{SchemaAmbiguity, "ambiguity-v0.schema.json", "", true},
	{SchemaNetworkRules, "network-rules-v0.schema.json", "", false},
	{SchemaPolicyFile, "policy-file-v0.schema.json", "", false},
	{SchemaVerifyReport, "verify-report-v0.schema.json", "", false},
	{SchemaManifest, "archive-manifest-v0.schema.json", "manifest.json", false},
	{SchemaSurface, "capability-surface-v0.schema.json", "capability-surface.json", false},
	{SchemaReport, "correlation-report-v0.schema.json", "correlation-report.json", false},
	{SchemaEvent, "event-v0.schema.json", "events.ndjson", true},
	{SchemaKernelEvent, "kernel-event-v0.schema.json", "layers/kernel.ndjson", true},
	{SchemaPolicyEvent, "policy-event-v0.schema.json", "layers/policy.ndjson", true},
	{SchemaSDKEvent, "sdk-event-v0.schema.json", "layers/sdk.ndjson", true},
	{SchemaHealth, "observation-health-v0.schema.json", "observation-health.json", false},
}

// DecisionLogForm is the form of runner-policy's decision log. Its lines are
// CloudEvents, so they name a type and no schema.
var DecisionLogForm = Form{File: "decision-log-v0.schema.json", Lines: true}

// FormOf returns the form of a schema string.
func FormOf(schema string) (Form, bool) {
	for _, f := range Forms {
		if f.Schema == schema {
			return f, true
		}
	}
	return Form{}, false
}

// JSONSchema is the text of the form's JSON Schema (draft 2020-12).
func (f Form) JSONSchema() []byte {
	b, err := files.ReadFile(f.File)
	if err != nil {
		panic("schemas: " + err.Error()) // the table names a file that is not embedded
	}
	return b
}
