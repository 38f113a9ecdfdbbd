package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The conventions that the names of attributes are of. Those of tool calls are in development: they have no
// release and no schema URL, so a commit says which ones are meant.
const (
	semconvRepository = "open-telemetry/semantic-conventions-genai"
	semconvCommit     = "0393513c908bf895e7b3ec480a2c1eb073c584af"
	semconvStatus     = "Development"
	otlpVersion       = "1.9.0"
)

// Reasons why a field of the archive is not in the export.
const (
	reasonDerived   = "derived"          // what it says follows from fields that are mapped
	reasonSensitive = "sensitive_opt_in" // --sensitive maps it
	reasonNull      = "null"             // the record has no value there
	reasonDeclared  = "declared"         // who wrote the archive says it: it is no observation of the run
)

// Fields of the record that are no attribute of OTLP, but something else there.
const (
	toEventName = "eventName"
	toTime      = "timeUnixNano"
	toScope     = "scope name"
	toRun       = "resource " + attrRun
)

// Attributes of our own that more than one place names.
const (
	attrRun       = "runner.run.id"
	attrOperation = "runner.operation"
	attrTimeOf    = "runner.time.source"
	attrError     = "error.type"
	attrCall      = "gen_ai.tool.call.id"
	attrTool      = "gen_ai.tool.name"
	attrFile      = "file.path"
	attrProgram   = "process.executable.path"
	attrAddress   = "network.peer.address"
	attrPort      = "network.peer.port"
	attrValue     = "runner.value"
	attrPID       = "process.pid"
)

// toValue stands for the attributes that the value of a kernel line is mapped to, by its event type.
const toValue = attrFile + ", " + attrProgram + ", " + attrAddress + " and " + attrPort + ", or " + attrValue

// rule says what becomes of one field of a member.
type rule struct {
	field string // its keys with dots; key[] is each object of a list, * any key
	to    string // the attribute, or one of the places above
	why   string // the reason why it is not mapped
	// sensitive is where --sensitive puts it, if not below the name of its member's attributes.
	sensitive string
}

// source is one member of the archive.
type source struct {
	member string
	event  string // beginning of the event's name; "" is a member without records of its own
	rules  []rule
}

// frame are the fields that every member has.
func frame(rules ...rule) []rule {
	return append([]rule{{field: "schema", to: toScope}, {field: "run_id", to: toRun}}, rules...)
}

// lines are those that every line has, too.
func lines(rules ...rule) []rule {
	return frame(append([]rule{{field: "seq", to: "runner.seq"}}, rules...)...)
}

// own makes rules for fields that become attributes of our own, with a prefix.
func own(prefix, fields string) (list []rule) {
	for _, f := range strings.Fields(fields) {
		list = append(list, rule{field: f, to: prefix + f})
	}
	return list
}

// sources is the whole mapping: each field of each member is in it. A test compares it with the schemas.
var sources = []source{
	{schemas.MemberManifest, "", frame(append(because(reasonDerived, "files.*.path", "files.*.sha256", "files.*.bytes"),
		because(reasonDeclared, "x-assay.packs_applied[].name", "x-assay.packs_applied[].version", "x-assay.packs_applied[].digest", "x-assay.packs_applied[].kind", "x-assay.packs_applied[].source_url",
			"x-assay.mappings[].rule", "x-assay.mappings[].framework", "x-assay.mappings[].ref")...)...)},
	{schemas.MemberSurface, "", frame(because(reasonDerived, schemas.SurfaceSets[:]...)...)},
	{schemas.MemberReport, "runner.correlation", frame(append(own("runner.correlation.", "status ambiguities notes"), append(
		[]rule{{field: "bindings[].tool_call_id", to: attrCall}, {field: "bindings[].policy_decision", to: "runner.policy.decision"}},
		own("runner.correlation.", "bindings[].cgroup_id bindings[].kernel_event_count bindings[].window.start bindings[].window.end bindings[].kernel_scope bindings[].kernel_effects bindings[].kernel_effects_cut bindings[].join bindings[].sdk_tool_call_id")...)...)...)},
	{schemas.MemberEvents, "runner.", lines(append([]rule{{field: "type", to: toEventName}, {field: "command", to: "process.command_args"}, {field: "exit_code", to: "process.exit.code"}},
		own("runner.", "agent_shim env_keys signal success window_elapsed_ms")...)...)},
	{schemas.MemberClock, "runner.clock.", lines(append([]rule{{field: "op", to: toEventName}}, own("runner.clock.", "process tick for_ns at_ns")...)...)},
	{schemas.MemberNames, "runner.dns", lines(append([]rule{{field: "name", to: "dns.question.name"}}, own("runner.dns.", "type answer")...)...)},
	{schemas.MemberChanges, "runner.filesystem.", lines(append([]rule{{field: "op", to: toEventName}, {field: "path", to: "runner.filesystem.path"}}, append(own("runner.filesystem.", stateFields("before")), own("runner.filesystem.", stateFields("after"))...)...)...)},
	{schemas.MemberExchanges, "runner.network.", lines(append([]rule{{field: "decision", to: toEventName}, {field: "scheme", to: "url.scheme"}, {field: "host", to: "server.address"}, {field: "port", to: "server.port"}, {field: "address", to: "network.peer.address"},
		{field: "method", to: "http.request.method"}, {field: "path", to: "url.path"}, {field: "query", to: "url.query"}, {field: "status", to: "http.response.status_code"}, {field: "failure", to: "error.type"}, {field: "rule", to: "runner.network.rule"},
		{field: "request.bytes", to: "http.request.body.size"}, {field: "response.bytes", to: "http.response.body.size"}, {field: "request.sha256", to: "runner.network.request.sha256"}, {field: "response.sha256", to: "runner.network.response.sha256"}},
		because(reasonSensitive, "request.headers[].name", "request.headers[].value", "request.trailers[].name", "request.trailers[].value", "response.headers[].name", "response.headers[].value", "response.trailers[].name", "response.trailers[].value")...)...)},
	{schemas.MemberFiltered, "runner.filtered", lines(own("runner.", "rule value")...)},
	{schemas.MemberIntents, "runner.intent.", lines(append([]rule{{field: "intent_type", to: toEventName}, {field: "payload", why: reasonSensitive, sensitive: "runner.intent.payload"}},
		own("runner.intent.", "idempotency_key labels amount")...)...)},
	{schemas.MemberKernel, "runner.kernel.", lines(append([]rule{{field: "kind", to: toEventName}, {field: "pid", to: attrPID}, {field: "value", to: toValue}},
		own("runner.", "event_type cgroup_id network_destination network_port rule_id flags mode resolve return_value access_mode operation_flags status doubt connect_result")...)...)},
	{schemas.MemberPolicy, "runner.policy.decision", lines(append([]rule{{field: "tool_call_id", to: attrCall}, {field: "tool", to: attrTool}},
		append(own("runner.policy.", "source_event_type source decision tool_call_id_source outcome reason_code rule_id policy_digest would_deny attempt targets targets_cut"),
			rule{field: "arguments_digest", why: reasonSensitive, sensitive: "runner.policy.arguments_digest"})...)...)},
	{schemas.MemberProcess, "runner.process", lines(append(own("runner.process.", "process parent lines states[].by states[].file states[].script states[].uid states[].gid states[].mount_namespace states[].root states[].arguments.name states[].arguments.count states[].arguments.bytes states[].arguments.unread states_omitted"),
		because(reasonSensitive, "states[].arguments.argv", "states[].arguments.digests")...)...)},
	{schemas.MemberSDK, "runner.sdk.", lines(append([]rule{{field: "event_type", to: toEventName}, {field: "tool_call_id", to: attrCall}, {field: "tool", to: attrTool}},
		append(own("runner.sdk.", "source sdk_name sdk_version"), rule{field: "arguments_digest", why: reasonSensitive, sensitive: "runner.sdk.arguments_digest"})...)...)},
	{schemas.MemberTimes, "", frame(append(because(reasonDerived, "seq", "type", "clock", "wall_clock"), rule{field: "source", to: attrTimeOf},
		rule{field: "layer", to: toTime}, rule{field: "line", to: toTime}, rule{field: "wall_ns", to: toTime}, rule{field: "finished_ns", to: toTime},
		rule{field: "ns", to: toTime}, rule{field: "end_ns", to: "endTimeUnixNano"})...)},
	{schemas.MemberHealth, "runner.observation_health", frame(own("runner.health.", "platform kernel_layer capture_origin ringbuf_drops policy_layer sdk_layer cgroup_correlation network_protocol_coverage network_endpoint_claim_scope redaction notes")...)},
	{schemas.MemberRunBox, "runner.box", frame(own("runner.box.", "workdir workspace rootless cpu namespaces fresh confined changes unread survivors_killed inherited_fds base_changed base.kind base.digest base.entries base.bytes base.list")...)},
	{schemas.MemberRunClock, "runner.clock", frame(own("runner.clock.", "seed start runtimes crypto bad_lines lost unended")...)},
	{schemas.MemberRunEnv, "runner.env", frame(append(append(own("runner.env.", "wrappers uid gid stdin.bytes stdin.sha256 stdout.bytes stdout.sha256 stderr.bytes stderr.sha256 policy.bytes policy.sha256 env[].name"), rule{field: "command", to: "process.command_args"}, rule{field: "cwd", to: "process.working_directory"}),
		because(reasonSensitive, "env[].value")...)...)},
	{schemas.MemberRunNet, "runner.net", frame(own("runner.net.", "mode ports rules match_headers exchanges names names_lost redacted unused")...)},
}

// stateFields are the fields of a file before or after the run.
func stateFields(prefix string) string {
	var list []string
	for _, f := range strings.Fields("kind mode uid gid size sha256 link target device mount unread") {
		list = append(list, prefix+"."+f)
	}
	return strings.Join(list, " ")
}

func because(why string, fields ...string) (list []rule) {
	for _, f := range fields {
		list = append(list, rule{field: f, why: why})
	}
	return list
}

// count is what became of a field.
type count struct{ mapped, dropped, null uint64 }

// member is a source with what became of its fields.
type member struct {
	source
	counts []count        // of each rule
	index  map[string]int // from the field to its rule
}

func newMember(name string) *member {
	i := slices.IndexFunc(sources, func(s source) bool { return s.member == name })
	m := &member{source: sources[i], counts: make([]count, len(sources[i].rules)), index: map[string]int{}}
	for i, r := range m.rules {
		m.index[r.field] = i
	}
	return m
}

// take counts a field, and says where it goes; "" is nowhere. dropped counts it for the record that lacks it.
func (m *member) take(field string, null, sensitive bool, dropped *int) string {
	i, ok := m.index[field]
	if !ok {
		panic("runner-otel: " + m.member + " has a field without a rule: " + field) // a test compares the table with the schemas
	}
	c, r := &m.counts[i], &m.rules[i]
	switch {
	case null:
		c.null++
	case r.to != "":
		c.mapped++
		return r.to
	case r.why == reasonSensitive && sensitive:
		c.mapped++
		if r.sensitive != "" {
			return r.sensitive
		}
		return sensitiveName(r.field)
	default:
		c.dropped++
		*dropped++
	}
	return ""
}

// sensitiveName is where --sensitive puts a field.
func sensitiveName(field string) string { return "runner.process." + field }

// leaf is the last key of a field.
func leaf(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }
