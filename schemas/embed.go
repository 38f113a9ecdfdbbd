package schemas

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

// Form says which file describes a schema string and, for archive members, the name of
// the member.
type Form struct {
	Schema string // schema string of the line or document
	File   string // name of the JSON Schema file in this directory
	Member string // archive member; "" for what is only in pipes
	Lines  bool   // one object a line; otherwise one object without a final newline

	Raw      bool  // of a member: any bytes
	Optional bool  // of a member: an archive without it is valid
	MaxBytes int64 // of a member: the most that a reader accepts; 0 is the bound of the archive format
}

// Member names.
const (
	MemberManifest  = "manifest.json"
	MemberSurface   = "capability-surface.json"
	MemberReport    = "correlation-report.json"
	MemberEvents    = "events.ndjson"
	MemberClock     = "layers/clock.ndjson"
	MemberNames     = "layers/dns.ndjson"
	MemberChanges   = "layers/filesystem.ndjson"
	MemberExchanges = "layers/network.ndjson"
	MemberFiltered  = "layers/filtered.ndjson"
	MemberIntents   = "layers/intents.ndjson"
	MemberKernel    = "layers/kernel.ndjson"
	MemberPolicy    = "layers/policy.ndjson"
	MemberProcess   = "layers/process.ndjson"
	MemberSDK       = "layers/sdk.ndjson"
	MemberTimes     = "layers/times.ndjson"
	MemberHealth    = "observation-health.json"
)

// forms are all lines and documents of the contract except the layers.
var forms = [...]Form{
	{Schema: SchemaHeader, File: "stream-header-v0.schema.json", Lines: true},
	{Schema: SchemaTrailer, File: "stream-trailer-v0.schema.json", Lines: true},
	{Schema: SchemaRawEvent, File: "raw-event-v0.schema.json", Lines: true},
	{Schema: SchemaStageHealth, File: "stage-health-v0.schema.json", Lines: true},
	{Schema: SchemaSurfaceEntry, File: "surface-entry-v0.schema.json", Lines: true},
	{Schema: SchemaControl, File: "control-v0.schema.json", Lines: true},
	{Schema: SchemaReady, File: "ready-v0.schema.json", Lines: true},
	{Schema: SchemaProcess, File: "process-v0.schema.json", Lines: true},
	{Schema: SchemaLogLine, File: "log-line-v0.schema.json", Lines: true},
	{Schema: SchemaBinding, File: "binding-v0.schema.json", Lines: true},
	{Schema: SchemaAmbiguity, File: "ambiguity-v0.schema.json", Lines: true},
	{Schema: SchemaNetworkRules, File: "network-rules-v0.schema.json"},
	{Schema: SchemaFileRules, File: "file-rules-v0.schema.json"},
	{Schema: SchemaPolicyFile, File: "policy-file-v0.schema.json"},
	{Schema: SchemaNetAllow, File: "net-allow-v0.schema.json"},
	{Schema: SchemaGatePolicy, File: "gate-policy-v0.schema.json"},
	{Schema: SchemaGatePlan, File: "gate-plan-v0.schema.json"},
	{Schema: SchemaGateApproval, File: "gate-approval-v0.schema.json"},
	{Schema: SchemaGateResult, File: "gate-result-v0.schema.json"},
	{Schema: SchemaGateStatus, File: "gate-status-v0.schema.json", Lines: true},
	{Schema: SchemaGateJournal, File: "gate-journal-v0.schema.json", Lines: true},
	{Schema: SchemaPack, File: "pack-v0.schema.json"},
	{Schema: SchemaVerifyReport, File: "verify-report-v0.schema.json"},
	{Schema: SchemaAct, File: "act-v0.schema.json", Lines: true},
	{Schema: SchemaSuiteCase, File: "suite-case-v0.schema.json", Lines: true},
	{Schema: SchemaBaseEntry, File: "base-entry-v0.schema.json", Lines: true},
	{Schema: SchemaManifest, File: "archive-manifest-v0.schema.json", Member: MemberManifest, MaxBytes: MaxManifestBytes},
	{Schema: SchemaSurface, File: "capability-surface-v0.schema.json", Member: MemberSurface},
	{Schema: SchemaReport, File: "correlation-report-v0.schema.json", Member: MemberReport, MaxBytes: MaxReportBytes},
	{Schema: SchemaEvent, File: "event-v0.schema.json", Member: MemberEvents, Lines: true, MaxBytes: 4 << 20},
	{Schema: SchemaHealth, File: "observation-health-v0.schema.json", Member: MemberHealth, MaxBytes: 1 << 20},
}

// MaxManifestBytes bounds the manifest: an entry for each blob has less than 256 bytes.
const MaxManifestBytes = MaxBlobs * 256

// rawMembers are members of any bytes, beside blobs.
var rawMembers = [...]string{MemberStderr, MemberStdout}

// DecisionLogForm is the form of runner-policy's decision log. Its lines are
// CloudEvents, so they name a type and no schema.
var DecisionLogForm = Form{File: "decision-log-v0.schema.json", Lines: true}

// Forms are all lines and documents of the contract.
func Forms() []Form {
	list := forms[:len(forms):len(forms)]
	for i := range Layers {
		list = append(list, Layers[i].form())
	}
	for i := range RunDocuments {
		list = append(list, RunDocuments[i].form())
	}
	return list
}

func (d *RunDocument) form() Form {
	return Form{Schema: d.Schema, File: d.File, Member: d.Member, Optional: true, MaxBytes: MaxRunDocument}
}

// FormOf returns the form of a schema string.
func FormOf(schema string) (Form, bool) {
	return formWhere(func(f *Form) bool { return f.Schema == schema })
}

// Members are the members that an archive can have beside those of any bytes, in archive order: the manifest,
// then the others by the bytes of their names.
func Members() []Form {
	list := slices.DeleteFunc(slices.Clone(Forms()), func(f Form) bool { return f.Member == "" })
	slices.SortFunc(list, func(a, b Form) int {
		switch MemberManifest {
		case a.Member:
			return -1
		case b.Member:
			return 1
		}
		return strings.Compare(a.Member, b.Member)
	})
	return list
}

// MemberOf returns the form of the named member.
func MemberOf(name string) (Form, bool) {
	if _, blob := BlobDigest(name); blob || slices.Contains(rawMembers[:], name) {
		return Form{Member: name, Raw: true, Optional: true}, true
	}
	return formWhere(func(f *Form) bool { return name != "" && f.Member == name })
}

func formWhere(is func(*Form) bool) (Form, bool) {
	for i := range forms {
		if is(&forms[i]) {
			return forms[i], true
		}
	}
	for i := range Layers {
		if f := Layers[i].form(); is(&f) {
			return f, true
		}
	}
	for i := range RunDocuments {
		if f := RunDocuments[i].form(); is(&f) {
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
