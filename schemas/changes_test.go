package schemas

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The v0 contracts, which are older than this runner. Everything else is an addition and
// has an entry in CHANGES.md.
var (
	v0Schemas = []string{SchemaEvent, SchemaKernelEvent, SchemaPolicyEvent, SchemaSDKEvent, SchemaHealth, SchemaSurface, SchemaReport, SchemaManifest}
	v0Members = []string{"manifest.json", "capability-surface.json", "correlation-report.json", "events.ndjson", "layers/kernel.ndjson",
		"layers/policy.ndjson", "layers/sdk.ndjson", "observation-health.json"}
	v0Keys = map[reflect.Type]string{
		reflect.TypeFor[RunStarted]():   "schema run_id seq type agent_shim command env_keys window_elapsed_ms",
		reflect.TypeFor[RunFinished]():  "schema run_id seq type exit_code signal success window_elapsed_ms",
		reflect.TypeFor[PolicyEvent]():  "schema run_id seq source_event_type source tool_call_id tool decision",
		reflect.TypeFor[SDKEvent]():     "schema run_id seq event_type source sdk_name sdk_version tool_call_id tool",
		reflect.TypeFor[Health]():       "schema run_id platform kernel_layer capture_origin ringbuf_drops policy_layer sdk_layer cgroup_correlation network_protocol_coverage network_endpoint_claim_scope redaction notes",
		reflect.TypeFor[Surface]():      "schema run_id filesystem_paths network_endpoints process_execs mcp_tools policy_decisions",
		reflect.TypeFor[Report]():       "schema run_id status bindings ambiguities",
		reflect.TypeFor[Binding]():      "tool_call_id policy_decision cgroup_id kernel_event_count window",
		reflect.TypeFor[Window]():       "start end",
		reflect.TypeFor[Manifest]():     "schema run_id files",
		reflect.TypeFor[ManifestFile](): "path sha256 bytes",
	}
	v0KernelKeys = "schema run_id seq pid event_type kind value cgroup_id network_destination network_port rule_id flags mode resolve return_value access_mode operation_flags status"
	v0Notes      = []string{"contract_only_mode", "s2_kernel_capture", "s4_policy_capture", "s5_sdk_capture"}
	v0Codes      = []string{AmbiguityNoKernelEvents, AmbiguityManyDecisions, AmbiguitySDKUnbound}
	v0Events     = []uint32{EventOpenat, EventConnect, EventExec, EventFileBlocked, EventConnectBlocked}
)

// TestEveryAdditionIsListed: schema strings, members, keys, event types, notes and
// codes beyond the v0 contracts each have an entry in the list of contract changes.
func TestEveryAdditionIsListed(t *testing.T) {
	b, err := os.ReadFile("CHANGES.md")
	testkit.Must(t, err)
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(b), -1) {
		listed[m[1]] = true
	}
	need := func(what, name string) {
		if !listed[name] {
			t.Errorf("%s %s is beyond the v0 contracts and has no entry in CHANGES.md", what, name)
		}
	}
	for _, f := range Forms() {
		if !slices.Contains(v0Schemas, f.Schema) {
			need("schema string", f.Schema)
		}
		if f.Member != "" && !slices.Contains(v0Members, f.Member) {
			need("member", f.Member)
		}
	}
	for _, f := range Reports {
		need("report", f.Schema)
	}
	for v, known := range v0Keys {
		for i := range v.NumField() {
			key, _, _ := strings.Cut(v.Field(i).Tag.Get("json"), ",")
			if !slices.Contains(strings.Fields(known), key) {
				need("key of "+v.Name(), key)
			}
		}
	}
	form, _ := FormOf(SchemaKernelEvent)
	for _, m := range regexp.MustCompile(`\n    "([a-z_]+)": \{`).FindAllStringSubmatch(string(form.JSONSchema()), -1) {
		if !slices.Contains(strings.Fields(v0KernelKeys), m[1]) {
			need("key of a kernel line", m[1])
		}
	}
	for _, n := range Notes {
		if !slices.Contains(v0Notes, n.Code) {
			need("note", n.Code)
		}
	}
	for _, a := range Ambiguities() {
		if !slices.Contains(v0Codes, a.Code) {
			need("ambiguity code", a.Code)
		}
	}
	_, table, _ := strings.Cut(string(b), "| event types | reason |")
	table, _, _ = strings.Cut(table, "\n\n")
	numbers := map[string]bool{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, n := range strings.Split(cells[1], ",") {
				numbers[strings.TrimSpace(n)] = true
			}
		}
	}
	for _, e := range EventTypes {
		if !slices.Contains(v0Events, e.ID) && !numbers[strconv.FormatUint(uint64(e.ID), 10)] {
			t.Errorf("event type %d is beyond the v0 contracts and has no entry in CHANGES.md", e.ID)
		}
	}
}
