package schemas

import "slices"

// Variable is one environment variable by which the measured command reaches its logs.
type Variable struct{ Name, Why string }

// Variables by which the measured command reaches its logs.
const (
	EnvIntentLog    = "ASSAY_RUNNER_INTENT_LOG"
	EnvIntentSchema = "ASSAY_RUNNER_INTENT_SCHEMA"
	EnvPolicyLog    = "ASSAY_RUNNER_POLICY_DECISION_LOG"
	EnvRunID        = "ASSAY_RUNNER_RUN_ID"
	EnvSDKLog       = "ASSAY_RUNNER_SDK_EVENT_LOG"
	EnvSDKSchema    = "ASSAY_RUNNER_SDK_EVENT_SCHEMA"
)

// EnvKeys are all names that env_keys can contain, sorted: the variable of the run id, and
// the variables of each log in the layer table.
func EnvKeys() []string {
	keys := []string{EnvRunID}
	for _, l := range LogLayers() {
		keys = append(keys, l.Log.Env)
		if l.Log.SchemaEnv != "" {
			keys = append(keys, l.Log.SchemaEnv)
		}
	}
	slices.Sort(keys)
	return keys
}

// Environment describes the variables, in the order of EnvKeys.
var Environment = [...]Variable{
	{EnvIntentLog, "path of the log of intents, when one is collected"},
	{EnvIntentSchema, "schema of the lines of that log, `" + SchemaIntent + "`, when one is collected"},
	{EnvPolicyLog, "path of the policy log, when one is collected"},
	{EnvRunID, "the run's id, when a log is collected"},
	{EnvSDKLog, "path of the SDK log, when one is collected"},
	{EnvSDKSchema, "schema of the SDK log's lines, `" + SchemaSDKEvent + "`, when one is collected"},
}

// Shim is one value of agent_shim: how the agent's SDK reports to the runner.
type Shim struct{ Name, Why string }

// Shims, by name.
const (
	ShimNone         = "none"
	ShimOpenAIAgents = "openai-agents"
)

// Shims are all values of agent_shim.
var Shims = [...]Shim{
	{ShimNone, "no SDK log is collected, and there is no SDK layer"},
	{ShimOpenAIAgents, "the SDK log is collected; programs of the OpenAI Agents SDK write it"},
}

// CollectsSDK reports whether a run with this shim has an SDK log.
func CollectsSDK(shim string) bool { return shim != ShimNone }

// KnownShim reports whether a shim is one of the table.
func KnownShim(name string) bool {
	for _, s := range Shims {
		if s.Name == name {
			return true
		}
	}
	return false
}
