package schemas

// Versions of the reports, as their schema_version has them.
const (
	VersionOTelMapping = "otel-mapping-v1"
	VersionOTelState   = "otel-state-v1"
	VersionSoakReport  = "soak-report-v1"
	VersionSoakSurface = "soak-surface-v1"

	VersionCapabilityDiff   = "capability-diff-v1"
	VersionCapabilityLock   = "capability-lock-v1"
	VersionCapabilityIgnore = "capability-ignore-v1"
	VersionReplayResult     = "replay-result-v1"
	VersionReplayMetrics    = "replay-metrics-v1"
)

// ReportBegins is how each report of a version begins.
func ReportBegins(version string) string { return `{"schema_version":"` + version + `"` }

// Reports are the documents that tools write for other programs with --report and flags like it.
// No stage reads them. They name their form in schema_version, as the formats do that they come from.
var Reports = [...]Form{
	{Schema: VersionLintReport, File: "lint-report-v1.schema.json"},
	{Schema: VersionClosure, File: "closure-v1.schema.json"},
	{Schema: VersionOTelMapping, File: "otel-mapping-v1.schema.json"},
	{Schema: VersionOTelState, File: "otel-state-v1.schema.json"},
	{Schema: VersionSoakReport, File: "soak-report-v1.schema.json"},
	{Schema: VersionSoakSurface, File: "soak-surface-v1.schema.json"},
	{Schema: VersionCapabilityDiff, File: "capability-diff-v1.schema.json"},
	{Schema: VersionCapabilityLock, File: "capability-lock-v1.schema.json"},
	{Schema: VersionCapabilityIgnore, File: "capability-ignore-v1.schema.json"},
	{Schema: VersionReplayResult, File: "replay-result-v1.schema.json"},
	{Schema: VersionReplayMetrics, File: "replay-metrics-v1.schema.json"},
}
